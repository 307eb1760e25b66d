//! The questions that rules ask about a module.

mod fates;
mod loops;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::effects::{self, Effects, Region};
use super::flow;
use super::index::{ExprId, FunctionId, FunctionKind, Index, LoopId, MODULE, StmtId};
use super::library;
use super::value::{Array, Value};
use crate::parse::ast::{self, Expr, Stmt};
use crate::parse::{Ranged, TextRange};
use crate::source::Source;

/// A module with what is known about it.
pub(crate) struct Model<'a> {
    pub(crate) source: &'a Source,
    pub(crate) index: Index<'a>,
    values: Vec<Value>,
    effects: RefCell<FxHashMap<Region, Rc<Effects<'a>>>>,
    changed_attributes: std::cell::OnceCell<FxHashSet<&'a str>>,
    aliased: RefCell<FxHashMap<(&'a str, FunctionId), bool>>,
}

/// Where the value of an expression ends up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate<'a> {
    /// Nobody takes it.
    Discarded,
    /// Read by something that does not keep it.
    Consumed,
    /// Bound to a name.
    Named(&'a str, ExprId),
    /// Stored in an attribute, by its target.
    Attribute(ExprId),
    /// Stored in a container: the container's expression.
    Stored(ExprId),
    /// Element of a comprehension or display that is kept.
    Collected(ExprId),
    Returned,
    Yielded,
    /// Handed to code that is not followed.
    Escapes,
}

const UNKNOWN: Value = Value::Unknown;

impl<'a> Model<'a> {
    pub(crate) fn of(source: &'a Source, suite: &'a [Stmt]) -> Self {
        let index = Index::of(suite);
        let values = flow::values(&index, suite, source.text());
        Self {
            source,
            index,
            values,
            effects: RefCell::default(),
            changed_attributes: std::cell::OnceCell::new(),
            aliased: RefCell::default(),
        }
    }

    /// What `expr` holds.
    pub(crate) fn value(&self, expr: &Expr) -> &Value {
        self.index.expr_id(expr).map_or(&UNKNOWN, |id| &self.values[id.at()])
    }

    /// The dotted path of a module, function or constant.
    pub(crate) fn path(&self, expr: &Expr) -> Option<&str> {
        match self.value(expr) {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn device(&self, expr: &Expr) -> Option<&Array> {
        self.value(expr).as_device()
    }

    pub(crate) fn host(&self, expr: &Expr) -> Option<&Array> {
        self.value(expr).as_host()
    }

    pub(crate) fn text(&self, node: &impl Ranged) -> &'a str {
        self.source.slice(node.range())
    }

    /// Every call with the path of what it calls, if that is in a library.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (ExprId, &'a ast::ExprCall)> + '_ {
        self.index.exprs.iter().enumerate().filter_map(|(at, node)| match node.expr {
            Expr::Call(call) => Some((ExprId(at as u32), call)),
            _ => None,
        })
    }

    /// The dpnp or `dpctl.tensor` function that a call calls.
    pub(crate) fn device_function(&self, call: &ast::ExprCall) -> Option<&str> {
        library::strip_library(self.path(&call.func)?)
    }

