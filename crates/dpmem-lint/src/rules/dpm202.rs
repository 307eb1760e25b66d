//! DPM202: a few elements keep a large block alive.

use super::{Checker, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::{Expr, Ranged, Stmt};
use crate::semantic::{Array, Dim, ExprId, Fate, FunctionKind, MODULE, Model, Value, root_name};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM202",
    name: "view-pins-block",
    severity: Severity::Warning,
    what: "Finds slices of a device array that are returned, stored in an attribute or a container, or outlive a `del` or
rebinding of the array, and are much smaller than it. Slices that are copied, read at once or taken from an array that
lives on anyway are left alone.",
    why: "A slice is a view: it holds the whole block of the array it was taken from. Ten numbers can keep a gigabyte.",
    example: "
def first_row():
    cube = dpnp.ones((16, 1024, 1024))
    return cube[0, 0, :10]
",
    instead: "
def first_row():
    cube = dpnp.ones((16, 1024, 1024))
    return cube[0, 0, :10].copy()
",
    fix: "Unsafe: `.copy()` is appended. A program that writes through the view into the array would change.",
    references: &["Python array API: copies and views"],
};

/// Blocks smaller than this are no matter.
const LEAST_BYTES: u64 = 64 * 1024;
/// A view this many times smaller than its block pins it.
const LEAST_RATIO: u64 = 8;

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let Expr::Subscript(subscript) = model.index.node(id).expr else { continue };
        let (Some(base), Some(view)) =
            (model.device(&subscript.value), model.device(model.index.node(id).expr))
        else {
            continue;
        };
        let Some((size, whole)) = shrinks(base, view) else { continue };
        if model.is_advanced(&subscript.slice)
            || !stays_view(model, id)
            || !outlives(model, id, &subscript.value)
        {
            continue;
        }
        let text = model.text(&*subscript.value);
        let text = text.lines().next().unwrap_or(text);
        checker.report(
            model.range(id),
            format!("this view of {size} keeps the whole block of `{text}`, {whole}, alive"),
            "keep a copy, `.copy()`, so that the block can go",
            Some(Fix { safety: Safety::Unsafe, edits: vec![Edit::insert(model.range(id).end(), ".copy()")] }),
        );
    }
}

/// The sizes of view and block in words, if the view is much smaller.
fn shrinks(base: &Array, view: &Array) -> Option<(String, String)> {
    let width = base.dtype.map_or(8, |dtype| u64::from(dtype.bytes));
    if let (Some(all), Some(some)) = (base.elements(), view.elements()) {
        let large = all * width >= LEAST_BYTES && all >= some.max(1).saturating_mul(LEAST_RATIO);
        return large.then(|| (plural(some), plural(all)));
    }
    let (all, some) = (base.shape.as_ref()?, view.shape.as_ref()?);
    let open = |dims: &[Dim]| dims.iter().filter(|dim| matches!(dim, Dim::Named(_))).count();
    let closed = |dims: &[Dim]| {
        dims.iter()
            .map(|dim| match dim {
                Dim::Known(extent) => *extent,
                _ => 1,
            })
            .fold(1_u64, u64::saturating_mul)
    };
    // An extent that only the program knows is gone, and what is left is no larger otherwise.
    let lost = open(all) > open(some) && !some.contains(&Dim::Unknown) && closed(some) <= closed(all).max(64);
    lost.then(|| (listed(some), listed(all)))
}

fn plural(count: u64) -> String {
    if count == 1 { "1 element".to_owned() } else { format!("{count} elements") }
}

fn listed(dims: &[Dim]) -> String {
    if dims.is_empty() {
        return "1 element".to_owned();
    }
    let texts: Vec<String> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Known(extent) => extent.to_string(),
            Dim::Named(text) => text.to_string(),
            Dim::Unknown => "?".to_owned(),
        })
        .collect();
    format!("{} elements", texts.join(" × "))
}

/// Nothing between the slice and where it ends up makes a copy.
fn stays_view(model: &Model<'_>, id: ExprId) -> bool {
    std::iter::successors(model.index.node(id).parent, |id| model.index.node(*id).parent).all(|parent| {
        match model.index.node(parent).expr {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(attribute) => !matches!(
                    attribute.attr.as_str(),
                    "astype" | "to_device" | "asarray" | "ravel" | "reshape" | "real"
                ),
                _ => true,
            },
            Expr::Subscript(_) => false,
            _ => true,
        }
    })
}

