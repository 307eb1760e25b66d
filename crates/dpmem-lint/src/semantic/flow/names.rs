//! Names, attributes and containers: what is bound, and what is found.

use std::rc::Rc;

use super::{Flow, PATH_LIMIT, nesting, without_constant};
use crate::parse::ast::{self, Expr};
use crate::semantic::annotation;
use crate::semantic::index::{ClassId, FunctionId, MODULE};
use crate::semantic::value::Value;

impl<'a> Flow<'a, '_> {
    pub(super) fn bind(&mut self, name: &'a str, value: Value) {
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
    pub(super) fn owner(&self, mut scope: FunctionId, name: &str) -> FunctionId {
        while scope != MODULE && !self.index.functions[scope.at()].bound.contains(name) {
            scope = self.index.functions[scope.at()].parent;
        }
        scope
    }

    pub(super) fn learn_name(&mut self, name: &'a str, value: Value) {
        self.learn(self.scope, name, value);
    }

    pub(super) fn learn(&mut self, scope: FunctionId, name: &'a str, value: Value) {
        if self.optimistic && matches!(value, Value::Unknown) {
            return;
        }
        let value = match self.learnt.names.remove(&(scope, name)) {
            Some(before) => before.join(without_constant(value)),
            None => value,
        };
        self.learnt.names.insert((scope, name), value);
    }

    pub(super) fn learn_attribute(&mut self, class: ClassId, name: &'a str, value: Value) {
        if self.optimistic && matches!(value, Value::Unknown) {
            return;
        }
        let value = match self.learnt.attributes.remove(&(class, name)) {
            Some(before) => before.join(value),
            None => value,
        };
        self.learnt.attributes.insert((class, name), value);
    }

    pub(super) fn look_up(&self, name: &str) -> Value {
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

    pub(super) fn assign(&mut self, target: &'a Expr, value: Value) {
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
    pub(super) fn put_into(&mut self, place: &'a Expr, container: &Value, value: Value) {
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

    pub(super) fn read_target(&mut self, target: &'a Expr) -> Value {
        match target {
            Expr::Name(name) => self.look_up(name.id.as_str()),
            Expr::Attribute(_) | Expr::Subscript(_) => self.expr(target),
            _ => Value::Unknown,
        }
    }

    pub(super) fn forget_pattern(&mut self, pattern: &'a ast::Pattern) {
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

    pub(super) fn annotation(&mut self, annotation: &Expr) -> Value {
        annotation::promised(annotation, &mut |expr| self.resolve(expr))
    }

    /// A dotted name in an annotation.
    pub(super) fn resolve(&self, expr: &Expr) -> Value {
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
