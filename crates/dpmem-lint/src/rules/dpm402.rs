//! DPM402: NumPy and dpnp arrays meet in one operation.

use super::{Checker, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::ast;
use crate::parse::{Expr, Ranged, Stmt};
use crate::semantic::{ExprId, Model, Value, accepts_out, delegates, is_reduction, strip_library};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM402",
    name: "numpy-on-device-array",
    severity: Severity::Error,
    what: "Finds NumPy functions called on a dpnp array, dpnp functions called on a NumPy array, and operators between
the two. Code under `try` or `pytest.raises`, code that may run on either library, and functions such as `numpy.shape`
that only look at the array are left alone.",
    why: "dpnp refuses implicit conversion, so almost all of these raise `TypeError` (dpnp 0.19 and 0.20). A few NumPy
functions (`sum`, `mean`, `max`, `reshape`, …) hand the array to its own method and return a dpnp array, which
hides where the work is done. `numpy.array_equal` swallows the refusal and returns `False` for equal arrays.",
    example: "
x = dpnp.linspace(0, 1, 1000)
y = numpy.sin(x)  # TypeError
",
    instead: "
x = dpnp.linspace(0, 1, 1000)
y = dpnp.sin(x)
",
    fix: "Unsafe: the NumPy module is replaced by dpnp where dpnp has the function, `numpy.asarray` by `dpnp.asnumpy`.
The program then does what was probably meant, which is not what it did.",
    references: &["dpnp documentation: interoperability with NumPy", "NEP 13: `__array_ufunc__ = None`"],
};

/// NumPy functions that only look at the array, or that are not this rule's business.
const INNOCENT: &[&str] = &[
    "shape",
    "ndim",
    "size",
    "isscalar",
    "iterable",
    "iscomplexobj",
    "isrealobj",
    "isfortran",
    "result_type",
    "common_type",
    "printoptions",
    "unstack",
    "info",
    "may_share_memory",
    "shares_memory",
    "dtype",
    "nonzero",
    "split",
    "array_split",
    "issubdtype",
    "broadcast_shapes",
    "errstate",
    "testing",
    "random",
    "typing",
    "can_cast",
];

/// Functions dpnp does not have, or has under another meaning.
const NOT_IN_DPNP: &[&str] = &[
    "save",
    "savez",
    "savez_compressed",
    "savetxt",
    "lexsort",
    "fromregex",
    "poly",
    "polyfit",
    "polyval",
    "roots",
    "vectorize",
    "packbits",
    "unpackbits",
    "nanpercentile",
    "percentile",
    "quantile",
    "nanquantile",
    "insert",
    "array2string",
    "array_repr",
    "array_str",
    "testing",
    "trim_zeros",
    "setdiff1d",
    "union1d",
    "intersect1d",
    "setxor1d",
    "histogram_bin_edges",
    "asmatrix",
    "ma",
];

