//! DPM304: an array that grows step by step is copied in every step.

use super::{Checker, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt, ast};
use crate::semantic::{ExprId, Fate, LoopId, LoopKind, Model};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM304",
    name: "grow-by-concatenate",
    severity: Severity::Warning,
    what: "Finds `x = dpnp.concatenate([x, …])` and the same with `append`, `stack`, `hstack`, `vstack` and their kin in a
loop. Windows of constant length (`concatenate([x[1:], …])`), arrays that start afresh in every iteration and loops
of a few iterations are left alone.",
    why: "Every step allocates a larger block, copies all that was there, and for a moment both blocks exist: time grows
with the square of the number of steps, and the peak is twice the result.",
    example: "
result = dpnp.empty(0)
for part in parts:
    result = dpnp.concatenate([result, part])
",
    instead: "
result = dpnp.concatenate(list(parts))
",
    fix: "None: the parts have to be collected, or the total size to be known.",
    references: &["dpnp documentation: `dpnp.concatenate`"],
};

/// Loops known to run fewer times are no matter.
const LEAST_STEPS: u64 = 4;

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for (id, call) in model.calls() {
        let Some(innermost) = model.index.node(id).innermost else { continue };
        let Some(name) = model.device_function(call) else { continue };
        if !matches!(
            name,
            "concatenate"
                | "concat"
                | "append"
                | "stack"
                | "hstack"
                | "vstack"
                | "dstack"
                | "column_stack"
                | "row_stack"
        ) || matches!(model.index.loops[innermost.at()].kind, LoopKind::Comprehension(..))
        {
            continue;
        }
        let Some(target) = target(model, id) else { continue };
        if joins(model, call, name, target, innermost)
            && model.busy_loop(Some(innermost), LEAST_STEPS).is_some()
            && !starts_afresh(model, target, id, innermost)
        {
            checker.report(
                call.range(),
                format!("`{target}` is copied to a larger block in every iteration"),
                "collect the parts in a list and concatenate once after the loop, or write into slices of an array of \
                 the final size",
                None,
            );
        }
    }
}

/// What the result is bound to, as written.
fn target<'a>(model: &Model<'a>, id: ExprId) -> Option<&'a str> {
    match model.fate(id) {
        Fate::Named(name, _) => Some(name),
        Fate::Attribute(target) => Some(model.text(model.index.node(target).expr)),
        Fate::Stored(_) => match model.index.stmt(model.index.node(id).stmt).stmt {
            Stmt::Assign(assign) => assign.targets.first().map(|target| model.text(target)),
            _ => None,
        },
        _ => None,
    }
}

/// One of the parts is the target itself, whole, or a name that becomes the target's value.
fn joins(model: &Model<'_>, call: &ast::ExprCall, name: &str, target: &str, innermost: LoopId) -> bool {
    let Some(first) = call.arguments.args.first() else { return false };
    let parts: Vec<&Expr> = match first {
        _ if name == "append" => call.arguments.args.iter().take(2).collect(),
        Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) => {
            elts.iter().collect()
        }
        _ => return false,
    };
    parts.iter().any(|part| {
        let text = model.text(*part);
        text == target || part.is_name_expr() && becomes(model, text, target, innermost)
    })
}

/// `grown = concatenate([whole, part]); whole = grown`
fn becomes(model: &Model<'_>, part: &str, target: &str, innermost: LoopId) -> bool {
    model.index.stmts.iter().any(|node| {
        node.innermost == Some(innermost)
            && matches!(node.stmt, Stmt::Assign(assign)
                if model.text(&*assign.value) == target
                    && assign.targets.iter().any(|target| model.text(target) == part))
    })
}

/// Another statement of the same iteration binds the target first.
fn starts_afresh(model: &Model<'_>, target: &str, id: ExprId, innermost: LoopId) -> bool {
    let own = model.index.node(id).stmt;
    // Only blocks around the growth run whenever it does.
    let around: Vec<_> = std::iter::successors(Some(own), |stmt| model.index.stmt(*stmt).parent)
        .map(|stmt| model.index.stmt(stmt).block)
        .collect();
    model.index.stmts.iter().enumerate().any(|(at, node)| {
        at != own.at()
            && model.in_loop(node.innermost, innermost)
            && around.contains(&node.block)
            && node.stmt.start() < model.index.stmt(own).stmt.start()
            && matches!(node.stmt, Stmt::Assign(assign)
                if assign.targets.iter().any(|other| model.text(other) == target))
    })
}
