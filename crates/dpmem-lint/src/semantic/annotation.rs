//! What a type annotation says about a value, if it says one thing.

use std::rc::Rc;

use super::value::{Array, Category, Number, Value};
use crate::parse::Expr;
use crate::parse::ast;

/// The value that the annotation promises; `resolve` evaluates a plain name or attribute to its path.
pub(crate) fn promised(annotation: &Expr, resolve: &mut dyn FnMut(&Expr) -> Value) -> Value {
    match annotation {
        Expr::Name(_) | Expr::Attribute(_) => of_class(&resolve(annotation)),
        Expr::StringLiteral(text) => of_text(text.value.to_str(), resolve),
        Expr::BinOp(union) if matches!(union.op, ast::Operator::BitOr) => {
            let (left, right) = (&*union.left, &*union.right);
            match (left.is_none_literal_expr(), right.is_none_literal_expr()) {
                (true, _) => promised(right, resolve),
                (_, true) => promised(left, resolve),
                _ => promised(left, resolve).join(promised(right, resolve)),
            }
        }
        Expr::Subscript(subscript) => {
            let name = match &*subscript.value {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => return Value::Unknown,
            };
            match name {
                "Optional" | "Annotated" | "Final" | "ClassVar" => promised(first(&subscript.slice), resolve),
                "list" | "List" | "Sequence" | "Iterable" | "Iterator" | "set" | "deque" => {
                    Value::Container(Some(Rc::new(promised(&subscript.slice, resolve))))
                }
                "dict" | "Dict" | "Mapping" => match &*subscript.slice {
                    Expr::Tuple(pair) if pair.elts.len() == 2 => {
                        Value::Container(Some(Rc::new(promised(&pair.elts[1], resolve))))
                    }
                    _ => Value::Unknown,
                },
                _ => match resolve(&subscript.value) {
                    path @ Value::Path(_) => of_class(&path),
                    _ => Value::Unknown,
                },
            }
        }
        _ => Value::Unknown,
    }
}

fn first(slice: &Expr) -> &Expr {
    match slice {
        Expr::Tuple(tuple) => tuple.elts.first().unwrap_or(slice),
        _ => slice,
    }
}

fn of_class(value: &Value) -> Value {
    match value {
        Value::Class(class) => Value::Instance(*class),
        Value::Path(path) => match &**path {
            "dpnp.ndarray"
            | "dpnp.dpnp_array.dpnp_array"
            | "dpctl.tensor.usm_ndarray"
            | "dpnp.tensor.usm_ndarray"
            | "dpnp.dpnp_array" => Value::Array(Array::device()),
            "numpy.ndarray" | "numpy.typing.NDArray" => Value::Array(Array::host()),
            "builtins.int" => Value::Number(Number::integer(None)),
            "builtins.float" => Value::Number(Number::python(Category::Float)),
            "builtins.bool" => Value::Number(Number::python(Category::Bool)),
            "builtins.str" => Value::Text(None),
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}

/// A quoted annotation: only the dotted names that matter, resolved by their first part.
fn of_text(text: &str, resolve: &mut dyn FnMut(&Expr) -> Value) -> Value {
    let text = text.trim();
    let Some((root, rest)) = text.split_once('.') else { return Value::Unknown };
    let name = Expr::Name(ast::ExprName {
        node_index: ast::AtomicNodeIndex::NONE,
        range: crate::parse::TextRange::default(),
        id: root.into(),
        ctx: ast::ExprContext::Load,
    });
    match resolve(&name) {
        Value::Path(path) => of_class(&Value::path(&format!("{path}.{rest}"))),
        _ => Value::Unknown,
    }
}