/// What the two sides of an operation are.
enum Side {
    Device,
    Host,
    Other,
}

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        match node.expr {
            Expr::Call(call) => called(checker, id, call),
            Expr::BinOp(operation) => mixed(checker, id, &operation.left, &operation.right),
            Expr::Compare(comparison) => {
                let identity = comparison.ops.iter().any(|op| {
                    matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn)
                });
                if let ([right], false) = (&*comparison.comparators, identity) {
                    mixed(checker, id, &comparison.left, right);
                }
            }
            _ => {}
        }
    }
    for at in 0..model.index.stmts.len() {
        let node = &model.index.stmts[at];
        if node.guarded || model.is_guarded(crate::semantic::StmtId(at as u32)) {
            continue;
        }
        match node.stmt {
            Stmt::AugAssign(assign) => {
                if let (Side::Host, Side::Device) | (Side::Device, Side::Host) =
                    (side(model, &assign.target), side(model, &assign.value))
                {
                    report_mixed(checker, assign);
                }
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    if let Expr::Subscript(subscript) = target
                        && model.host(&subscript.value).is_some()
                        && let Some(array) = model.device(&assign.value)
                        && (array.dimensions().is_some_and(|count| count > 0) || is_whole(&subscript.slice))
                        && array.dimensions() != Some(0)
                    {
                        let target = model.text(&*subscript.value);
                        checker.report(
                            assign.range(),
                            format!("a dpnp array is assigned into the NumPy array `{target}`: `TypeError`"),
                            "fetch it with `dpnp.asnumpy(...)` first",
                            None,
                        );
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_whole(slice: &Expr) -> bool {
    match slice {
        Expr::EllipsisLiteral(_) => true,
        Expr::Slice(slice) => slice.lower.is_none() && slice.upper.is_none() && slice.step.is_none(),
        _ => false,
    }
}

fn side(model: &Model<'_>, expr: &Expr) -> Side {
    match model.value(expr) {
        Value::Array(array) if array.is_device() => Side::Device,
        Value::Array(array) if array.dimensions() != Some(0) => Side::Host,
        _ => Side::Other,
    }
}

fn mixed(checker: &mut Checker<'_, '_>, id: ExprId, left: &Expr, right: &Expr) {
    let model = checker.model;
    if let (Side::Host, Side::Device) | (Side::Device, Side::Host) = (side(model, left), side(model, right))
        && !model.is_guarded(model.index.node(id).stmt)
    {
        report_mixed(checker, &model.range(id));
    }
}

fn report_mixed(checker: &mut Checker<'_, '_>, node: &impl Ranged) {
    checker.report(
        node.range(),
        "a dpnp array and a NumPy array meet in one operation: `TypeError`",
        "send the NumPy array to the device first, `dpnp.asarray(...)`, once and outside loops",
        None,
    );
}

fn called(checker: &mut Checker<'_, '_>, id: ExprId, call: &ast::ExprCall) {
    let model = checker.model;
    let Some(path) = model.path(&call.func) else { return };
    if model.is_guarded(model.index.node(id).stmt) {
        return;
    }
    if let Some(name) = path.strip_prefix("numpy.") {
        on_device(checker, id, call, name);
    } else if let Some("concatenate" | "concat" | "stack" | "hstack" | "vstack" | "dstack" | "column_stack") =
        strip_library(path)
        && let Some(Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. })) =
            call.arguments.args.first()
    {
        if let Some(part) = elts.iter().find(|part| matches!(side(model, part), Side::Host)) {
            let (function, text) = (model.text(&*call.func), model.text(part));
            checker.report(
                call.range(),
                format!("`{function}` gets the NumPy array `{text}`: `TypeError`"),
                format!("send it to the device first, `dpnp.asarray({text})`, once and outside loops"),
                None,
            );
        }
    } else if let Some(name) = strip_library(path)
        && (accepts_out(name) || is_reduction(name))
        && let Some(argument) =
            call.arguments.args.iter().find(|argument| matches!(side(model, argument), Side::Host))
    {
        // `dpnp.take(x, indices)` and the like accept host indices.
        if matches!(name, "take" | "choose" | "compress" | "where" | "einsum") {
            return;
        }
        let text = model.text(argument);
        let function = model.text(&*call.func);
        checker.report(
            call.range(),
            format!("`{function}` is called on the NumPy array `{text}`: `TypeError`"),
            format!("send it to the device first, `dpnp.asarray({text})`, once and outside loops"),
            None,
        );
    }
}

fn on_device(checker: &mut Checker<'_, '_>, id: ExprId, call: &ast::ExprCall, name: &str) {
    let model = checker.model;
    let root = name.split('.').next().unwrap_or(name);
    if INNOCENT.contains(&root) || name.starts_with(char::is_uppercase) {
        return;
    }
    let Some(argument) = call.arguments.args.iter().find(|argument| has_device(model, argument)) else {
        return;
    };
    let dimensions = model.device(argument).and_then(|array| array.dimensions());
    // Scalar types and fillers take a 0-d array for a number; an array of unknown rank may be one.
    let takes_scalars = matches!(
        name,
        "float64"
            | "float32"
            | "float16"
            | "int64"
            | "int32"
            | "int16"
            | "int8"
            | "bool_"
            | "complex64"
            | "complex128"
            | "uint8"
            | "uint16"
            | "uint32"
            | "uint64"
            | "zeros"
            | "ones"
            | "empty"
            | "eye"
            | "arange"
            | "linspace"
            | "identity"
    );
    if takes_scalars && dimensions.is_none_or(|count| count == 0) {
        return;
    }
    let (function, text) = (model.text(&*call.func), model.text(argument));
    let (message, advice) = if delegates(name) {
        (
            format!("`{function}` on the dpnp array `{text}` runs on the device and returns a dpnp array"),
            format!("write `dpnp.{name}(...)`, which says so"),
        )
    } else if matches!(name, "array_equal" | "array_equiv") {
        (
            format!("`{function}` on the dpnp array `{text}` is `False` whatever it holds"),
            format!(
                "compare on the device with `dpnp.{name}(...)`, or fetch both sides with `dpnp.asnumpy(...)`"
            ),
        )
    } else if matches!(name, "asarray" | "array" | "asanyarray" | "ascontiguousarray") {
        (
            format!("`{function}` on the dpnp array `{text}` raises `TypeError`"),
            format!("fetch it with `dpnp.asnumpy({text})`"),
        )
    } else {
        (
            format!("`{function}` on the dpnp array `{text}` raises `TypeError`"),
            if NOT_IN_DPNP.contains(&root) {
                format!("fetch it first, `dpnp.asnumpy({text})`")
            } else {
                format!("call `dpnp.{name}`, or fetch the array first, `dpnp.asnumpy({text})`")
            },
        )
    };
    let fix = replaced(model, id, call, name, root);
    checker.report(call.range(), message, advice, fix);
}

fn has_device(model: &Model<'_>, argument: &Expr) -> bool {
    if let Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) = argument {
        return elts.iter().any(|element| model.device(element).is_some());
    }
    model.device(argument).is_some()
}

/// The same call of dpnp's function.
fn replaced(model: &Model<'_>, id: ExprId, call: &ast::ExprCall, name: &str, root: &str) -> Option<Fix> {
    let dpnp = model.module_name(id)?;
    let Expr::Attribute(attribute) = &*call.func else { return None };
    // `np.sin`, not `np.linalg.inv` through another alias.
    if NOT_IN_DPNP.contains(&root)
        || model.text(&*call.func).split('.').count() != name.split('.').count() + 1
    {
        return None;
    }
    let is_host = |expr: &Expr| model.host(expr).is_some();
    let host_argument = call.arguments.args.iter().any(|argument| match argument {
        Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) => {
            elts.iter().any(is_host)
        }
        argument => is_host(argument),
    });
    if host_argument || call.arguments.keywords.iter().any(|keyword| model.host(&keyword.value).is_some()) {
        return None;
    }
    let text = match name {
        "asarray" | "array" | "asanyarray" | "ascontiguousarray" => {
            if call.arguments.len() != 1 {
                return None;
            }
            return Some(Fix {
                safety: Safety::Unsafe,
                edits: vec![Edit::replace(attribute, format!("{dpnp}.asnumpy"))],
            });
        }
        _ => format!("{dpnp}.{name}"),
    };
    Some(Fix { safety: Safety::Unsafe, edits: vec![Edit::replace(attribute, text)] })
}
