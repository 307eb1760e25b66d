//! DPM303: a collection of single numbers, each an array of its own.

use super::steps::names_large_step;
use super::{Checker, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt};
use crate::semantic::{Array, ExprId, Fate, LoopId, LoopKind, Model, Value, root_name};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM303",
    name: "tiny-arrays",
    severity: Severity::Warning,
    what: "Finds device arrays of zero dimensions, or of a few elements, that a loop or comprehension collects in a list,
dict or set. Loops known to run fewer than a thousand times, comprehensions of unknown length, loops over epochs, batches and the
like, and collections that are emptied are left alone.",
    why: "Every array is its own block, at least 64 bytes and often a page of the runtime's pool, plus several hundred
bytes of Python objects, for eight bytes of data.",
    example: "
a = dpnp.ones(1000)
history = []
for _ in range(steps):
    history.append(a.sum())
",
    instead: "
a = dpnp.ones(1000)
history = dpnp.empty(steps)
for step in range(steps):
    history[step] = a.sum()
",
    fix: "None: `float(...)` would make the loop wait for the device, an array needs the number of steps.",
    references: &["DPM403 for reads of single values in a loop"],
};

/// Collections of fewer are no matter.
const MANY: u64 = 1000;
/// Arrays of at most this many elements are tiny.
const TINY: u64 = 4;

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        let Some(innermost) = node.innermost else { continue };
        if !model.device(node.expr).is_some_and(is_tiny) || !is_made_in(model, node.expr, innermost) {
            continue;
        }
        let kept = match model.fate(id) {
            Fate::Stored(container) => is_many(model, container, innermost) && is_outermost(model, id),
            Fate::Collected(display) => {
                node.parent == Some(display)
                    && is_comprehension(model.index.node(display).expr)
                    && model.repeats(innermost, outermost_of(model, display, innermost), MANY)
                    && !names_large_step(model, innermost)
                    && !walks_arrays(model, innermost)
                    && is_surely_long(model, innermost)
            }
            _ => false,
        };
        if kept {
            let text = model.text(node.expr);
            let text = text.lines().next().unwrap_or(text);
            checker.report(
                node.expr.range(),
                format!("each `{text}` is a device array of its own, kept for a single number"),
                "write into one preallocated array, `values[i] = ...`, or keep Python numbers, `float(...)`",
                None,
            );
        }
    }
}

fn is_tiny(array: &Array) -> bool {
    array.dimensions() == Some(0) || array.elements().is_some_and(|count| count <= TINY)
}

/// A comprehension over an array, or over a range that is known to be long; over anything else it is mostly short.
fn is_surely_long(model: &Model<'_>, id: LoopId) -> bool {
    match &model.index.loops[id.at()].kind {
        LoopKind::Comprehension(_, generator) => {
            model.value(&generator.iter).as_array().is_some() || model.trips(id).is_some()
        }
        _ => false,
    }
}

/// A name from outside the loop is one array, however often it is kept.
fn is_made_in(model: &Model<'_>, expr: &Expr, innermost: LoopId) -> bool {
    match expr {
        Expr::Name(name) => model.rebinds(name.id.as_str(), innermost),
        Expr::Attribute(_) => false,
        _ => true,
    }
}

fn is_comprehension(expr: &Expr) -> bool {
    matches!(expr, Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_))
}

/// A comprehension over arrays that exist already at most doubles their number.
fn walks_arrays(model: &Model<'_>, id: LoopId) -> bool {
    match &model.index.loops[id.at()].kind {
        LoopKind::Comprehension(_, generator) => match model.value(&generator.iter) {
            Value::Container(Some(element)) => element.as_device().is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// No part of an expression that is stored as a whole.
fn is_outermost(model: &Model<'_>, id: ExprId) -> bool {
    model.index.node(id).parent.is_none_or(|parent| {
        !matches!(model.index.node(parent).expr, Expr::Subscript(_) | Expr::Attribute(_))
            || model.device(model.index.node(parent).expr).is_none()
    })
}

/// The outermost loop of a comprehension.
fn outermost_of(model: &Model<'_>, display: ExprId, innermost: LoopId) -> LoopId {
    let whole = model.index.node(display).expr;
    model
        .index
        .loops_around(Some(innermost))
        .take_while(|id| {
            matches!(model.index.loops[id.at()].kind, LoopKind::Comprehension(other, _) if std::ptr::eq(other, whole))
        })
        .last()
        .unwrap_or(innermost)
}

/// The container outlives a loop that adds many.
fn is_many(model: &Model<'_>, container: ExprId, innermost: LoopId) -> bool {
    let expr = model.index.node(container).expr;
    let Some(name) = root_name(expr) else { return false };
    if is_emptied(model, model.text(expr)) {
        return false;
    }
    // `unknown[i] = x` may well copy; `unknown.append(x)` keeps.
    let appended = model
        .index
        .node(container)
        .parent
        .is_some_and(|parent| model.index.node(parent).expr.is_attribute_expr());
    match model.value(expr) {
        Value::Container(_) | Value::Tuple(_) => {}
        Value::Unknown if appended => {}
        _ => return false,
    }
    // A constant key is overwritten, not added.
    if let Stmt::Assign(assign) = model.index.stmt(model.index.node(container).stmt).stmt
        && let [Expr::Subscript(subscript)] = assign.targets.as_slice()
        && model.is_invariant(&subscript.slice, innermost)
    {
        return false;
    }
    let growing: Vec<LoopId> =
        model.index.loops_around(Some(innermost)).take_while(|id| !model.rebinds(name, *id)).collect();
    match growing.last() {
        Some(outermost) => {
            model.repeats(innermost, *outermost, MANY)
                && !growing.iter().any(|id| names_large_step(model, *id))
                && growing.iter().any(|id| model.may_run_long(*id))
        }
        None => false,
    }
}

/// Something takes elements out again, or the container is bounded.
pub(super) fn is_emptied(model: &Model<'_>, container: &str) -> bool {
    model.index.exprs.iter().any(|node| match node.expr {
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(attribute) => {
                matches!(
                    attribute.attr.as_str(),
                    "clear" | "pop" | "popleft" | "popitem" | "remove" | "discard" | "cache_clear"
                ) && model.text(&*attribute.value) == container
            }
            _ => false,
        },
        _ => false,
    }) || model.index.stmts.iter().any(|node| {
        match node.stmt {
        Stmt::Delete(delete) => delete.targets.iter().any(|target| {
            matches!(target, Expr::Subscript(subscript) if model.text(&*subscript.value) == container)
        }),
        Stmt::Assign(assign) => {
            let bounded = matches!(&*assign.value, Expr::Call(call)
                if call.arguments.keywords.iter().any(|keyword| keyword.arg.as_deref() == Some("maxlen")));
            assign.targets.iter().any(|target| {
                bounded && model.text(target) == container
                    || matches!(target, Expr::Subscript(subscript)
                        if subscript.slice.is_slice_expr() && model.text(&*subscript.value) == container)
            })
        }
        _ => false,
    }
    })
}
