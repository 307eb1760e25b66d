//! The questions that rules ask about a module.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::effects::{self, Effects, Region};
use super::flow;
use super::index::{ExprId, FunctionId, FunctionKind, Index, LoopId, LoopKind, MODULE, StmtId};
use super::library;
use super::value::{Array, Dim, Value};
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

/// Alias chains longer than this are given up.
const ALIAS_LIMIT: usize = 8;

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
        for node in &self.index.stmts {
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
            Region::Function(id) => {
                let all = 0..self.index.exprs.len() as u32;
                let own = match &self.index.functions[id.at()].kind {
                    FunctionKind::Def(_) | FunctionKind::Lambda(_) | FunctionKind::Module => all,
                };
                own.map(ExprId).filter(|expr| self.index.node(*expr).scope == id).collect()
            }
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

    // --- loops ----------------------------------------------------------------------------------------------

    /// How often the loop runs, if the program says so.
    pub(crate) fn trips(&self, id: LoopId) -> Option<u64> {
        let iterated = match &self.index.loops[id.at()].kind {
            LoopKind::While(_) => return None,
            LoopKind::For(node) => &*node.iter,
            LoopKind::Comprehension(_, generator) => &generator.iter,
        };
        self.length(iterated)
    }

    /// True if the loop may run long: `while`, `range`, or over an array, not over a list nobody knows.
    pub(crate) fn may_run_long(&self, id: LoopId) -> bool {
        match &self.index.loops[id.at()].kind {
            LoopKind::While(_) => true,
            LoopKind::For(node) => self.walks_many(&node.iter),
            LoopKind::Comprehension(_, generator) => self.walks_many(&generator.iter),
        }
    }

    fn walks_many(&self, iterated: &Expr) -> bool {
        match iterated {
            Expr::Call(call) => match self.path(&call.func) {
                Some("builtins.range") => true,
                Some("builtins.enumerate" | "builtins.zip" | "builtins.reversed") => {
                    call.arguments.args.iter().any(|argument| self.walks_many(argument))
                }
                _ => self.value(iterated).as_array().is_some(),
            },
            _ => self.value(iterated).as_array().is_some(),
        }
    }

    fn length(&self, iterated: &Expr) -> Option<u64> {
        match iterated {
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. })
                if !elts.iter().any(Expr::is_starred_expr) =>
            {
                Some(elts.len() as u64)
            }
            Expr::Call(call) if self.path(&call.func).is_some_and(|path| path.starts_with("builtins.")) => {
                match (self.path(&call.func)?, &*call.arguments.args) {
                    ("builtins.range", arguments) => {
                        let numbers: Option<Vec<i64>> =
                            arguments.iter().map(|argument| self.value(argument).as_integer()).collect();
                        let (start, stop, step) = match numbers?.as_slice() {
                            [stop] => (0, *stop, 1),
                            [start, stop] => (*start, *stop, 1),
                            [start, stop, step] if *step != 0 => (*start, *stop, *step),
                            _ => return None,
                        };
                        let span =
                            if step > 0 { stop.checked_sub(start)? } else { start.checked_sub(stop)? };
                        Some(span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
                    }
                    ("builtins.enumerate" | "builtins.reversed" | "builtins.sorted", [inner, ..]) => {
                        self.length(inner)
                    }
                    ("builtins.zip", arguments) => {
                        arguments.iter().filter_map(|argument| self.length(argument)).min()
                    }
                    _ => None,
                }
            }
            _ => match self.value(iterated) {
                Value::Tuple(items) => Some(items.len() as u64),
                Value::Array(array) => match array.shape.as_ref()?.first()? {
                    Dim::Known(extent) => Some(*extent),
                    _ => None,
                },
                _ => self.display_length(iterated),
            },
        }
    }

    /// Greatest length of a name that is only bound to lists or tuples as written, and never grows.
    fn display_length(&self, iterated: &Expr) -> Option<u64> {
        let Expr::Name(name) = iterated else { return None };
        let name = name.id.as_str();
        let scope = self.owner(self.index.node(self.index.expr_id(iterated)?).scope, name);
        let mut stores = self
            .index
            .occurrences(name)
            .iter()
            .map(|id| self.index.node(*id))
            .filter(|node| !is_load(node.expr, name) && self.owner(node.scope, name) == scope);
        let length = stores.try_fold(None, |longest: Option<u64>, store| {
            let Stmt::Assign(assign) = self.index.stmt(store.stmt).stmt else { return None };
            match &*assign.value {
                Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. })
                    if store.parent.is_none() && !elts.iter().any(Expr::is_starred_expr) =>
                {
                    Some(longest.max(Some(elts.len() as u64)))
                }
                _ => None,
            }
        })??;
        let grows = self.index.occurrences(name).iter().any(|id| {
            let parent = self.index.node(*id).parent.map(|parent| self.index.node(parent).expr);
            matches!(parent, Some(Expr::Attribute(attribute))
                if matches!(attribute.attr.as_str(), "append" | "extend" | "insert"))
        });
        (!grows).then_some(length)
    }

    /// True if the expression is evaluated in every iteration: behind no `if`, `except`, `match`, `and` or `or`.
    pub(crate) fn runs_always(&self, id: ExprId, within: LoopId) -> bool {
        let bound = &self.index.loops[within.at()];
        let whole = match &bound.kind {
            LoopKind::Comprehension(whole, _) => Some(*whole),
            _ => None,
        };
        let mut child = id;
        while let Some(parent) = self.index.node(child).parent {
            let (inner, outer) = (self.index.node(child).expr, self.index.node(parent).expr);
            if whole.is_some_and(|whole| std::ptr::eq(whole, inner)) {
                return true;
            }
            match outer {
                Expr::If(node) if !std::ptr::eq(&*node.test, inner) => return false,
                Expr::BoolOp(node) if !std::ptr::eq(&raw const node.values[0], inner) => return false,
                _ => {}
            }
            child = parent;
        }
        if whole.is_some() {
            return true;
        }
        let mut at = self.index.node(id).stmt;
        // The test of an `if` or `while` itself always runs.
        while let Some(parent) = self.index.stmt(at).parent
            && at != bound.stmt
        {
            if parent != bound.stmt
                && matches!(self.index.stmt(parent).stmt, Stmt::If(_) | Stmt::Match(_) | Stmt::Try(_))
            {
                let in_try = match self.index.stmt(parent).stmt {
                    Stmt::Try(node) => {
                        node.body.iter().any(|stmt| std::ptr::eq(stmt, self.index.stmt(at).stmt))
                    }
                    _ => false,
                };
                if !in_try {
                    return false;
                }
            }
            at = parent;
        }
        true
    }

    /// True unless the loops from `innermost` out to `outermost` are known to run fewer than `least` times.
    pub(crate) fn repeats(&self, innermost: LoopId, outermost: LoopId, least: u64) -> bool {
        let mut product = 1_u64;
        for id in self.index.loops_around(Some(innermost)) {
            if self.runs_once(id) {
                if id == outermost {
                    break;
                }
                continue;
            }
            match self.trips(id) {
                None => return true,
                Some(trips) => product = product.saturating_mul(trips),
            }
            if id == outermost {
                break;
            }
        }
        product >= least
    }

    /// True for a loop whose body ends by leaving it.
    fn runs_once(&self, id: LoopId) -> bool {
        let body = match &self.index.loops[id.at()].kind {
            LoopKind::For(node) => &node.body,
            LoopKind::While(node) => &node.body,
            LoopKind::Comprehension(..) => return false,
        };
        matches!(body.last(), Some(Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_)))
    }

    /// The innermost loop that, with the loops inside it, repeats at least `least` times.
    pub(crate) fn busy_loop(&self, innermost: Option<LoopId>, least: u64) -> Option<LoopId> {
        let first = innermost?;
        self.index.loops_around(innermost).find(|id| self.repeats(first, *id, least))
    }

    /// The outermost loop around `at` in which `expr` never changes, if it repeats.
    pub(crate) fn invariant_in(&self, expr: &'a Expr, innermost: Option<LoopId>) -> Option<LoopId> {
        self.index.loops_around(innermost).take_while(|id| self.is_invariant(expr, *id)).last()
    }

    /// True if `expr` has the same value, with the same contents, in every iteration.
    pub(crate) fn is_invariant(&self, expr: &'a Expr, id: LoopId) -> bool {
        let all = |exprs: &'a [Expr]| exprs.iter().all(|expr| self.is_invariant(expr, id));
        match expr {
            Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_) => true,
            Expr::Name(name) => self.name_is_invariant(name.id.as_str(), id),
            Expr::Attribute(attribute) => {
                matches!(self.value(expr), Value::Path(_))
                    || self.is_invariant(&attribute.value, id) && self.attribute_is_invariant(attribute, id)
            }
            Expr::Subscript(subscript) => {
                self.is_invariant(&subscript.value, id) && self.is_invariant(&subscript.slice, id)
            }
            Expr::Slice(slice) => [&slice.lower, &slice.upper, &slice.step]
                .into_iter()
                .flatten()
                .all(|part| self.is_invariant(part, id)),
            Expr::BinOp(node) => self.is_invariant(&node.left, id) && self.is_invariant(&node.right, id),
            Expr::UnaryOp(node) => self.is_invariant(&node.operand, id),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => all(elts),
            Expr::Call(call) => {
                let pure = match self.value(&call.func) {
                    Value::Path(path) => is_repeatable(path),
                    Value::Method(owner, name) => {
                        matches!(&**owner, Value::Array(_))
                            && !matches!(&**name, "fill" | "sort" | "put" | "partition")
                            && matches!(&*call.func, Expr::Attribute(attribute)
                                if self.is_invariant(&attribute.value, id))
                    }
                    _ => false,
                };
                pure && all(&call.arguments.args)
                    && call.arguments.keywords.iter().all(|keyword| {
                        keyword.arg.as_deref() != Some("out") && self.is_invariant(&keyword.value, id)
                    })
            }
            _ => false,
        }
    }

    fn name_is_invariant(&self, name: &'a str, id: LoopId) -> bool {
        let effects = self.loop_effects(id);
        if effects.bound.contains(name) || effects.touched.contains(name) {
            return false;
        }
        let scope = self.index.stmt(self.index.loops[id.at()].stmt).scope;
        let busy = effects.calls_unknown || !effects.touched.is_empty();
        !(busy && self.is_shared(name, scope))
    }

    /// True if the loop binds the name to another object; `+=` on a container does not.
    pub(crate) fn rebinds(&self, name: &str, id: LoopId) -> bool {
        let stmt = self.index.stmt(self.index.loops[id.at()].stmt);
        let inside = stmt.first_expr..stmt.end_expr;
        self.index.occurrences(name).iter().copied().filter(|id| inside.contains(&id.0)).any(|expr| {
            let node = self.index.node(expr);
            self.in_loop(node.innermost, id) && !is_load(node.expr, name) && !self.is_augmented(expr)
        })
    }

    /// True if the plain name is not rebound in the loop.
    pub(crate) fn is_invariant_name(&self, expr: &Expr, id: LoopId) -> bool {
        matches!(expr, Expr::Name(name) if !self.loop_effects(id).bound.contains(name.id.as_str()))
    }

    fn attribute_is_invariant(&self, attribute: &'a ast::ExprAttribute, id: LoopId) -> bool {
        let name = attribute.attr.as_str();
        if self.loop_effects(id).attributes.contains(name) {
            return false;
        }
        match self.value(&attribute.value) {
            // What arrays say about themselves.
            Value::Array(_) => true,
            _ => !self.changed_attributes().contains(name) && !self.loop_effects(id).calls_unknown,
        }
    }

    /// Names of attributes stored or changed anywhere but in `__init__`.
    fn changed_attributes(&self) -> &FxHashSet<&'a str> {
        self.changed_attributes.get_or_init(|| {
            let mut changed = FxHashSet::default();
            for at in 0..self.index.functions.len() {
                let initialiser = matches!(&self.index.functions[at].kind,
                    FunctionKind::Def(def) if def.name.as_str() == "__init__");
                if !initialiser {
                    let effects = self.effects(Region::Function(FunctionId(at as u32)));
                    changed.extend(effects.attributes.iter().copied());
                }
            }
            changed
        })
    }

    /// True if the object that `name` holds may be reached, and changed, by another way.
    fn is_shared(&self, name: &'a str, scope: FunctionId) -> bool {
        let owner = self.owner(scope, name);
        for (at, node) in self.index.functions.iter().enumerate() {
            let other = FunctionId(at as u32);
            if other == scope || !self.is_inside(other, owner) && owner != MODULE {
                continue;
            }
            let hides = node.bound.contains(name)
                && !node.globals.contains(name)
                && !node.nonlocals.contains(name)
                && other != owner;
            if !hides && other != owner {
                let effects = self.effects(Region::Function(other));
                if effects.touched.contains(name) || effects.bound.contains(name) {
                    return true;
                }
            }
        }
        self.index.occurrences(name).iter().any(|id| {
            let node = self.index.node(*id);
            node.scope == owner
                && is_load(node.expr, name)
                && matches!(
                    self.fate(*id),
                    Fate::Named(..)
                        | Fate::Attribute(_)
                        | Fate::Stored(_)
                        | Fate::Collected(_)
                        | Fate::Escapes
                )
        })
    }

    fn is_inside(&self, mut scope: FunctionId, outer: FunctionId) -> bool {
        while scope != outer {
            if scope == MODULE {
                return false;
            }
            scope = self.index.functions[scope.at()].parent;
        }
        true
    }

    /// The scope that binds `name` as seen from `scope`.
    pub(crate) fn owner(&self, mut scope: FunctionId, name: &str) -> FunctionId {
        loop {
            let node = &self.index.functions[scope.at()];
            if node.globals.contains(name) {
                return MODULE;
            }
            if scope == MODULE || node.bound.contains(name) && !node.nonlocals.contains(name) {
                return scope;
            }
            scope = node.parent;
        }
    }

    // --- fates ----------------------------------------------------------------------------------------------

    /// Where the value of an expression goes.
    pub(crate) fn fate(&self, id: ExprId) -> Fate<'a> {
        let node = self.index.node(id);
        let Some(parent) = node.parent else {
            return self.statement_fate(id);
        };
        let expr = node.expr;
        let is = |other: &Expr| std::ptr::eq(other, expr);
        match self.index.node(parent).expr {
            Expr::Call(call) => {
                if is(&call.func) {
                    Fate::Consumed
                } else {
                    self.argument_fate(parent, call, expr)
                }
            }
            Expr::Attribute(attribute) => self.member_fate(parent, attribute),
            Expr::Subscript(subscript) => {
                let reads = is(&subscript.value) && matches!(subscript.ctx, ast::ExprContext::Load);
                let copies =
                    self.value(&subscript.value).as_array().is_some() && self.is_advanced(&subscript.slice);
                if reads && !copies { self.fate(parent) } else { Fate::Consumed }
            }
            Expr::If(node) if is(&node.test) => Fate::Consumed,
            Expr::Named(named) => match &*named.target {
                Expr::Name(name) if is(&named.value) => match self.index.expr_id(&named.target) {
                    Some(target) => Fate::Named(name.id.as_str(), target),
                    None => Fate::Escapes,
                },
                _ => Fate::Consumed,
            },
            Expr::BoolOp(_) | Expr::If(_) | Expr::Await(_) | Expr::Starred(_) => self.fate(parent),
            Expr::Tuple(_) | Expr::List(_) | Expr::Set(_) | Expr::Dict(_) => self.collected(parent, id),
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                let element = match self.index.node(parent).expr {
                    Expr::ListComp(node) => is(&node.elt),
                    Expr::SetComp(node) => is(&node.elt),
                    Expr::Generator(node) => is(&node.elt),
                    Expr::DictComp(node) => is(&node.value),
                    _ => false,
                };
                if element { self.collected(parent, id) } else { Fate::Consumed }
            }
            Expr::Lambda(_) => Fate::Escapes,
            Expr::Yield(_) | Expr::YieldFrom(_) => Fate::Yielded,
            _ => Fate::Consumed,
        }
    }

    /// An index that copies: an array, a list, a comparison.
    pub(crate) fn is_advanced(&self, slice: &Expr) -> bool {
        let parts: &[Expr] = match slice {
            Expr::Tuple(tuple) => &tuple.elts,
            _ => std::slice::from_ref(slice),
        };
        parts.iter().any(|part| {
            part.is_list_expr()
                || part.is_compare_expr()
                || self.value(part).as_array().is_some_and(|array| array.dimensions() != Some(0))
        })
    }

    fn collected(&self, display: ExprId, element: ExprId) -> Fate<'a> {
        match self.fate(display) {
            Fate::Consumed => Fate::Consumed,
            Fate::Discarded => Fate::Discarded,
            // `kept += [x]` and `kept.append((i, x))`
            Fate::Stored(container)
                if matches!(self.index.node(display).expr, Expr::List(_) | Expr::Tuple(_) | Expr::Set(_)) =>
            {
                Fate::Stored(container)
            }
            // `a, b = x, y` binds, it does not collect.
            Fate::Named(..) | Fate::Escapes | Fate::Stored(_) | Fate::Attribute(_) | Fate::Collected(_) => {
                self.unpacked(display, element).unwrap_or(Fate::Collected(display))
            }
            fate => fate,
        }
    }

    fn unpacked(&self, display: ExprId, element: ExprId) -> Option<Fate<'a>> {
        let node = self.index.node(display);
        let (Expr::Tuple(values), None) = (node.expr, node.parent) else { return None };
        let Stmt::Assign(assign) = self.index.stmt(node.stmt).stmt else { return None };
        let [Expr::Tuple(targets)] = assign.targets.as_slice() else { return None };
        let at = values.elts.iter().position(|value| std::ptr::eq(value, self.index.node(element).expr))?;
        (targets.elts.len() == values.elts.len()).then(|| self.target_fate(&targets.elts[at]))
    }

    fn target_fate(&self, target: &'a Expr) -> Fate<'a> {
        let Some(id) = self.index.expr_id(target) else { return Fate::Escapes };
        match target {
            Expr::Name(name) => Fate::Named(name.id.as_str(), id),
            Expr::Attribute(_) => Fate::Attribute(id),
            Expr::Subscript(subscript) => {
                if self.value(&subscript.value).as_array().is_some() {
                    return Fate::Consumed;
                }
                self.index.expr_id(&subscript.value).map_or(Fate::Escapes, Fate::Stored)
            }
            _ => Fate::Escapes,
        }
    }

    fn statement_fate(&self, id: ExprId) -> Fate<'a> {
        let node = self.index.node(id);
        let is = |other: &Expr| std::ptr::eq(other, node.expr);
        match self.index.stmt(node.stmt).stmt {
            Stmt::Expr(_) => Fate::Discarded,
            Stmt::Assign(assign) if is(&assign.value) => match assign.targets.as_slice() {
                [target] => self.target_fate(target),
                _ => Fate::Escapes,
            },
            Stmt::AnnAssign(assign) if assign.value.as_deref().is_some_and(is) => {
                self.target_fate(&assign.target)
            }
            Stmt::AugAssign(assign) if is(&assign.value) => match self.value(&assign.target) {
                Value::Container(_) => self.index.expr_id(&assign.target).map_or(Fate::Escapes, Fate::Stored),
                _ => Fate::Consumed,
            },
            Stmt::Return(_) => Fate::Returned,
            Stmt::With(_) | Stmt::Raise(_) => Fate::Escapes,
            // Decorators and defaults.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => Fate::Escapes,
            _ => Fate::Consumed,
        }
    }

    fn argument_fate(&self, parent: ExprId, call: &'a ast::ExprCall, expr: &Expr) -> Fate<'a> {
        match self.value(&call.func) {
            Value::Path(path) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                if path.starts_with("builtins.") {
                    return match name {
                        "list" | "tuple" | "set" | "dict" | "zip" | "enumerate" | "reversed" | "sorted"
                        | "iter" | "next" => self.collected(parent, parent),
                        "map" | "filter" => Fate::Escapes,
                        _ => Fate::Consumed,
                    };
                }
                if !effects::is_harmless(path) {
                    return Fate::Escapes;
                }
                let first = call.arguments.args.first().is_some_and(|first| std::ptr::eq(first, expr));
                // Crossing between host and device copies, and so does building an array from parts.
                let crosses = self.host(expr).is_some() && !path.starts_with("numpy.")
                    || matches!(self.value(expr), Value::Container(_) | Value::Tuple(_));
                if first && may_alias(name) && !crosses
                    || keyword(call, "out").is_some_and(|out| std::ptr::eq(out, expr))
                {
                    self.fate(parent)
                } else {
                    Fate::Consumed
                }
            }
            Value::Method(owner, name) => match (&**owner, &**name, &*call.func) {
                (
                    Value::Container(_) | Value::Tuple(_),
                    "append" | "appendleft" | "add" | "insert" | "extend" | "setdefault" | "update" | "put",
                    Expr::Attribute(attribute),
                ) => self.index.expr_id(&attribute.value).map_or(Fate::Escapes, Fate::Stored),
                (Value::Array(_) | Value::HostRandom | Value::Text(_) | Value::Number(_), ..) => {
                    Fate::Consumed
                }
                (Value::Container(_), "index" | "count" | "remove", _) => Fate::Consumed,
                _ => Fate::Escapes,
            },
            // `losses.append(x)` keeps, whatever `losses` is.
            Value::Unknown => match &*call.func {
                Expr::Attribute(attribute)
                    if matches!(attribute.attr.as_str(), "append" | "appendleft")
                        && call.arguments.len() == 1 =>
                {
                    self.index.expr_id(&attribute.value).map_or(Fate::Escapes, Fate::Stored)
                }
                _ => Fate::Escapes,
            },
            Value::Function(function) => {
                if self.parameter_is_kept(*function, call, expr) {
                    Fate::Escapes
                } else {
                    Fate::Consumed
                }
            }
            _ => Fate::Escapes,
        }
    }

    /// True unless the function of this file is seen to let go of the argument.
    fn parameter_is_kept(&self, function: FunctionId, call: &'a ast::ExprCall, expr: &Expr) -> bool {
        let FunctionKind::Def(def) = &self.index.functions[function.at()].kind else { return true };
        let Some(at) = call.arguments.args.iter().position(|argument| std::ptr::eq(argument, expr)) else {
            return true;
        };
        let Some(parameter) = def.parameters.args.get(at) else { return true };
        let name = parameter.parameter.name.as_str();
        self.index.occurrences(name).iter().any(|id| {
            let node = self.index.node(*id);
            is_load(node.expr, name)
                && (node.scope == function && !self.is_read_only(*id, node.parent)
                    || node.scope != function && self.is_inside(node.scope, function))
        })
    }

    /// A shallow look: operands, indices and arguments of library functions are read and let go.
    fn is_read_only(&self, id: ExprId, parent: Option<ExprId>) -> bool {
        let Some(parent) = parent else {
            return matches!(self.statement_fate(id), Fate::Consumed | Fate::Discarded);
        };
        match self.index.node(parent).expr {
            Expr::BinOp(_) | Expr::Compare(_) | Expr::UnaryOp(_) | Expr::FString(_) => true,
            Expr::Call(call) => self.path(&call.func).is_some_and(effects::is_harmless),
            _ => false,
        }
    }

    fn member_fate(&self, parent: ExprId, attribute: &'a ast::ExprAttribute) -> Fate<'a> {
        let name = attribute.attr.as_str();
        let call = self.index.node(parent).parent.filter(|call| {
            matches!(self.index.node(*call).expr, Expr::Call(call) if std::ptr::eq(&*call.func, self.index.node(parent).expr))
        });
        match call {
            Some(call) if may_alias(name) => self.fate(call),
            Some(_) => Fate::Consumed,
            None if matches!(name, "T" | "mT" | "real" | "imag" | "flat" | "data") => self.fate(parent),
            None => Fate::Consumed,
        }
    }

    /// True if the object bound to `name` may outlive the iteration that made it.
    pub(crate) fn is_kept(&self, name: &'a str, id: LoopId) -> bool {
        self.name_is_kept(name, id, 0)
    }

    fn name_is_kept(&self, name: &'a str, id: LoopId, depth: usize) -> bool {
        if depth > ALIAS_LIMIT {
            return true;
        }
        let stmt = self.index.stmt(self.index.loops[id.at()].stmt);
        let scope = stmt.scope;
        let inside = stmt.first_expr..stmt.end_expr;
        self.index.occurrences(name).iter().copied().filter(|id| inside.contains(&id.0)).any(|expr| {
            let node = self.index.node(expr);
            if !is_load(node.expr, name) {
                return false;
            }
            // A function made in the loop captures it.
            if node.scope != scope {
                return !self.index.functions[node.scope.at()].bound.contains(name);
            }
            if !self.in_loop(node.innermost, id) {
                return false;
            }
            match self.fate(expr) {
                Fate::Discarded | Fate::Consumed | Fate::Returned => false,
                Fate::Named(alias, _) => alias != name && self.name_is_kept(alias, id, depth + 1),
                Fate::Attribute(_) | Fate::Stored(_) | Fate::Collected(_) | Fate::Yielded | Fate::Escapes => {
                    true
                }
            }
        })
    }

    /// True for a parameter, or a name that the file does not bind: an array if a dpnp function takes it.
    pub(crate) fn is_given(&self, expr: &Expr) -> bool {
        let Expr::Name(name) = expr else { return false };
        let Some(id) = self.index.expr_id(expr) else { return false };
        let scope = self.owner(self.index.node(id).scope, name.id.as_str());
        matches!(self.value(expr), Value::Unknown) && self.stores(name.id.as_str(), scope).next().is_none()
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
        self.index.occurrences(name).iter().copied().filter(move |id| {
            let node = self.index.node(*id);
            is_load(node.expr, name)
                && (node.scope == scope
                    || self.is_inside(node.scope, scope) && self.owner(node.scope, name) == scope)
        })
    }

    /// Every binding of `name` in the scope.
    pub(crate) fn stores<'m>(&'m self, name: &str, scope: FunctionId) -> impl Iterator<Item = ExprId> + 'm {
        self.index.occurrences(name).iter().copied().filter(move |id| {
            let node = self.index.node(*id);
            node.scope == scope
                && matches!(node.expr, Expr::Name(other) if matches!(other.ctx, ast::ExprContext::Store))
        })
    }

    /// Occurrences of the name in a range of the source.
    pub(crate) fn mentions<'m>(&'m self, range: TextRange, name: &str) -> impl Iterator<Item = ExprId> + 'm {
        self.index.occurrences(name).iter().copied().filter(move |id| range.contains_range(self.range(*id)))
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

