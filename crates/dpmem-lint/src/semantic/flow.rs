//! The flow analysis: walks the module in execution order and computes a [`Value`] for every expression.
//!
//! Branches are joined, loop bodies walked twice, function bodies walked after the module. What a scope's names, a
//! function's returns and a class's attributes hold is summed up in one round and used in the next; the values
//! recorded last are those of the final round. Names bound in a branch only are taken to hold what the branch gave
//! them: a program that reads an unbound name has other worries.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::annotation;
use super::index::{ClassId, FunctionId, FunctionKind, Index, MODULE};
use super::library::{self, Call};
use super::value::{Array, Category, Dim, Dtype, Number, Value};
use crate::parse::ast::{self, Expr, Stmt};
use crate::parse::{Ranged, TextRange};

/// Rounds of the analysis, the last of which is kept.
const ROUNDS: usize = 4;
/// Rounds in which what is not known yet is left out, so that `self.x *= 2` does not make `self.x` unknown.
const OPTIMISTIC_ROUNDS: usize = 2;
/// Loops inside loops beyond which a body is walked once, its names unknown.
const LOOP_LIMIT: usize = 4;
/// Longest dotted path that is followed.
const PATH_LIMIT: usize = 200;

/// Longer lists of numbers are not remembered one by one.
const DISPLAY_LIMIT: usize = 1000;

type Environment<'a> = FxHashMap<&'a str, Value>;

/// What one round learnt about scopes.
#[derive(Default)]
struct Summaries<'a> {
    names: FxHashMap<(FunctionId, &'a str), Value>,
    returns: FxHashMap<FunctionId, Value>,
    attributes: FxHashMap<(ClassId, &'a str), Value>,
}

pub(crate) struct Flow<'a, 'i> {
    index: &'i Index<'a>,
    text: &'a str,
    values: Vec<Value>,
    environment: Environment<'a>,
    scope: FunctionId,
    loop_depth: usize,
    known: Summaries<'a>,
    learnt: Summaries<'a>,
    pending: Vec<FunctionId>,
    optimistic: bool,
}

/// The value of every expression, by its number.
pub(crate) fn values<'a>(index: &Index<'a>, suite: &'a [Stmt], text: &'a str) -> Vec<Value> {
    let mut flow = Flow {
        index,
        text,
        values: vec![Value::Unknown; index.exprs.len()],
        environment: Environment::default(),
        scope: MODULE,
        loop_depth: 0,
        known: Summaries::default(),
        learnt: Summaries::default(),
        pending: Vec::new(),
        optimistic: true,
    };
    for round in 0..ROUNDS {
        flow.optimistic = round < OPTIMISTIC_ROUNDS;
        flow.environment.clear();
        flow.scope = MODULE;
        flow.body(suite);
        while let Some(function) = flow.pending.pop() {
            flow.function(function);
        }
        flow.known = std::mem::take(&mut flow.learnt);
    }
    flow.values
}