/// The view lives on when the array's own name is gone.
fn outlives<'a>(model: &Model<'a>, id: ExprId, base: &'a Expr) -> bool {
    let node = model.index.node(id);
    let fate = model.fate(id);
    let Expr::Name(name) = base else {
        // A temporary: only the view will hold it.
        let temporary = matches!(base, Expr::Call(_) | Expr::BinOp(_)) && makes_new(model, base);
        return temporary
            && matches!(
                fate,
                Fate::Returned | Fate::Attribute(_) | Fate::Stored(_) | Fate::Collected(_) | Fate::Named(..)
            );
    };
    let name = name.id.as_str();
    if model.owner(node.scope, name) != node.scope || !is_made_here(model, name, node.scope) {
        return false;
    }
    match fate {
        Fate::Returned => !is_held_elsewhere(model, name, id) && node.scope != MODULE,
        Fate::Attribute(target) => {
            let object = root_name(model.index.node(target).expr);
            node.scope != MODULE && object != Some(name) && !is_held_elsewhere(model, name, id)
        }
        Fate::Stored(_) | Fate::Yielded => {
            let renewed = node.innermost.is_some_and(|innermost| {
                model
                    .stores(name, node.scope)
                    .any(|store| model.in_loop(model.index.node(store).innermost, innermost))
            });
            renewed && !is_held_elsewhere(model, name, id)
        }
        Fate::Named(view, _) => {
            (view == name || is_deleted(model, name, id)) && !is_held_elsewhere(model, name, id)
        }
        _ => false,
    }
}

/// Every binding of the name makes a new array in this scope.
fn is_made_here(model: &Model<'_>, name: &str, scope: crate::semantic::FunctionId) -> bool {
    if let FunctionKind::Def(def) = &model.index.functions[scope.at()].kind
        && def.parameters.iter().any(|parameter| parameter.name().as_str() == name)
    {
        return false;
    }
    let bindings: Vec<ExprId> = model.stores(name, scope).collect();
    !bindings.is_empty()
        && bindings.iter().all(|store| match model.index.stmt(model.index.node(*store).stmt).stmt {
            Stmt::Assign(assign) => {
                makes_new(model, &assign.value)
                    || matches!(&*assign.value, Expr::Subscript(_) | Expr::NoneLiteral(_))
            }
            Stmt::AugAssign(_) => true,
            _ => false,
        })
}

/// The expression's value is an array nobody else has.
fn makes_new(model: &Model<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::BinOp(_) => model.device(expr).is_some(),
        Expr::Call(call) => match model.value(&call.func) {
            Value::Path(path) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                model.device(expr).is_some()
                    && !matches!(
                        name,
                        "asarray"
                            | "reshape"
                            | "ravel"
                            | "transpose"
                            | "squeeze"
                            | "asanyarray"
                            | "ascontiguousarray"
                            | "broadcast_to"
                            | "expand_dims"
                            | "swapaxes"
                            | "moveaxis"
                            | "from_dlpack"
                            | "diagonal"
                    )
            }
            Value::Method(owner, name) => {
                owner.as_device().is_some()
                    && matches!(&**name, "copy" | "cumsum" | "sum" | "mean" | "clip" | "dot")
            }
            _ => false,
        },
        _ => false,
    }
}

/// Something besides this view keeps the array: another name, a container, a closure, code that is not followed.
fn is_held_elsewhere<'a>(model: &Model<'a>, name: &'a str, id: ExprId) -> bool {
    let scope = model.index.node(id).scope;
    // `x = x[0]`: what is read later is the view.
    let until = match model.fate(id) {
        Fate::Named(view, _) if view == name => Some(model.range(id).start()),
        _ => None,
    };
    model.loads(name, scope).any(|load| {
        let node = model.index.node(load);
        if until.is_some_and(|until| node.expr.start() > until) {
            return false;
        }
        if node.scope != scope {
            return true;
        }
        if node.parent == Some(id) {
            return false;
        }
        match model.fate(load) {
            Fate::Consumed | Fate::Discarded => false,
            Fate::Named(other, _) => other != name,
            // Another view that goes the same way pins the same block; each is reported on its own.
            Fate::Returned => {
                node.parent.is_none_or(|parent| !model.index.node(parent).expr.is_subscript_expr())
            }
            _ => true,
        }
    })
}

/// A later `del name` or `name = None` in the same scope.
fn is_deleted(model: &Model<'_>, name: &str, id: ExprId) -> bool {
    let scope = model.index.node(id).scope;
    let after = model.range(id).end();
    let is_name = |target: &Expr| matches!(target, Expr::Name(other) if other.id.as_str() == name);
    model.index.stmts.iter().any(|node| {
        node.scope == scope
            && node.stmt.start() > after
            && match node.stmt {
                Stmt::Delete(delete) => delete.targets.iter().any(is_name),
                Stmt::Assign(assign) => {
                    assign.value.is_none_literal_expr() && assign.targets.iter().any(is_name)
                }
                _ => false,
            }
    })
}