/// Functions and methods whose result may share its first argument's memory.
fn may_alias(name: &str) -> bool {
    matches!(
        name,
        "reshape"
            | "ravel"
            | "transpose"
            | "permute_dims"
            | "matrix_transpose"
            | "squeeze"
            | "expand_dims"
            | "swapaxes"
            | "moveaxis"
            | "rollaxis"
            | "atleast_1d"
            | "atleast_2d"
            | "atleast_3d"
            | "asarray"
            | "asanyarray"
            | "ascontiguousarray"
            | "asfortranarray"
            | "broadcast_to"
            | "broadcast_arrays"
            | "diagonal"
            | "view"
            | "real"
            | "imag"
            | "flip"
            | "split"
            | "array_split"
            | "get_array"
            | "astype"
            | "to_device"
            | "require"
            | "unstack"
    )
}

/// Library functions that give the same for the same arguments, and change nothing.
fn is_repeatable(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    (path.starts_with("dpnp.")
        || path.starts_with("numpy.")
        || path.starts_with("math.")
        || matches!(path, "builtins.len" | "builtins.float" | "builtins.int" | "builtins.abs"))
        && !path.contains(".random.")
        && !matches!(
            name,
            "empty"
                | "empty_like"
                | "load"
                | "loadtxt"
                | "fromfile"
                | "genfromtxt"
                | "memmap"
                | "copyto"
                | "put"
                | "place"
                | "frombuffer"
                | "fromiter"
        )
}
