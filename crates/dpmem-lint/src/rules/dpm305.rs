//! DPM305: values are written that nobody reads.

use super::{Checker, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::{Expr, Ranged, Stmt, TextRange, ast};
use crate::semantic::{Dim, ExprId, FunctionId, Model, accepts_out, keyword};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM305",
    name: "zeros-then-overwrite",
    severity: Severity::Warning,
    what: "Finds `dpnp.zeros`, `ones`, `full` and their `_like` forms whose every element is overwritten before anything
reads the array: by `x[...] =`, `x[:] =`, `x.fill()`, `out=x`, `dpnp.copyto(x, …)`, or a loop that assigns each index.",
    why: "Filling the block is a kernel over all of it that has no effect.",
    example: "
x = dpnp.zeros(n)
x[:] = y
",
    instead: "
x = dpnp.empty(n)
x[:] = y
",
    fix: "Safe: `empty` is called instead, with the same arguments. `full` only where `dtype=` is given, since its value
decides the dtype otherwise; names imported on their own are left to you.",
    references: &["dpnp documentation: `dpnp.empty`"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for node in &model.index.stmts {
        let Stmt::Assign(assign) = node.stmt else { continue };
        let [target] = assign.targets.as_slice() else { continue };
        let Expr::Call(call) = &*assign.value else { continue };
        // Where errors are caught, what was there before can be seen after all.
        let Some(id) = model.index.stmt_id(node.stmt) else { continue };
        if model.is_guarded(id) {
            continue;
        }
        let Some(function) = model.device_function(call) else { continue };
        let replacement = match function {
            "zeros" | "ones" | "full" => "empty",
            "zeros_like" | "ones_like" | "full_like" => "empty_like",
            _ => continue,
        };
        if let Expr::Attribute(attribute) = target
            && attribute.value.is_name_expr()
            && let Some(next) = model.index.blocks[node.block.at()].get(node.position + 1)
            && overwrites_at_once(model, next, model.text(target))
        {
            report(checker, call, function, replacement, model.text(target));
        }
        let Expr::Name(target) = target else { continue };
        let name = target.id.as_str();
        let scope = &model.index.functions[node.scope.at()];
        if scope.globals.contains(name)
            || scope.nonlocals.contains(name)
            || is_captured(model, name, node.scope)
        {
            continue;
        }
        let block = model.index.blocks[node.block.at()];
        let next = block[node.position + 1..].iter().find(|stmt| mentions(model, stmt.range(), name) > 0);
        let Some(next) = next else { continue };
        // A branch in between may leave, but cannot see the array.
        if overwrites(model, next, name, &assign.value, assign.end()) {
            report(checker, call, function, replacement, name);
        }
    }
}

fn report(
    checker: &mut Checker<'_, '_>,
    call: &ast::ExprCall,
    function: &str,
    replacement: &str,
    target: &str,
) {
    let model = checker.model;
    let text = model.text(&*call.func);
    checker.report(
        call.range(),
        format!("what `{text}` writes into `{target}` is overwritten before it is read"),
        format!("allocate without filling, `{replacement}`"),
        fixed(model, call, function, replacement),
    );
}

/// The very next statement is `self.x[...] = value` or `self.x.fill(value)` of a value that nothing computes.
fn overwrites_at_once(model: &Model<'_>, stmt: &Stmt, target: &str) -> bool {
    let plain = |value: &Expr| matches!(value, Expr::Name(_) | Expr::NumberLiteral(_) | Expr::UnaryOp(_));
    match stmt {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [Expr::Subscript(subscript)] => {
                model.text(&*subscript.value) == target && is_whole(&subscript.slice) && plain(&assign.value)
            }
            _ => false,
        },
        Stmt::Expr(stmt) => match &*stmt.value {
            Expr::Call(call) => match (&*call.func, &*call.arguments.args) {
                (Expr::Attribute(method), [value]) => {
                    method.attr.as_str() == "fill" && model.text(&*method.value) == target && plain(value)
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

/// Occurrences of the name in a range.
fn mentions(model: &Model<'_>, range: TextRange, name: &str) -> usize {
    model.mentions(range, name).count()
}

/// A nested function or lambda sees the name.
fn is_captured(model: &Model<'_>, name: &str, scope: FunctionId) -> bool {
    model.index.occurrences_of_scope(name, scope).iter().any(|id| {
        let other = model.index.node(*id).scope;
        other != scope && model.owner(other, name) == scope
    })
}

fn is_whole(slice: &Expr) -> bool {
    match slice {
        Expr::EllipsisLiteral(_) => true,
        Expr::Slice(slice) => slice.lower.is_none() && slice.upper.is_none() && slice.step.is_none(),
        Expr::Tuple(tuple) => !tuple.elts.is_empty() && tuple.elts.iter().all(is_whole),
        _ => false,
    }
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Name(other) if other.id.as_str() == name)
}

/// The statement writes every element of `name` and reads none.
fn overwrites<'a>(
    model: &Model<'a>,
    stmt: &'a Stmt,
    name: &str,
    created: &'a Expr,
    after: crate::parse::TextSize,
) -> bool {
    match stmt {
        Stmt::Assign(assign) => match (assign.targets.as_slice(), &*assign.value) {
            ([Expr::Subscript(target)], value) => {
                is_name(&target.value, name)
                    && is_whole(&target.slice)
                    && mentions(model, value.range(), name) == 0
            }
            ([_], Expr::Call(call)) => {
                into_out(model, call, name) && mentions(model, stmt.range(), name) == 1
            }
            _ => false,
        },
        Stmt::Expr(stmt) => {
            let Expr::Call(call) = &*stmt.value else { return false };
            if mentions(model, call.range(), name) != 1 {
                return false;
            }
            match &*call.func {
                Expr::Attribute(attribute) if is_name(&attribute.value, name) => {
                    attribute.attr.as_str() == "fill"
                }
                _ => {
                    into_out(model, call, name)
                        || model.device_function(call) == Some("copyto")
                            && keyword(call, "where").is_none()
                            && call.arguments.args.first().is_some_and(|first| is_name(first, name))
                }
            }
        }
        Stmt::For(node) => each_index(model, node, name, created, after),
        _ => false,
    }
}

fn into_out(model: &Model<'_>, call: &ast::ExprCall, name: &str) -> bool {
    model.device_function(call).is_some_and(accepts_out)
        && keyword(call, "where").is_none()
        && keyword(call, "out").is_some_and(|out| is_name(out, name))
}

/// `for i in range(n): x[i] = …` over the whole first axis.
fn each_index<'a>(
    model: &Model<'a>,
    node: &'a ast::StmtFor,
    name: &str,
    created: &'a Expr,
    after: crate::parse::TextSize,
) -> bool {
    let (Expr::Name(variable), Expr::Call(range)) = (&*node.target, &*node.iter) else { return false };
    if node.is_async || model.path(&range.func) != Some("builtins.range") || !node.orelse.is_empty() {
        return false;
    }
    let [stop] = &*range.arguments.args else { return false };
    let Some(first) = model.device(created).and_then(|array| array.shape.as_ref()?.first().cloned()) else {
        return false;
    };
    let whole = match (&first, stop) {
        (Dim::Known(extent), stop) => model.value(stop).as_integer() == i64::try_from(*extent).ok(),
        (Dim::Named(text), stop) => {
            // The same expression, whose names nothing binds in between.
            **text == *model.text(stop)
                && matches!(stop, Expr::Name(_))
                && mentions_stored(model, TextRange::new(after, node.end()), text) == 0
        }
        (Dim::Unknown, _) => false,
    };
    if !whole {
        return false;
    }
    let mut written = false;
    for stmt in &node.body {
        match stmt {
            Stmt::Assign(assign) => {
                if let [Expr::Subscript(target)] = assign.targets.as_slice()
                    && is_name(&target.value, name)
                    && is_row(&target.slice, variable.id.as_str())
                {
                    written = true;
                }
            }
            Stmt::Expr(_) | Stmt::AugAssign(_) | Stmt::AnnAssign(_) | Stmt::Pass(_) => {}
            _ => return false,
        }
    }
    let variable_stores = mentions_stored(model, node.range(), variable.id.as_str());
    written
        && mentions(model, node.range(), name) == 1
        && variable_stores == 1
        && leaves_nowhere(model, node.range())
}

fn mentions_stored(model: &Model<'_>, range: TextRange, name: &str) -> usize {
    model
        .mentions(range, name)
        .filter(|id| matches!(model.index.node(*id).expr, Expr::Name(other) if !matches!(other.ctx, ast::ExprContext::Load)))
        .count()
}

fn leaves_nowhere(model: &Model<'_>, range: TextRange) -> bool {
    !model.index.exprs.iter().any(|node| {
        range.contains_range(node.expr.range())
            && matches!(node.expr, Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Await(_))
    })
}

/// `[i]`, `[i, :]` or `[i, ...]`.
fn is_row(slice: &Expr, variable: &str) -> bool {
    match slice {
        Expr::Tuple(tuple) => match tuple.elts.split_first() {
            Some((first, rest)) => is_name(first, variable) && rest.iter().all(is_whole),
            None => false,
        },
        slice => is_name(slice, variable),
    }
}

fn fixed(model: &Model<'_>, call: &ast::ExprCall, function: &str, replacement: &str) -> Option<Fix> {
    let Expr::Attribute(callee) = &*call.func else { return None };
    let mut edits = vec![Edit { range: callee.attr.range, text: replacement.to_owned() }];
    if function.starts_with("full") {
        let [shape, value] = &*call.arguments.args else { return None };
        let needs_dtype = function == "full" && keyword(call, "dtype").is_none();
        if needs_dtype || value.is_starred_expr() || has_effects(model, value) {
            return None;
        }
        edits.push(Edit { range: TextRange::new(shape.end(), value.end()), text: String::new() });
        let between = model.source.slice(TextRange::new(shape.end(), value.end()));
        if between.contains(['#', '(']) {
            return None;
        }
    }
    Some(Fix { safety: Safety::Safe, edits })
}

/// Evaluating the expression may do something.
fn has_effects(model: &Model<'_>, expr: &Expr) -> bool {
    let Some(id) = model.index.expr_id(expr) else { return true };
    !matches!(
        model.index.node(ExprId(id.0)).expr,
        Expr::NumberLiteral(_)
            | Expr::Name(_)
            | Expr::UnaryOp(_)
            | Expr::Attribute(_)
            | Expr::BooleanLiteral(_)
    )
}
