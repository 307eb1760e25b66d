//! DPM205: a cache that nobody empties keeps device arrays.

use super::dpm303::is_emptied;
use super::{Checker, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt, TextRange, ast};
use crate::semantic::{ExprId, FunctionId, FunctionKind, MODULE, Model, Value, keyword};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM205",
    name: "held-by-cache",
    severity: Severity::Warning,
    what: "Finds `functools.cache` and `lru_cache` on functions that return device arrays, device arrays as default
arguments, and module-level containers (or mutable defaults) to which functions add device arrays and from which
nothing is ever taken out. Caches with a small `maxsize`, containers that are cleared and constant keys are left alone.",
    why: "What such a cache holds lives as long as the program. On a device with a few gigabytes that is a leak with a
friendly name.",
    example: "
@functools.lru_cache
def kernel(n):
    return dpnp.hanning(n)
",
    instead: "
@functools.lru_cache(maxsize=4)
def kernel(n):
    return dpnp.hanning(n)
",
    fix: "None: how much may be kept is the program's decision.",
    references: &["Python documentation: `functools.lru_cache`, `cache_clear`"],
};

/// An explicit bound up to this is taken as meant.
const SMALL_CACHE: i64 = 16;
/// Default arguments of at most this many elements are no matter.
const SMALL_ARRAY: u64 = 4;

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.functions.len() {
        let FunctionKind::Def(def) = &model.index.functions[at].kind else { continue };
        decorated(checker, def, FunctionId(at as u32));
        defaults(checker, def, FunctionId(at as u32));
    }
    for at in 0..model.index.exprs.len() {
        grown(checker, ExprId(at as u32));
    }
}

fn decorated(checker: &mut Checker<'_, '_>, def: &ast::StmtFunctionDef, id: FunctionId) {
    let model = checker.model;
    for decorator in &def.decorator_list {
        let (callee, call) = match &decorator.expression {
            Expr::Call(call) => (&*call.func, Some(call)),
            other => (other, None),
        };
        let Some(path) = model.path(callee) else { continue };
        if !matches!(path, "functools.lru_cache" | "functools.cache") {
            continue;
        }
        let bound = call.and_then(|call| keyword(call, "maxsize").or_else(|| call.arguments.args.first()));
        if bound
            .is_some_and(|bound| model.value(bound).as_integer().is_some_and(|bound| bound <= SMALL_CACHE))
        {
            continue;
        }
        if returns_array(model, id) && !is_emptied(model, def.name.as_str()) {
            checker.report(
                decorator.expression.range(),
                format!("the cache keeps every device array that `{}` returns", def.name),
                "bound it, `maxsize=4`, or call `cache_clear()` when the arrays are no longer needed",
                None,
            );
        }
    }
}

fn returns_array(model: &Model<'_>, id: FunctionId) -> bool {
    model.index.stmts.iter().any(|node| {
        node.scope == id
            && matches!(node.stmt, Stmt::Return(result)
                if result.value.as_ref().is_some_and(|value| holds_array(model.value(value))))
    })
}

fn holds_array(value: &Value) -> bool {
    match value {
        Value::Array(array) => array.is_device(),
        Value::Tuple(items) => items.iter().any(holds_array),
        Value::Container(Some(element)) => holds_array(element),
        _ => false,
    }
}

fn defaults(checker: &mut Checker<'_, '_>, def: &ast::StmtFunctionDef, id: FunctionId) {
    let model = checker.model;
    for parameter in &*def.parameters {
        let Some(default) = parameter.default() else { continue };
        let name = parameter.name().as_str();
        if let (Expr::Call(_) | Expr::BinOp(_), Some(array)) = (default, model.device(default)) {
            if array.elements().is_none_or(|count| count > SMALL_ARRAY) {
                checker.report(
                    default.range(),
                    format!("the default of `{name}` is a device array that lives as long as the function"),
                    "use `None` and make the array inside the function, or at the caller",
                    None,
                );
            }
        } else if is_empty_container(model, default) && !is_emptied(model, name) {
            let growth = (0..model.index.exprs.len() as u32).map(ExprId).find(|expr| {
                model.index.node(*expr).scope == id && adds_array_to(model, *expr, name).is_some()
            });
            if let Some(range) = growth.and_then(|growth| adds_array_to(model, growth, name)) {
                checker.report(
                    range,
                    format!(
                        "`{name}` is one container for all calls, and keeps every device array that is put in"
                    ),
                    "use `None` as default and make the container inside the function",
                    None,
                );
            }
        }
    }
}

