//! DPM208: NumPy arrays that sit on USM-host memory are kept.

use super::{Checker, LEAST_REPEATS, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::{Expr, Stmt};
use crate::semantic::{ExprId, Fate, LoopId, MODULE, Model, root_name};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM208",
    name: "host-copy-pins-usm",
    severity: Severity::Warning,
    what: "Finds results of `asnumpy()` that a loop or comprehension collects, that are stored in an attribute, or of which
a slice is stored. Results that are copied, assigned into an existing NumPy array or only read are left alone.",
    why: "`asnumpy` takes a block of USM-host memory of the full size, pinned for the device, and the NumPy array sits on
it. Collected over a run such blocks use up pinned memory, and a slice keeps all of its block.",
    example: "
results = []
for chunk in chunks:
    results.append(dpnp.asnumpy(chunk * 2))
",
    instead: "
results = []
for chunk in chunks:
    results.append(dpnp.asnumpy(chunk * 2).copy())
",
    fix: "Unsafe: `.copy()` is appended. The values are the same; a program that relies on sharing memory with the device
would change.",
    references: &["dpnp documentation: `dpnp.asnumpy`", "SYCL 2020, 4.8.2: unified shared memory"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        if !sits_on_usm(model, node.expr)
            || node.parent.is_some_and(|parent| sits_on_usm(model, model.index.node(parent).expr))
            || !matches!(node.expr, Expr::Call(_) | Expr::Name(_) | Expr::Subscript(_))
        {
            continue;
        }
        let repeated = |innermost: Option<LoopId>| model.busy_loop(innermost, LEAST_REPEATS);
        let kept = match model.fate(id) {
            Fate::Stored(container) => stored(model, id, container, node.innermost),
            Fate::Collected(display) => {
                matches!(
                    model.index.node(display).expr,
                    Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_)
                ) && node.parent == Some(display)
                    && repeated(node.innermost).is_some()
            }
            Fate::Attribute(target) => {
                // `self.x = x.asnumpy()`; a plain module or array attribute is another matter.
                node.scope != MODULE && root_name(model.index.node(target).expr).is_some()
            }
            _ => false,
        };
        if kept {
            let text = model.text(node.expr);
            let text = text.lines().next().unwrap_or(text);
            checker.report(
                model.range(id),
                format!("`{text}` is kept, and with it the USM-host block it sits on"),
                "keep a copy in ordinary memory, `.copy()`",
                Some(Fix {
                    safety: Safety::Unsafe,
                    edits: vec![Edit::insert(model.range(id).end(), ".copy()")],
                }),
            );
        }
    }
}

/// A NumPy array on a USM-host block of more than a few bytes.
fn sits_on_usm(model: &Model<'_>, expr: &Expr) -> bool {
    let Some(array) = model.host(expr).filter(|array| array.on_usm && array.dimensions() != Some(0)) else {
        return false;
    };
    match expr {
        // A slice holds all of its block.
        Expr::Subscript(subscript) => sits_on_usm(model, &subscript.value),
        _ => array.elements().is_none_or(|count| count > 4),
    }
}

/// A container that outlives the loop gets one more in each iteration.
fn stored(model: &Model<'_>, id: ExprId, container: ExprId, innermost: Option<LoopId>) -> bool {
    let expr = model.index.node(container).expr;
    let Some(innermost) = innermost else { return false };
    let Some(name) = root_name(expr) else { return false };
    let Some(busy) = model.busy_loop(Some(innermost), LEAST_REPEATS) else { return false };
    if let Stmt::Assign(assign) = model.index.stmt(model.index.node(id).stmt).stmt
        && let [Expr::Subscript(subscript)] = assign.targets.as_slice()
        && (subscript.slice.is_slice_expr() || model.is_invariant(&subscript.slice, busy))
    {
        return false;
    }
    // `out[i] = x.asnumpy()` copies if `out` is an array; only what is known to be a container keeps.
    let keeps =
        matches!(model.value(expr), crate::semantic::Value::Container(_) | crate::semantic::Value::Unknown);
    let appended = model
        .index
        .node(container)
        .parent
        .is_some_and(|parent| model.index.node(parent).expr.is_attribute_expr());
    let known = matches!(model.value(expr), crate::semantic::Value::Container(_));
    keeps && (known || appended) && !model.rebinds(name, busy)
}
