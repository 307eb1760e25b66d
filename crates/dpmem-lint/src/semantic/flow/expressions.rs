//! Values of expressions.

use std::rc::Rc;

use super::{Flow, PATH_LIMIT, nesting};
use crate::parse::ast::{self, Expr};
use crate::parse::{Ranged, TextRange};
use crate::semantic::index::FunctionId;
use crate::semantic::index::FunctionKind;
use crate::semantic::library::{self, Call};
use crate::semantic::value::{Array, Category, Dim, Dtype, Number, Value};

/// Longer lists of numbers are not remembered one by one.
const DISPLAY_LIMIT: usize = 1000;

impl<'a> Flow<'a, '_> {
    pub(super) fn record(&mut self, expr: &Expr, value: &Value) {
        if let Some(id) = self.index.expr_id(expr) {
            self.values[id.at()] = value.clone();
        }
    }

    pub(super) fn recorded(&self, expr: &Expr) -> Value {
        self.index.expr_id(expr).map_or(Value::Unknown, |id| self.values[id.at()].clone())
    }

    pub(super) fn expr(&mut self, expr: &'a Expr) -> Value {
        let value = self.evaluate(expr);
        self.record(expr, &value);
        value
    }

    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> Value {
        match expr {
            Expr::Name(name) => self.look_up(name.id.as_str()),
            Expr::NumberLiteral(number) => Value::Number(match &number.value {
                ast::Number::Int(value) => Number::integer(value.as_i64()),
                ast::Number::Float(_) => Number::python(Category::Float),
                ast::Number::Complex { .. } => Number::python(Category::Complex),
            }),
            Expr::BooleanLiteral(_) => Value::Number(Number::python(Category::Bool)),
            Expr::NoneLiteral(_) => Value::Nothing,
            Expr::StringLiteral(text) => Value::Text(Some(text.value.to_str().into())),
            Expr::FString(text) => {
                for element in text.value.elements() {
                    self.interpolated(element);
                }
                Value::Text(None)
            }
            Expr::TString(text) => {
                for element in text.value.elements() {
                    self.interpolated(element);
                }
                Value::Unknown
            }
            Expr::Tuple(tuple) => {
                let starred = tuple.elts.iter().any(Expr::is_starred_expr);
                let items: Vec<Value> = tuple.elts.iter().map(|element| self.expr(element)).collect();
                if starred || items.iter().any(|item| nesting(item) > 6) {
                    Value::Container(Some(Rc::new(Value::Unknown)))
                } else {
                    Value::Tuple(items.into())
                }
            }
            Expr::List(ast::ExprList { elts, .. }) => self.display(elts, true),
            Expr::Set(ast::ExprSet { elts, .. }) => self.display(elts, false),
            Expr::Dict(dict) => {
                let mut held: Option<Value> = None;
                for item in &dict.items {
                    if let Some(key) = &item.key {
                        self.expr(key);
                    }
                    let value = self.expr(&item.value);
                    let value = if item.key.is_none() { Value::Unknown } else { value };
                    held = Some(held.map_or(value.clone(), |held| held.join(value)));
                }
                container(held)
            }
            Expr::BinOp(node) => {
                let (left, right) = (self.expr(&node.left), self.expr(&node.right));
                self.operator(node.op, &left, &right)
            }
            Expr::UnaryOp(node) => {
                let operand = self.expr(&node.operand);
                match (node.op, operand) {
                    (ast::UnaryOp::Not, _) => Value::Number(Number::python(Category::Bool)),
                    (ast::UnaryOp::USub, Value::Number(number)) => {
                        let integer = number.integer.and_then(i64::checked_neg);
                        Value::Number(Number { integer, ..number })
                    }
                    (_, Value::Array(array)) => Value::Array(Array { on_usm: false, ..array }),
                    (_, value) => value,
                }
            }
            Expr::Compare(node) => {
                let mut result = self.expr(&node.left);
                let identity = node.ops.iter().any(|op| {
                    matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn)
                });
                for comparator in &node.comparators {
                    let value = self.expr(comparator);
                    result = library::binary(&result, &value);
                }
                match result {
                    Value::Array(array) if !identity => {
                        Value::Array(Array { dtype: Some(Dtype::BOOL), ..array })
                    }
                    Value::Unknown if !identity => Value::Unknown,
                    _ => Value::Number(Number::python(Category::Bool)),
                }
            }
            Expr::BoolOp(node) => node
                .values
                .iter()
                .map(|value| self.expr(value))
                .collect::<Vec<_>>()
                .into_iter()
                .reduce(Value::join)
                .unwrap_or(Value::Unknown),
            Expr::If(node) => {
                self.expr(&node.test);
                let body = self.expr(&node.body);
                body.join(self.expr(&node.orelse))
            }
            Expr::Named(node) => {
                let value = self.expr(&node.value);
                self.assign(&node.target, value.clone());
                value
            }
            Expr::Attribute(node) => {
                let value = self.expr(&node.value);
                self.attribute(&value, node.attr.as_str())
            }
            Expr::Subscript(node) => self.subscript(node),
            Expr::Call(node) => self.call(node),
            Expr::Lambda(node) => {
                if let Some(parameters) = &node.parameters {
                    for parameter in &**parameters {
                        if let Some(default) = parameter.default() {
                            self.expr(default);
                        }
                    }
                }
                match self.index.lambda_id(node) {
                    Some(id) => {
                        self.pending.push(id);
                        Value::Function(id)
                    }
                    None => Value::Unknown,
                }
            }
            Expr::ListComp(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::SetComp(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::Generator(node) => self.comprehension(&node.generators, None, &node.elt),
            Expr::DictComp(node) => self.comprehension(&node.generators, node.key.as_deref(), &node.value),
            Expr::Await(node) => self.expr(&node.value),
            Expr::Yield(node) => {
                let value = node.value.as_ref().map_or(Value::Nothing, |value| self.expr(value));
                self.returned(value);
                Value::Unknown
            }
            Expr::YieldFrom(node) => {
                let value = self.expr(&node.value);
                self.returned(value.element());
                Value::Unknown
            }
            Expr::Starred(node) => {
                self.expr(&node.value);
                Value::Unknown
            }
            Expr::Slice(node) => {
                for part in [&node.lower, &node.upper, &node.step].into_iter().flatten() {
                    self.expr(part);
                }
                Value::Unknown
            }
            Expr::BytesLiteral(_) | Expr::EllipsisLiteral(_) | Expr::IpyEscapeCommand(_) => Value::Unknown,
        }
    }

    pub(super) fn interpolated(&mut self, element: &'a ast::InterpolatedStringElement) {
        if let ast::InterpolatedStringElement::Interpolation(field) = element {
            self.expr(&field.expression);
            if let Some(spec) = &field.format_spec {
                for element in &spec.elements {
                    self.interpolated(element);
                }
            }
        }
    }

    /// A list of numbers keeps its length, so that an array made from it gets a shape.
    pub(super) fn display(&mut self, elements: &'a [Expr], ordered: bool) -> Value {
        let items: Vec<Value> = elements.iter().map(|element| self.expr(element)).collect();
        if ordered && !items.is_empty() && items.len() <= DISPLAY_LIMIT && items.iter().all(Value::is_number)
        {
            return Value::Tuple(items.into());
        }
        if elements.iter().any(Expr::is_starred_expr) {
            return Value::Container(Some(Rc::new(Value::Unknown)));
        }
        container(items.into_iter().reduce(Value::join))
    }

    pub(super) fn comprehension(
        &mut self,
        generators: &'a [ast::Comprehension],
        key: Option<&'a Expr>,
        element: &'a Expr,
    ) -> Value {
        let before = self.environment.clone();
        for generator in generators {
            let iterated = self.expr(&generator.iter);
            self.assign(&generator.target, iterated.element());
            for test in &generator.ifs {
                self.expr(test);
            }
        }
        if let Some(key) = key {
            self.expr(key);
        }
        let value = self.expr(element);
        self.environment = before;
        container(Some(value))
    }

    pub(super) fn operator(&mut self, operator: ast::Operator, left: &Value, right: &Value) -> Value {
        if matches!(operator, ast::Operator::MatMult) {
            return match (left, right) {
                (Value::Array(one), Value::Array(two)) if one.place != two.place => Value::Unknown,
                (Value::Array(array), _) | (_, Value::Array(array)) => {
                    library::matmul(left, right, Array { place: array.place, ..Array::device() })
                }
                _ => Value::Unknown,
            };
        }
        if let (Value::Number(one), Value::Number(two)) = (left, right)
            && let (Some(one), Some(two)) = (one.integer, two.integer)
        {
            return Value::Number(match operator {
                ast::Operator::Div => Number::python(Category::Float),
                _ => Number::integer(fold(operator, one, two)),
            });
        }
        // `[x] * n` and `[None] * n` stay containers.
        if let (Value::Container(_), Value::Number(_), ast::Operator::Mult) = (left, right, operator) {
            return left.clone();
        }
        if let (Value::Tuple(_), Value::Number(_), ast::Operator::Mult) = (left, right, operator) {
            return container(Some(left.element()));
        }
        match library::binary(left, right) {
            Value::Array(array)
                if matches!(operator, ast::Operator::Div)
                    && !matches!(
                        array.dtype.map(|dtype| dtype.category),
                        Some(Category::Float | Category::Complex)
                    ) =>
            {
                Value::Array(Array { dtype: None, ..array })
            }
            Value::Number(number) if matches!(operator, ast::Operator::Div) && !number.numpy => {
                Value::Number(Number::python(Category::Float))
            }
            value => value,
        }
    }

    pub(super) fn attribute(&mut self, value: &Value, name: &'a str) -> Value {
        match value {
            Value::Path(path) => {
                if path.len() > PATH_LIMIT {
                    return Value::Unknown;
                }
                match (&**path, name) {
                    ("numpy" | "dpnp" | "math", "pi" | "e" | "inf" | "nan" | "euler_gamma" | "tau") => {
                        Value::Number(Number::python(Category::Float))
                    }
                    ("numpy" | "dpnp", "newaxis") => Value::Nothing,
                    _ => Value::path(&format!("{path}.{name}")),
                }
            }
            Value::Array(array) => library::attribute(array, name),
            Value::Queue(_) if matches!(name, "sycl_queue" | "sycl_device" | "sycl_context") => {
                // The device or context of a queue is no queue; `Device.sycl_queue` is.
                if name == "sycl_queue" { value.clone() } else { Value::Unknown }
            }
            Value::Instance(class) | Value::Class(class) => {
                let key = (*class, name);
                if let Some(value) = self.known.attributes.get(&key) {
                    return value.clone();
                }
                match self.index.classes[class.at()].methods.get(name) {
                    Some(id) if self.is_property(*id) => {
                        self.known.returns.get(id).cloned().unwrap_or(Value::Unknown)
                    }
                    Some(id) => Value::Function(*id),
                    None => Value::Unknown,
                }
            }
            Value::Number(_) | Value::Container(_) | Value::Text(_) | Value::HostRandom => {
                Value::Method(Rc::new(value.clone()), name.into())
            }
            _ => Value::Unknown,
        }
    }

    pub(super) fn is_property(&self, id: FunctionId) -> bool {
        match &self.index.functions[id.at()].kind {
            FunctionKind::Def(def) => def.decorator_list.iter().any(|decorator| {
                matches!(&decorator.expression, Expr::Name(name)
                    if matches!(name.id.as_str(), "property" | "cached_property"))
                    || matches!(&decorator.expression, Expr::Attribute(attribute)
                        if attribute.attr.as_str() == "cached_property")
            }),
            _ => false,
        }
    }

    pub(super) fn subscript(&mut self, node: &'a ast::ExprSubscript) -> Value {
        let value = self.expr(&node.value);
        let key = self.expr(&node.slice);
        match &value {
            Value::Array(array) => self.indexed(array, &node.slice),
            Value::Tuple(items) => match key.as_integer() {
                Some(at) => {
                    let at = if at < 0 { at + items.len() as i64 } else { at };
                    usize::try_from(at).ok().and_then(|at| items.get(at).cloned()).unwrap_or(Value::Unknown)
                }
                None if node.slice.is_slice_expr() => container(Some(value.element())),
                None => value.element(),
            },
            Value::Container(_) if node.slice.is_slice_expr() => value.clone(),
            Value::Container(_) => value.element(),
            _ => Value::Unknown,
        }
    }

    /// `array[...]`: follows whole numbers and slices, gives up on the rest.
    pub(super) fn indexed(&mut self, array: &Array, slice: &'a Expr) -> Value {
        let parts: &[Expr] = match slice {
            Expr::Tuple(tuple) => &tuple.elts,
            _ => std::slice::from_ref(slice),
        };
        let unknown = || Value::Array(Array { shape: None, ..array.clone() });
        let Some(shape) = array.shape.clone() else {
            return unknown();
        };
        let mut dims = shape.iter();
        let mut result = Vec::new();
        let used = parts
            .iter()
            .filter(|part| !part.is_ellipsis_literal_expr() && !part.is_none_literal_expr())
            .count();
        for part in parts {
            match part {
                Expr::Slice(slice) => match dims.next() {
                    Some(dim) => result.push(self.sliced(dim, slice)),
                    None => return unknown(),
                },
                Expr::EllipsisLiteral(_) => {
                    for _ in 0..shape.len().saturating_sub(used) {
                        result.extend(dims.next().cloned());
                    }
                }
                Expr::NoneLiteral(_) => result.push(Dim::Known(1)),
                _ => match self.recorded(part) {
                    Value::Number(_) => {
                        if dims.next().is_none() {
                            return unknown();
                        }
                    }
                    Value::Nothing => result.push(Dim::Known(1)),
                    _ => return unknown(),
                },
            }
        }
        result.extend(dims.cloned());
        Value::Array(Array { shape: Some(result.into()), ..array.clone() })
    }

    pub(super) fn sliced(&self, dim: &Dim, slice: &ast::ExprSlice) -> Dim {
        let part = |part: &Option<Box<Expr>>| part.as_ref().map(|part| self.recorded(part).as_integer());
        match (part(&slice.lower), part(&slice.upper), part(&slice.step), dim) {
            (None, None, None, dim) => dim.clone(),
            (lower, Some(Some(upper)), None, dim) if upper >= 0 => match lower.unwrap_or(Some(0)) {
                Some(lower) if lower >= 0 => {
                    let count = u64::try_from(upper.saturating_sub(lower)).unwrap_or(0);
                    match dim {
                        Dim::Known(extent) => Dim::Known(count.min(*extent)),
                        _ => Dim::Known(count),
                    }
                }
                _ => Dim::Unknown,
            },
            (Some(Some(lower)), None, None, Dim::Known(extent)) => {
                let start =
                    if lower < 0 { extent.saturating_sub(lower.unsigned_abs()) } else { lower as u64 };
                Dim::Known(extent.saturating_sub(start))
            }
            (Some(Some(lower)), None, None, _) if lower < 0 => Dim::Known(lower.unsigned_abs()),
            _ => Dim::Unknown,
        }
    }

    pub(super) fn call(&mut self, node: &'a ast::ExprCall) -> Value {
        let callee = self.expr(&node.func);
        let mut starred = false;
        let mut arguments = Vec::with_capacity(node.arguments.args.len());
        for argument in &node.arguments.args {
            starred |= argument.is_starred_expr();
            arguments.push(self.expr(argument));
        }
        let mut keywords = Vec::with_capacity(node.arguments.keywords.len());
        for keyword in &node.arguments.keywords {
            let value = self.expr(&keyword.value);
            if let Some(name) = &keyword.arg {
                keywords.push((name.as_str(), value));
            }
        }
        if starred {
            // Positions are not known: only what does not depend on them is.
            arguments.clear();
            arguments.push(Value::Unknown);
        }
        let call = Call {
            arguments: &arguments,
            keywords: &keywords,
            extents: if starred { None } else { self.extents(node) },
            place: node.range().start().to_u32(),
        };
        match &callee {
            Value::Path(path) => library::call(path, &call),
            Value::Method(owner, name) => match &**owner {
                Value::Array(array) => library::method(array, name, &call),
                Value::HostRandom => library::host_random(name, &call),
                Value::Container(_) => {
                    let owner = (**owner).clone();
                    self.container_method(node, &owner, name, &arguments)
                }
                Value::Text(_) => Value::Unknown,
                _ => Value::Unknown,
            },
            Value::Function(id) => {
                let value = self.known.returns.get(id).cloned().unwrap_or(Value::Unknown);
                if self.index.functions[id.at()].yields { container(Some(value)) } else { value }
            }
            Value::Class(class) => Value::Instance(*class),
            // Only dpnp arrays have this method.
            Value::Unknown
                if arguments.is_empty()
                    && matches!(&*node.func, Expr::Attribute(attribute) if attribute.attr.as_str() == "asnumpy") =>
            {
                Value::Array(Array { on_usm: true, ..Array::host() })
            }
            _ => Value::Unknown,
        }
    }

    pub(super) fn container_method(
        &mut self,
        node: &'a ast::ExprCall,
        owner: &Value,
        name: &str,
        arguments: &[Value],
    ) -> Value {
        let place = match &*node.func {
            Expr::Attribute(attribute) => &*attribute.value,
            _ => return Value::Unknown,
        };
        match (name, arguments) {
            ("append" | "appendleft" | "add", [value]) | ("insert", [_, value]) => {
                self.put_into(place, owner, value.clone());
                Value::Nothing
            }
            ("extend", [values]) => {
                self.put_into(place, owner, values.element());
                Value::Nothing
            }
            ("pop" | "popleft" | "get" | "setdefault", _) => owner.element(),
            ("copy", _) => owner.clone(),
            ("values", _) => owner.clone(),
            ("items", _) => container(Some(Value::Tuple([Value::Unknown, owner.element()].into()))),
            _ => Value::Unknown,
        }
    }

    /// The extents that a creation call names.
    pub(super) fn extents(&self, node: &'a ast::ExprCall) -> Option<Rc<[Dim]>> {
        let shape = node.arguments.args.first().or_else(|| {
            node.arguments.keywords.iter().find(|k| k.arg.as_deref() == Some("shape")).map(|k| &k.value)
        })?;
        match shape {
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                if elts.iter().any(Expr::is_starred_expr) {
                    return None;
                }
                Some(elts.iter().map(|extent| self.dim(extent)).collect())
            }
            _ => match self.recorded(shape) {
                Value::Number(_) => Some([self.dim(shape)].into()),
                Value::Tuple(items) => Some(
                    items
                        .iter()
                        .map(|item| {
                            item.as_integer()
                                .and_then(|extent| u64::try_from(extent).ok())
                                .map_or(Dim::Unknown, Dim::Known)
                        })
                        .collect(),
                ),
                _ => match shape {
                    Expr::Name(name)
                        if self.index.integers.contains(name.id.as_str()) || is_count(name.id.as_str()) =>
                    {
                        Some([Dim::Named(name.id.as_str().into())].into())
                    }
                    Expr::BinOp(operation)
                        if (operation.left.is_number_literal_expr()
                            || operation.right.is_number_literal_expr())
                            && !matches!(operation.op, ast::Operator::Mult) =>
                    {
                        Some([self.dim(shape)].into())
                    }
                    _ => None,
                },
            },
        }
    }

    pub(super) fn dim(&self, extent: &Expr) -> Dim {
        match self.recorded(extent).as_integer().and_then(|extent| u64::try_from(extent).ok()) {
            Some(extent) => Dim::Known(extent),
            None => {
                let range: TextRange = extent.range();
                Dim::Named(self.text[range.start().to_usize()..range.end().to_usize()].into())
            }
        }
    }
}

fn container(held: Option<Value>) -> Value {
    match held {
        Some(value) if nesting(&value) > 6 => Value::Container(Some(Rc::new(Value::Unknown))),
        held => Value::Container(held.map(Rc::new)),
    }
}

/// A name that people give to numbers of things, not to shapes.
fn is_count(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.chars().count() == 1
        || lower.starts_with("n_")
        || lower.starts_with("num")
        || lower.ends_with("_count")
        || lower.ends_with("length")
        || lower.starts_with('n') && lower.len() <= 3
}

fn fold(operator: ast::Operator, one: i64, two: i64) -> Option<i64> {
    match operator {
        ast::Operator::Add => one.checked_add(two),
        ast::Operator::Sub => one.checked_sub(two),
        ast::Operator::Mult => one.checked_mul(two),
        ast::Operator::FloorDiv if two > 0 => Some(one.div_euclid(two)),
        ast::Operator::Mod if two > 0 => Some(one.rem_euclid(two)),
        ast::Operator::Pow => u32::try_from(two).ok().and_then(|two| one.checked_pow(two)),
        ast::Operator::LShift => {
            u32::try_from(two).ok().filter(|two| *two < 62).and_then(|two| one.checked_mul(1 << two))
        }
        _ => None,
    }
}