impl<'a> Flow<'a, '_> {
    // --- statements -----------------------------------------------------------------------------------------

    fn body(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(node) => self.import(node),
            Stmt::ImportFrom(node) => self.import_from(node),
            Stmt::FunctionDef(node) => self.define(node),
            Stmt::ClassDef(node) => self.class(node),
            Stmt::Assign(node) => {
                let value = self.expr(&node.value);
                for target in &node.targets {
                    self.assign(target, value.clone());
                }
            }
            Stmt::AnnAssign(node) => {
                let promised = self.annotation(&node.annotation);
                let value = match &node.value {
                    Some(value) => match self.expr(value) {
                        Value::Unknown | Value::Nothing => promised,
                        value => value,
                    },
                    None => promised,
                };
                self.assign(&node.target, value);
            }
            Stmt::AugAssign(node) => {
                let before = self.read_target(&node.target);
                let operand = self.expr(&node.value);
                let result = match (&before, &operand) {
                    // In place: the array stays what it is.
                    (Value::Array(array), _) if array.is_device() => before.clone(),
                    _ => self.operator(node.op, &before, &operand),
                };
                self.assign(&node.target, result);
            }
            Stmt::Expr(node) => {
                self.expr(&node.value);
            }
            Stmt::Return(node) => {
                let value = node.value.as_ref().map_or(Value::Nothing, |value| self.expr(value));
                self.returned(value);
            }
            Stmt::Delete(node) => {
                for target in &node.targets {
                    self.expr(target);
                }
            }
            Stmt::For(node) => self.for_loop(node),
            Stmt::While(node) => self.while_loop(node),
            Stmt::If(node) => self.branches(node),
            Stmt::With(node) => {
                for item in &node.items {
                    let value = self.expr(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        let entered = match value {
                            // Most context managers that are containers or arrays are not what they yield.
                            Value::Instance(_) => value,
                            _ => Value::Unknown,
                        };
                        self.assign(target, entered);
                    }
                }
                self.body(&node.body);
            }
            Stmt::Try(node) => self.try_statement(node),
            Stmt::Match(node) => {
                self.expr(&node.subject);
                let before = self.environment.clone();
                let mut joined = before.clone();
                for case in &node.cases {
                    self.environment = before.clone();
                    self.forget_pattern(&case.pattern);
                    if let Some(guard) = &case.guard {
                        self.expr(guard);
                    }
                    self.body(&case.body);
                    joined = join(joined, std::mem::take(&mut self.environment));
                }
                self.environment = joined;
            }
            Stmt::Raise(node) => {
                for value in [&node.exc, &node.cause].into_iter().flatten() {
                    self.expr(value);
                }
            }
            Stmt::Assert(node) => {
                self.expr(&node.test);
                if let Some(message) = &node.msg {
                    self.expr(message);
                }
            }
            _ => {}
        }
    }

    fn import(&mut self, node: &'a ast::StmtImport) {
        for alias in &node.names {
            let module = alias.name.as_str();
            match &alias.asname {
                Some(name) => self.bind(name.as_str(), Value::path(module)),
                None => {
                    let root = module.split('.').next().unwrap_or(module);
                    self.bind(root, Value::path(root));
                }
            }
        }
    }

    fn import_from(&mut self, node: &'a ast::StmtImportFrom) {
        for alias in &node.names {
            let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
            let value = match (&node.module, node.level) {
                (Some(module), 0) => Value::path(&format!("{}.{}", module.as_str(), alias.name.as_str())),
                _ => Value::Unknown,
            };
            self.bind(name, value);
        }
    }

    fn define(&mut self, node: &'a ast::StmtFunctionDef) {
        let mut plain = true;
        for decorator in &node.decorator_list {
            let value = self.expr(&decorator.expression);
            plain &= keeps_function(&value, &decorator.expression);
        }
        for parameter in &*node.parameters {
            if let Some(default) = parameter.default() {
                self.expr(default);
            }
            if let Some(annotation) = parameter.annotation() {
                self.expr(annotation);
            }
        }
        if let Some(id) = self.index.function_id(node) {
            self.pending.push(id);
            self.bind(node.name.as_str(), if plain { Value::Function(id) } else { Value::Unknown });
        }
    }

    fn class(&mut self, node: &'a ast::StmtClassDef) {
        for decorator in &node.decorator_list {
            self.expr(&decorator.expression);
        }
        if let Some(arguments) = &node.arguments {
            for argument in &arguments.args {
                self.expr(argument);
            }
        }
        let Some(id) = self.index.class_id(node) else { return };
        // The body sees the names around it; what it binds becomes attributes.
        let before = self.environment.clone();
        self.body(&node.body);
        let inside = std::mem::replace(&mut self.environment, before);
        for (name, value) in inside {
            if self.environment.get(name) != Some(&value) {
                self.learn_attribute(id, name, value);
            }
        }
        self.bind(node.name.as_str(), Value::Class(id));
    }

    fn for_loop(&mut self, node: &'a ast::StmtFor) {
        let iterated = self.expr(&node.iter);
        let element = iterated.element();
        self.repeat(|flow| {
            flow.assign(&node.target, element.clone());
            flow.body(&node.body);
        });
        self.body(&node.orelse);
    }

    fn while_loop(&mut self, node: &'a ast::StmtWhile) {
        self.repeat(|flow| {
            flow.expr(&node.test);
            flow.body(&node.body);
        });
        self.body(&node.orelse);
    }

    /// Walks a loop body until what it carries around is stable, at most twice.
    fn repeat(&mut self, mut run: impl FnMut(&mut Self)) {
        let before = self.environment.clone();
        self.loop_depth += 1;
        if self.loop_depth <= LOOP_LIMIT {
            run(self);
            let after = std::mem::take(&mut self.environment);
            self.environment = join(before.clone(), after);
        } else {
            self.environment.values_mut().for_each(|value| {
                if !matches!(value, Value::Path(_)) {
                    *value = Value::Unknown;
                }
            });
        }
        run(self);
        self.loop_depth -= 1;
        let after = std::mem::take(&mut self.environment);
        self.environment = join(before, after);
    }

    fn branches(&mut self, node: &'a ast::StmtIf) {
        self.expr(&node.test);
        let before = self.environment.clone();
        self.narrow(&node.test);
        self.body(&node.body);
        let mut joined = if leaves(&node.body) { None } else { Some(std::mem::take(&mut self.environment)) };
        let mut exhaustive = false;
        for clause in &node.elif_else_clauses {
            self.environment = before.clone();
            match &clause.test {
                Some(test) => {
                    self.expr(test);
                    self.narrow(test);
                }
                None => exhaustive = true,
            }
            self.body(&clause.body);
            if !leaves(&clause.body) {
                let after = std::mem::take(&mut self.environment);
                joined = Some(joined.map_or_else(|| after.clone(), |joined| join(joined, after.clone())));
            }
        }
        if !exhaustive {
            joined = Some(joined.map_or_else(|| before.clone(), |joined| join(joined, before.clone())));
        }
        self.environment = joined.unwrap_or(before);
    }

    /// `isinstance(x, dpnp.ndarray)` tells what `x` is in the branch.
    fn narrow(&mut self, test: &'a Expr) {
        let Expr::Call(call) = test else { return };
        let (Expr::Name(function), [Expr::Name(name), class]) = (&*call.func, &*call.arguments.args) else {
            return;
        };
        if function.id.as_str() != "isinstance" {
            return;
        }
        let promised = self.annotation(class);
        self.environment.insert(name.id.as_str(), promised);
    }

    fn try_statement(&mut self, node: &'a ast::StmtTry) {
        let before = self.environment.clone();
        self.body(&node.body);
        // A handler starts anywhere in the body.
        let interrupted = join(before, self.environment.clone());
        self.body(&node.orelse);
        let mut joined = std::mem::take(&mut self.environment);
        for handler in &node.handlers {
            let ast::ExceptHandler::ExceptHandler(handler) = handler;
            self.environment = interrupted.clone();
            if let Some(kind) = &handler.type_ {
                self.expr(kind);
            }
            if let Some(name) = &handler.name {
                self.bind(name.as_str(), Value::Unknown);
            }
            self.body(&handler.body);
            if !leaves(&handler.body) {
                joined = join(joined, std::mem::take(&mut self.environment));
            }
        }
        self.environment = joined;
        self.body(&node.finalbody);
    }

    fn function(&mut self, id: FunctionId) {
        let node = &self.index.functions[id.at()];
        if node.compiled {
            return;
        }
        self.scope = id;
        self.environment.clear();
        match &node.kind {
            FunctionKind::Module => {}
            FunctionKind::Def(def) => {
                self.parameters(&def.parameters, node.class);
                self.body(&def.body);
                if let Some(returns) = &def.returns {
                    let promised = self.annotation(returns);
                    if !matches!(promised, Value::Unknown) {
                        self.learnt.returns.insert(id, promised);
                    }
                }
            }
            FunctionKind::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.parameters(parameters, None);
                }
                let value = self.expr(&lambda.body);
                self.returned(value);
            }
        }
    }

    fn parameters(&mut self, parameters: &'a ast::Parameters, class: Option<ClassId>) {
        for (at, parameter) in parameters.iter().enumerate() {
            let name = parameter.name().as_str();
            let annotated =
                parameter.annotation().map_or(Value::Unknown, |annotation| self.annotation(annotation));
            let value = match (annotated, parameter.default()) {
                (Value::Unknown, Some(default)) => match self.recorded(default) {
                    // A default says what a caller may pass only if it is data: a module is swapped at will.
                    value @ (Value::Array(_) | Value::Number(_) | Value::Text(_)) => without_constant(value),
                    _ => Value::Unknown,
                },
                (annotated, _) => annotated,
            };
            let value = match class {
                Some(class) if at == 0 && name == "self" => Value::Instance(class),
                _ => value,
            };
            self.environment.insert(name, value.clone());
            self.learn_name(name, value);
        }
    }

    fn returned(&mut self, value: Value) {
        if self.optimistic && matches!(value, Value::Unknown) {
            return;
        }
        let value = match self.learnt.returns.remove(&self.scope) {
            Some(before) => before.join(value),
            None => value,
        };
        self.learnt.returns.insert(self.scope, value);
    }

    // --- names ----------------------------------------------------------------------------------------------

    fn bind(&mut self, name: &'a str, value: Value) {
        let node = &self.index.functions[self.scope.at()];
        if node.globals.contains(name) || node.nonlocals.contains(name) {
            let owner = if node.globals.contains(name) { MODULE } else { self.owner(node.parent, name) };
            self.learn(owner, name, value.clone());
        } else {
            self.learn_name(name, value.clone());
        }
        self.environment.insert(name, value);
    }

    /// The nearest function from `scope` outwards that binds `name`.
    fn owner(&self, mut scope: FunctionId, name: &str) -> FunctionId {
        while scope != MODULE && !self.index.functions[scope.at()].bound.contains(name) {
            scope = self.index.functions[scope.at()].parent;
        }
        scope
    }

    fn learn_name(&mut self, name: &'a str, value: Value) {
        self.learn(self.scope, name, value);
    }

    fn learn(&mut self, scope: FunctionId, name: &'a str, value: Value) {
        if self.optimistic && matches!(value, Value::Unknown) {
            return;
        }
        let value = match self.learnt.names.remove(&(scope, name)) {
            Some(before) => before.join(without_constant(value)),
            None => value,
        };
        self.learnt.names.insert((scope, name), value);
    }

    fn learn_attribute(&mut self, class: ClassId, name: &'a str, value: Value) {
        if self.optimistic && matches!(value, Value::Unknown) {
            return;
        }
        let value = match self.learnt.attributes.remove(&(class, name)) {
            Some(before) => before.join(value),
            None => value,
        };
        self.learnt.attributes.insert((class, name), value);
    }

    fn look_up(&self, name: &str) -> Value {
        if let Some(value) = self.environment.get(name) {
            return value.clone();
        }
        let mut scope = self.scope;
        loop {
            let node = &self.index.functions[scope.at()];
            if scope != self.scope && node.bound.contains(name) || scope == MODULE {
                break;
            }
            scope = node.parent;
        }
        let mut key = None;
        // The map is keyed by borrowed names of the tree; find the entry by content.
        if let Some(bound) = self.index.functions[scope.at()].bound.get(name) {
            key = Some((scope, *bound));
        }
        match key {
            Some(key) => self
                .known
                .names
                .get(&key)
                .or_else(|| self.learnt.names.get(&key))
                .cloned()
                .unwrap_or(Value::Unknown),
            None if is_builtin(name) => Value::path(&format!("builtins.{name}")),
            None => Value::Unknown,
        }
    }

    fn assign(&mut self, target: &'a Expr, value: Value) {
        self.record(target, &value);
        match target {
            Expr::Name(name) => self.bind(name.id.as_str(), value),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let starred = elts.iter().any(Expr::is_starred_expr);
                for (at, element) in elts.iter().enumerate() {
                    let value = match &value {
                        Value::Tuple(items) if !starred && items.len() == elts.len() => items[at].clone(),
                        value => value.element(),
                    };
                    self.assign(element, value);
                }
            }
            Expr::Starred(starred) => self.assign(&starred.value, Value::Container(Some(Rc::new(value)))),
            Expr::Attribute(attribute) => {
                if let Value::Instance(class) = self.expr(&attribute.value) {
                    self.learn_attribute(class, attribute.attr.as_str(), value);
                }
            }
            Expr::Subscript(subscript) => {
                let container = self.expr(&subscript.value);
                self.expr(&subscript.slice);
                self.put_into(&subscript.value, &container, value);
            }
            _ => {}
        }
    }

    /// Notes that the container at `place` now holds `value` too.
    fn put_into(&mut self, place: &'a Expr, container: &Value, value: Value) {
        if !matches!(container, Value::Container(_)) {
            return;
        }
        let grown = container.clone().join(Value::Container(Some(Rc::new(value))));
        if nesting(&grown) > 6 {
            return;
        }
        match place {
            Expr::Name(name) => {
                let name = name.id.as_str();
                let owner = self.owner(self.scope, name);
                self.learn(owner, name, grown.clone());
                if self.environment.contains_key(name) {
                    self.environment.insert(name, grown);
                }
            }
            Expr::Attribute(attribute) => {
                if let Value::Instance(class) = self.recorded(&attribute.value) {
                    self.learn_attribute(class, attribute.attr.as_str(), grown);
                }
            }
            _ => {}
        }
    }

    fn read_target(&mut self, target: &'a Expr) -> Value {
        match target {
            Expr::Name(name) => self.look_up(name.id.as_str()),
            Expr::Attribute(_) | Expr::Subscript(_) => self.expr(target),
            _ => Value::Unknown,
        }
    }

    fn forget_pattern(&mut self, pattern: &'a ast::Pattern) {
        match pattern {
            ast::Pattern::MatchAs(node) => {
                if let Some(name) = &node.name {
                    self.bind(name.as_str(), Value::Unknown);
                }
                if let Some(pattern) = &node.pattern {
                    self.forget_pattern(pattern);
                }
            }
            ast::Pattern::MatchStar(node) => {
                if let Some(name) = &node.name {
                    self.bind(name.as_str(), Value::Unknown);
                }
            }
            ast::Pattern::MatchSequence(node) => {
                node.patterns.iter().for_each(|pattern| self.forget_pattern(pattern));
            }
            ast::Pattern::MatchOr(node) => {
                node.patterns.iter().for_each(|pattern| self.forget_pattern(pattern));
            }
            ast::Pattern::MatchMapping(node) => {
                node.patterns.iter().for_each(|pattern| self.forget_pattern(pattern));
                if let Some(name) = &node.rest {
                    self.bind(name.as_str(), Value::Unknown);
                }
            }
            ast::Pattern::MatchClass(node) => {
                node.arguments.patterns.iter().for_each(|pattern| self.forget_pattern(pattern));
                node.arguments.keywords.iter().for_each(|keyword| self.forget_pattern(&keyword.pattern));
            }
            ast::Pattern::MatchValue(_) | ast::Pattern::MatchSingleton(_) => {}
        }
    }

    fn annotation(&mut self, annotation: &Expr) -> Value {
        annotation::promised(annotation, &mut |expr| self.resolve(expr))
    }

    /// A dotted name in an annotation.
    fn resolve(&self, expr: &Expr) -> Value {
        match expr {
            Expr::Name(name) => self.look_up(name.id.as_str()),
            Expr::Attribute(attribute) => match self.resolve(&attribute.value) {
                Value::Path(path) if path.len() < PATH_LIMIT => {
                    Value::path(&format!("{path}.{}", attribute.attr.as_str()))
                }
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    // --- expressions ----------------------------------------------------------------------------------------

    fn record(&mut self, expr: &Expr, value: &Value) {
        if let Some(id) = self.index.expr_id(expr) {
            self.values[id.at()] = value.clone();
        }
    }

    fn recorded(&self, expr: &Expr) -> Value {
        self.index.expr_id(expr).map_or(Value::Unknown, |id| self.values[id.at()].clone())
    }

    fn expr(&mut self, expr: &'a Expr) -> Value {
        let value = self.evaluate(expr);
        self.record(expr, &value);
        value
    }

    fn evaluate(&mut self, expr: &'a Expr) -> Value {
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

    fn interpolated(&mut self, element: &'a ast::InterpolatedStringElement) {
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
    fn display(&mut self, elements: &'a [Expr], ordered: bool) -> Value {
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

    fn comprehension(
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

    fn operator(&mut self, operator: ast::Operator, left: &Value, right: &Value) -> Value {
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

    fn attribute(&mut self, value: &Value, name: &'a str) -> Value {
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

    fn is_property(&self, id: FunctionId) -> bool {
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

    fn subscript(&mut self, node: &'a ast::ExprSubscript) -> Value {
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
    fn indexed(&mut self, array: &Array, slice: &'a Expr) -> Value {
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

    fn sliced(&self, dim: &Dim, slice: &ast::ExprSlice) -> Dim {
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

    fn call(&mut self, node: &'a ast::ExprCall) -> Value {
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

    fn container_method(
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
    fn extents(&self, node: &'a ast::ExprCall) -> Option<Rc<[Dim]>> {
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

    fn dim(&self, extent: &Expr) -> Dim {
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

/// How many containers are inside each other.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Container(Some(held)) => 1 + nesting(held),
        Value::Tuple(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Method(owner, _) => nesting(owner),
        _ => 0,
    }
}

/// A constant stops being one where a name is bound twice.
fn without_constant(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(Number { integer: None, ..number }),
        Value::Text(_) => Value::Text(None),
        value => value,
    }
}

fn join<'a>(mut one: Environment<'a>, two: Environment<'a>) -> Environment<'a> {
    for (name, value) in two {
        let joined = match one.remove(name) {
            Some(before) => before.join(value),
            None => value,
        };
        one.insert(name, joined);
    }
    one
}

/// True if control never falls out of the block's end.
fn leaves(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)))
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

/// A decorator that leaves the function's parameters and returns as they are.
fn keeps_function(value: &Value, decorator: &Expr) -> bool {
    let target = match decorator {
        Expr::Call(call) => &*call.func,
        other => other,
    };
    let name = match target {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    let _ = value;
    matches!(
        name,
        "lru_cache"
            | "cache"
            | "wraps"
            | "staticmethod"
            | "classmethod"
            | "property"
            | "cached_property"
            | "abstractmethod"
            | "override"
            | "final"
            | "profile"
            | "track"
    )
}

fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "all"
            | "any"
            | "bool"
            | "callable"
            | "dict"
            | "enumerate"
            | "filter"
            | "float"
            | "format"
            | "hasattr"
            | "hash"
            | "id"
            | "int"
            | "isinstance"
            | "iter"
            | "len"
            | "list"
            | "map"
            | "max"
            | "min"
            | "next"
            | "ord"
            | "print"
            | "range"
            | "repr"
            | "reversed"
            | "round"
            | "set"
            | "sorted"
            | "str"
            | "sum"
            | "tuple"
            | "type"
            | "zip"
            | "complex"
            | "pow"
    )
}
