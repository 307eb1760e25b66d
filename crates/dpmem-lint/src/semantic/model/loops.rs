//! How often code runs, and what stays the same while it does.

use rustc_hash::FxHashSet;

use super::{Fate, Model, is_load};
use crate::parse::Ranged;
use crate::parse::ast::{self, Expr, Stmt};
use crate::semantic::effects::Region;
use crate::semantic::index::{ExprId, FunctionId, FunctionKind, LoopId, LoopKind, MODULE};
use crate::semantic::value::{Dim, Value};

impl<'a> Model<'a> {
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

    pub(super) fn walks_many(&self, iterated: &Expr) -> bool {
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

    pub(super) fn length(&self, iterated: &Expr) -> Option<u64> {
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
    pub(super) fn display_length(&self, iterated: &Expr) -> Option<u64> {
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
    pub(super) fn runs_once(&self, id: LoopId) -> bool {
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

    pub(super) fn name_is_invariant(&self, name: &'a str, id: LoopId) -> bool {
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
        self.index.occurrences_in(name, stmt.stmt.range()).iter().copied().any(|expr| {
            let node = self.index.node(expr);
            self.in_loop(node.innermost, id) && !is_load(node.expr, name) && !self.is_augmented(expr)
        })
    }

    /// True if the plain name is not rebound in the loop.
    pub(crate) fn is_invariant_name(&self, expr: &Expr, id: LoopId) -> bool {
        matches!(expr, Expr::Name(name) if !self.loop_effects(id).bound.contains(name.id.as_str()))
    }

    pub(super) fn attribute_is_invariant(&self, attribute: &'a ast::ExprAttribute, id: LoopId) -> bool {
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
    pub(super) fn changed_attributes(&self) -> &FxHashSet<&'a str> {
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
    pub(super) fn is_shared(&self, name: &'a str, scope: FunctionId) -> bool {
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
        self.index.occurrences_of_scope(name, owner).iter().any(|id| {
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

    pub(super) fn is_inside(&self, mut scope: FunctionId, outer: FunctionId) -> bool {
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