    /// The name under which the module that `test` accepts is bound at this place, such as `dpnp` or `np`.
    pub(crate) fn module_name(&self, at: ExprId) -> Option<&'a str> {
        let scope = self.index.node(at).scope;
        let visible = |candidate: FunctionId| {
            let mut scope = scope;
            loop {
                if scope == candidate {
                    return true;
                }
                if scope == MODULE {
                    return false;
                }
                scope = self.index.functions[scope.at()].parent;
            }
        };
        let mut name = None;
        for node in self.index.imports.iter().map(|id| self.index.stmt(*id)) {
            if let Stmt::Import(import) = node.stmt
                && visible(node.scope)
                && !node.guarded
                && node.stmt.start() < self.index.node(at).expr.start()
            {
                for alias in &import.names {
                    if alias.name.as_str() == "dpnp" {
                        name = Some(alias.asname.as_ref().unwrap_or(&alias.name).as_str());
                    }
                }
            }
        }
        name
    }

    // --- regions --------------------------------------------------------------------------------------------

    /// The expressions of a region, in source order.
    pub(crate) fn expressions(&self, region: Region) -> Vec<ExprId> {
        match region {
            Region::Loop(id) => {
                let stmt = self.index.stmt(self.index.loops[id.at()].stmt);
                (stmt.first_expr..stmt.end_expr)
                    .map(ExprId)
                    .filter(|expr| self.in_loop(self.index.node(*expr).innermost, id))
                    .collect()
            }
            Region::Function(id) => self.index.functions[id.at()]
                .exprs
                .clone()
                .map(ExprId)
                .filter(|expr| self.index.node(*expr).scope == id)
                .collect(),
        }
    }

    pub(crate) fn in_loop(&self, innermost: Option<LoopId>, id: LoopId) -> bool {
        self.index.loops_around(innermost).any(|around| around == id)
    }

    pub(crate) fn effects(&self, region: Region) -> Rc<Effects<'a>> {
        if let Some(effects) = self.effects.borrow().get(&region) {
            return Rc::clone(effects);
        }
        let effects = Rc::new(effects::of(self, region, 0));
        self.effects.borrow_mut().insert(region, Rc::clone(&effects));
        effects
    }

    pub(crate) fn loop_effects(&self, id: LoopId) -> Rc<Effects<'a>> {
        self.effects(Region::Loop(id))
    }

    /// True for a parameter of the function.
    pub(crate) fn is_parameter(&self, name: &str, scope: FunctionId) -> bool {
        match &self.index.functions[scope.at()].kind {
            FunctionKind::Def(def) => {
                def.parameters.iter().any(|parameter| parameter.name().as_str() == name)
            }
            FunctionKind::Lambda(_) | FunctionKind::Module => false,
        }
    }

    /// Every load of `name` in the scope, with its number.
    pub(crate) fn loads<'m>(&'m self, name: &'m str, scope: FunctionId) -> impl Iterator<Item = ExprId> + 'm {
        self.index.occurrences_of_scope(name, scope).iter().copied().filter(move |id| {
            let node = self.index.node(*id);
            is_load(node.expr, name)
                && (node.scope == scope
                    || self.is_inside(node.scope, scope) && self.owner(node.scope, name) == scope)
        })
    }

    /// Every binding of `name` in the scope.
    pub(crate) fn stores<'m>(&'m self, name: &str, scope: FunctionId) -> impl Iterator<Item = ExprId> + 'm {
        self.index.occurrences_of_scope(name, scope).iter().copied().filter(move |id| {
            let node = self.index.node(*id);
            node.scope == scope
                && matches!(node.expr, Expr::Name(other) if matches!(other.ctx, ast::ExprContext::Store))
        })
    }

    /// Every binding of `name` in the loop.
    pub(crate) fn stores_in_loop<'m>(&'m self, name: &str, id: LoopId) -> impl Iterator<Item = ExprId> + 'm {
        let stmt = self.index.stmt(self.index.loops[id.at()].stmt);
        self.index.occurrences_in(name, stmt.stmt.range()).iter().copied().filter(move |store| {
            let node = self.index.node(*store);
            node.scope == stmt.scope
                && self.in_loop(node.innermost, id)
                && matches!(node.expr, Expr::Name(other) if matches!(other.ctx, ast::ExprContext::Store))
        })
    }

    /// True if something else than the name may come to hold what it holds.
    pub(crate) fn is_aliased(&self, name: &'a str, scope: FunctionId) -> bool {
        if let Some(known) = self.aliased.borrow().get(&(name, scope)) {
            return *known;
        }
        let aliased = self
            .loads(name, scope)
            .any(|load| !matches!(self.fate(load), Fate::Consumed | Fate::Discarded | Fate::Returned));
        self.aliased.borrow_mut().insert((name, scope), aliased);
        aliased
    }

    /// Occurrences of the name in a range of the source.
    pub(crate) fn mentions<'m>(&'m self, range: TextRange, name: &str) -> impl Iterator<Item = ExprId> + 'm {
        let inside = move |id: &ExprId| range.contains_range(self.range(*id));
        self.index.occurrences_in(name, range).iter().copied().filter(inside)
    }

    /// True for the target of `+=` and its kin.
    pub(crate) fn is_augmented(&self, id: ExprId) -> bool {
        let node = self.index.node(id);
        matches!(self.index.stmt(node.stmt).stmt,
            Stmt::AugAssign(assign) if std::ptr::eq(&*assign.target, node.expr))
    }

    /// True in code whose errors are expected or handled.
    pub(crate) fn is_guarded(&self, id: StmtId) -> bool {
        std::iter::successors(Some(id), |id| self.index.stmt(*id).parent)
            .any(|id| self.index.stmt(id).guarded)
    }

    /// The expression's own range.
    pub(crate) fn range(&self, id: ExprId) -> TextRange {
        self.index.node(id).expr.range()
    }
}

/// A load of the plain name.
pub(crate) fn is_load(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Name(other)
        if other.id.as_str() == name && matches!(other.ctx, ast::ExprContext::Load))
}

/// The name at the root of `a`, `a.b`, `a[0].c` or `a.f().b`.
pub(crate) fn root_name(mut expr: &Expr) -> Option<&str> {
    loop {
        expr = match expr {
            Expr::Name(name) => return Some(name.id.as_str()),
            Expr::Attribute(attribute) => &attribute.value,
            Expr::Subscript(subscript) => &subscript.value,
            Expr::Starred(starred) => &starred.value,
            Expr::Call(call) => &call.func,
            _ => return None,
        };
    }
}

/// The value of a keyword argument.
pub(crate) fn keyword<'c>(call: &'c ast::ExprCall, name: &str) -> Option<&'c Expr> {
    call.arguments
        .keywords
        .iter()
        .find(|keyword| keyword.arg.as_deref() == Some(name))
        .map(|keyword| &keyword.value)
}
