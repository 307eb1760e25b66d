//! DPM306: one operand doubles the width of the result.

use super::{Checker, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::{Expr, ast};
use crate::semantic::{Array, Category, Dtype, ExprId, Model, Value, keyword};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM306",
    name: "dtype-doubling",
    severity: Severity::Warning,
    what: "Finds operations of a device array with a NumPy scalar, or with a device array of zero dimensions, whose dtype is
wider than the array's, so that the result is wider too. Python numbers never widen; two arrays of different width
are taken as meant.",
    why: "The result and everything computed from it takes twice the memory, and on devices with slow or missing
double precision far more than twice the time.",
    example: "
x = dpnp.ones(n, dtype=dpnp.float32)
y = x * numpy.float64(0.5)  # float64
z = x * numpy.sqrt(2)  # float64
",
    instead: "
x = dpnp.ones(n, dtype=dpnp.float32)
y = x * 0.5
z = x * math.sqrt(2)
",
    fix: "Unsafe: the NumPy scalar becomes a Python number, the array of zero dimensions is cast to the array's dtype. The
result is narrower, as it should have been.",
    references: &["NEP 50: promotion with Python scalars", "Python array API: mixing arrays with Python scalars"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        match model.index.node(id).expr {
            Expr::BinOp(operation) => pair(checker, id, &operation.left, &operation.right),
            Expr::Call(call) => {
                let Some(name) = model.device_function(call) else { continue };
                let free = keyword(call, "out").is_none() && keyword(call, "dtype").is_none();
                let arithmetic = matches!(
                    name,
                    "add"
                        | "subtract"
                        | "multiply"
                        | "divide"
                        | "true_divide"
                        | "power"
                        | "pow"
                        | "maximum"
                        | "minimum"
                        | "fmax"
                        | "fmin"
                        | "hypot"
                        | "arctan2"
                        | "remainder"
                        | "mod"
                        | "floor_divide"
                );
                if let ([left, right], true, true) = (&*call.arguments.args, free, arithmetic) {
                    pair(checker, id, left, right);
                }
                if let ([_, left, right], true, "where") = (&*call.arguments.args, free, name) {
                    pair(checker, id, left, right);
                }
            }
            _ => {}
        }
    }
}

fn pair(checker: &mut Checker<'_, '_>, id: ExprId, left: &Expr, right: &Expr) {
    for (array, operand) in [(left, right), (right, left)] {
        if let Some(widened) = widened(checker.model, array, operand) {
            let model = checker.model;
            let text = model.text(operand);
            let kind = match model.value(operand) {
                Value::Array(_) => "an array of zero dimensions",
                _ => "a NumPy scalar",
            };
            checker.report(
                model.range(id),
                format!(
                    "`{text}` is {kind} of {}, so the result is {} although `{}` is {}",
                    widened.operand.name(),
                    widened.result.name(),
                    model.text(array),
                    widened.array.name()
                ),
                "use a Python number, or give the operand the array's dtype",
                fixed(model, array, operand, widened.operand),
            );
            return;
        }
    }
}

struct Widened {
    array: Dtype,
    operand: Dtype,
    result: Dtype,
}

fn widened(model: &Model<'_>, array: &Expr, operand: &Expr) -> Option<Widened> {
    let is_large =
        |array: &&Array| array.dimensions().is_some_and(|count| count > 0) || array.dimensions().is_none();
    let array = model.device(array).filter(is_large)?.dtype?;
    let operand = match model.value(operand) {
        Value::Number(number) if number.numpy => number.dtype?,
        Value::Array(scalar) if scalar.is_device() && scalar.dimensions() == Some(0) => scalar.dtype?,
        _ => return None,
    };
    let result = array.promote(operand);
    let meant = array.with_python(operand.category);
    (result.bytes > meant.bytes && array.category != Category::Bool).then_some(Widened {
        array,
        operand,
        result,
    })
}

fn fixed(model: &Model<'_>, array: &Expr, operand: &Expr, dtype: Dtype) -> Option<Fix> {
    let text = match model.value(operand) {
        Value::Number(_) => {
            let python = match dtype.category {
                Category::Float => "float",
                Category::Signed | Category::Unsigned => "int",
                _ => return None,
            };
            match operand {
                // `numpy.float64(2)`: what is inside is a number already.
                Expr::Call(call) if is_scalar_type(model, call) => match &*call.arguments.args {
                    [inner] if call.arguments.keywords.is_empty() => {
                        format!("{python}({})", model.text(inner))
                    }
                    _ => return None,
                },
                _ => format!("{python}({})", model.text(operand)),
            }
        }
        _ => {
            let (Expr::Name(_), Expr::Name(_) | Expr::Call(_)) = (array, operand) else { return None };
            format!("{}.astype({}.dtype)", model.text(operand), model.text(array))
        }
    };
    Some(Fix { safety: Safety::Unsafe, edits: vec![Edit::replace(operand, text)] })
}

fn is_scalar_type(model: &Model<'_>, call: &ast::ExprCall) -> bool {
    let name = match model.path(&call.func) {
        Some(path) => path.rsplit('.').next().unwrap_or(path),
        None => return false,
    };
    Dtype::named(name).is_some()
}