fn is_empty_container(model: &Model<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::List(list) => list.elts.is_empty(),
        Expr::Dict(dict) => dict.items.is_empty(),
        Expr::Call(call) => {
            matches!(
                model.path(&call.func),
                Some(
                    "builtins.list"
                        | "builtins.dict"
                        | "builtins.set"
                        | "collections.OrderedDict"
                        | "collections.defaultdict"
                        | "collections.deque"
                )
            ) && keyword(call, "maxlen").is_none()
        }
        _ => false,
    }
}

/// The range of `name.append(array)`, `name[key] = array` and the like.
fn adds_array_to(model: &Model<'_>, id: ExprId, name: &str) -> Option<TextRange> {
    let is_name = |expr: &Expr| matches!(expr, Expr::Name(other) if other.id.as_str() == name);
    match model.index.node(id).expr {
        Expr::Call(call) => {
            let Expr::Attribute(attribute) = &*call.func else { return None };
            let container = match &*attribute.value {
                // `cache[key].append(x)` of a defaultdict
                Expr::Subscript(subscript) => &*subscript.value,
                other => other,
            };
            let adds = matches!(
                attribute.attr.as_str(),
                "append" | "add" | "appendleft" | "insert" | "extend" | "setdefault"
            );
            let value = call.arguments.args.last()?;
            let constant = attribute.attr.as_str() == "setdefault"
                && call
                    .arguments
                    .args
                    .first()
                    .is_some_and(|key| key.is_string_literal_expr() || key.is_number_literal_expr());
            (adds && !constant && is_name(container) && holds_array(model.value(value)))
                .then_some(call.range())
        }
        Expr::Subscript(subscript) if matches!(subscript.ctx, ast::ExprContext::Store) => {
            let constant =
                subscript.slice.is_string_literal_expr() || subscript.slice.is_number_literal_expr();
            let Stmt::Assign(assign) = model.index.stmt(model.index.node(id).stmt).stmt else { return None };
            (is_name(&subscript.value)
                && !constant
                && !subscript.slice.is_slice_expr()
                && holds_array(model.value(&assign.value)))
            .then_some(assign.range())
        }
        _ => None,
    }
}

/// A function adds to a module-level container.
fn grown(checker: &mut Checker<'_, '_>, id: ExprId) {
    let model = checker.model;
    let node = model.index.node(id);
    if node.scope == MODULE {
        return;
    }
    let name = match node.expr {
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Subscript(subscript) => &*subscript.value,
                other => other,
            },
            _ => return,
        },
        Expr::Subscript(subscript) => &*subscript.value,
        _ => return,
    };
    let Expr::Name(name) = name else { return };
    let name = name.id.as_str();
    if model.owner(node.scope, name) != MODULE || !model.index.functions[MODULE.at()].bound.contains(name) {
        return;
    }
    let Some(range) = adds_array_to(model, id, name) else { return };
    let mut stores = model.index.occurrences(name).iter().copied().filter(|id| {
        let node = model.index.node(*id);
        matches!(node.expr, Expr::Name(other) if matches!(other.ctx, ast::ExprContext::Store))
            && model.owner(node.scope, name) == MODULE
    });
    let made_once = match (stores.next(), stores.next()) {
        (Some(store), None) => {
            model.index.node(store).scope == MODULE
                && match model.index.stmt(model.index.node(store).stmt).stmt {
                    Stmt::Assign(assign) => is_empty_container(model, &assign.value),
                    Stmt::AnnAssign(assign) => {
                        assign.value.as_ref().is_some_and(|value| is_empty_container(model, value))
                    }
                    _ => false,
                }
        }
        _ => false,
    };
    if made_once && !is_emptied(model, name) && !is_measured(model, name) && !is_handed_on(model, name) {
        checker.report(
            range,
            format!("the module-level `{name}` only ever grows, and keeps every device array that is put in"),
            format!("bound `{name}`, clear it when its arrays are no longer needed, or keep it in an object that goes"),
            None,
        );
    }
}

/// `len(name)` in a condition: the program watches the size.
fn is_measured(model: &Model<'_>, name: &str) -> bool {
    model.calls().any(|(id, call)| {
        model.path(&call.func) == Some("builtins.len")
            && matches!(&*call.arguments.args, [Expr::Name(other)] if other.id.as_str() == name)
            && model
                .index
                .node(id)
                .parent
                .is_some_and(|parent| model.index.node(parent).expr.is_compare_expr())
    })
}

/// The container is passed to, or returned to, code that may empty it.
fn is_handed_on(model: &Model<'_>, name: &str) -> bool {
    model.index.exprs.iter().any(|node| match node.expr {
        Expr::Call(call) => {
            !model.path(&call.func).is_some_and(|path| path.starts_with("builtins."))
                && call
                    .arguments
                    .args
                    .iter()
                    .any(|argument| matches!(argument, Expr::Name(other) if other.id.as_str() == name))
        }
        _ => false,
    })
}
