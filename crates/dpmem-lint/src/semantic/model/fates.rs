//! Where values end up: read and let go, bound, or kept.

use super::{Fate, Model, is_load, keyword};
use crate::parse::Ranged;
use crate::parse::ast::{self, Expr, Stmt};
use crate::semantic::effects;
use crate::semantic::index::{ExprId, FunctionId, FunctionKind, LoopId};
use crate::semantic::value::Value;

/// Alias chains longer than this are given up.
const ALIAS_LIMIT: usize = 8;

impl<'a> Model<'a> {
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

    pub(super) fn collected(&self, display: ExprId, element: ExprId) -> Fate<'a> {
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

    pub(super) fn unpacked(&self, display: ExprId, element: ExprId) -> Option<Fate<'a>> {
        let node = self.index.node(display);
        let (Expr::Tuple(values), None) = (node.expr, node.parent) else { return None };
        let Stmt::Assign(assign) = self.index.stmt(node.stmt).stmt else { return None };
        let [Expr::Tuple(targets)] = assign.targets.as_slice() else { return None };
        let at = values.elts.iter().position(|value| std::ptr::eq(value, self.index.node(element).expr))?;
        (targets.elts.len() == values.elts.len()).then(|| self.target_fate(&targets.elts[at]))
    }

    pub(super) fn target_fate(&self, target: &'a Expr) -> Fate<'a> {
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

    pub(super) fn statement_fate(&self, id: ExprId) -> Fate<'a> {
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

    pub(super) fn argument_fate(&self, parent: ExprId, call: &'a ast::ExprCall, expr: &Expr) -> Fate<'a> {
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
    pub(super) fn parameter_is_kept(
        &self,
        function: FunctionId,
        call: &'a ast::ExprCall,
        expr: &Expr,
    ) -> bool {
        let FunctionKind::Def(def) = &self.index.functions[function.at()].kind else { return true };
        let Some(at) = call.arguments.args.iter().position(|argument| std::ptr::eq(argument, expr)) else {
            return true;
        };
        let Some(parameter) = def.parameters.args.get(at) else { return true };
        let name = parameter.parameter.name.as_str();
        self.index.occurrences_of_scope(name, function).iter().any(|id| {
            let node = self.index.node(*id);
            is_load(node.expr, name)
                && (node.scope == function && !self.is_read_only(*id, node.parent)
                    || node.scope != function && self.is_inside(node.scope, function))
        })
    }

    /// A shallow look: operands, indices and arguments of library functions are read and let go.
    pub(super) fn is_read_only(&self, id: ExprId, parent: Option<ExprId>) -> bool {
        let Some(parent) = parent else {
            return matches!(self.statement_fate(id), Fate::Consumed | Fate::Discarded);
        };
        match self.index.node(parent).expr {
            Expr::BinOp(_) | Expr::Compare(_) | Expr::UnaryOp(_) | Expr::FString(_) => true,
            Expr::Call(call) => self.path(&call.func).is_some_and(effects::is_harmless),
            _ => false,
        }
    }

    pub(super) fn member_fate(&self, parent: ExprId, attribute: &'a ast::ExprAttribute) -> Fate<'a> {
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

    pub(super) fn name_is_kept(&self, name: &'a str, id: LoopId, depth: usize) -> bool {
        if depth > ALIAS_LIMIT {
            return true;
        }
        let stmt = self.index.stmt(self.index.loops[id.at()].stmt);
        let scope = stmt.scope;
        self.index.occurrences_in(name, stmt.stmt.range()).iter().copied().any(|expr| {
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
