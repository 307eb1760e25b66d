//! The flow analysis: walks the module in execution order and computes a [`Value`] for every expression.
//!
//! Branches are joined, loop bodies walked twice, function bodies walked after the module. What a scope's names, a
//! function's returns and a class's attributes hold is summed up in one round and used in the next; the values
//! recorded last are those of the final round. Names bound in a branch only are taken to hold what the branch gave
//! them: a program that reads an unbound name has other worries.

mod expressions;
mod names;

use rustc_hash::FxHashMap;

use super::index::{ClassId, FunctionId, FunctionKind, Index, MODULE};
use super::value::{Number, Value};
use crate::parse::ast::{self, Expr, Stmt};

/// Rounds of the analysis, the last of which is kept.
const ROUNDS: usize = 4;
/// Rounds in which what is not known yet is left out, so that `self.x *= 2` does not make `self.x` unknown.
const OPTIMISTIC_ROUNDS: usize = 2;
/// Loops inside loops beyond which a body is walked once, its names unknown.
const LOOP_LIMIT: usize = 4;
/// Longest dotted path that is followed.
const PATH_LIMIT: usize = 200;

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
