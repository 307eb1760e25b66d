//! DPM104: arrays of different queues meet.

use super::{Checker, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt, TextRange, ast};
use crate::semantic::{Array, ExprId, Model, Queue, StmtId, keyword};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM104",
    name: "mixed-queues",
    severity: Severity::Error,
    what: "Finds operators and dpnp functions whose operands are surely on different queues: two queues made by
`dpctl.SyclQueue()`, such a queue and the default one, or devices that filter strings tell apart. Code under `try` or
`pytest.raises` is left alone.",
    why: "dpnp computes where the data is and refuses operands of two queues, even of one device. Its error names neither
queue.",
    example: "
a = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
b = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
c = a + b
",
    instead: "
a = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
b = dpnp.ones(3, sycl_queue=a.sycl_queue)
c = a + b  # or a + b.to_device(a.sycl_queue)
",
    fix: "None: which queue is meant is the program's decision.",
    references: &["dpctl documentation: execution queue and compute follows data"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        match node.expr {
            Expr::BinOp(operation) => {
                report(checker, node.stmt, node.expr.range(), &[&operation.left, &operation.right])
            }
            Expr::Compare(comparison) => {
                let compares = !comparison.ops.iter().any(|op| {
                    matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn)
                });
                if let ([right], true) = (&*comparison.comparators, compares) {
                    report(checker, node.stmt, node.expr.range(), &[&comparison.left, right]);
                }
            }
            Expr::Call(call) => called(checker, node.stmt, call),
            _ => {}
        }
    }
    for at in 0..model.index.stmts.len() {
        if let Stmt::AugAssign(assign) = model.index.stmts[at].stmt {
            report(checker, StmtId(at as u32), assign.range(), &[&assign.target, &assign.value]);
        }
    }
}

fn called(checker: &mut Checker<'_, '_>, stmt: StmtId, call: &ast::ExprCall) {
    let Some(name) = checker.model.device_function(call) else { return };
    // Conversions and copies exist to cross queues.
    if matches!(
        name,
        "array" | "asarray" | "asanyarray" | "copyto" | "copy" | "asnumpy" | "to_numpy" | "ascontiguousarray"
    ) || name.ends_with("_like")
        || name.starts_with("random.")
        || keyword(call, "sycl_queue").is_some()
        || keyword(call, "device").is_some()
        || name.split('.').next_back().is_some_and(|name| name.contains("queue") || name.starts_with("are_"))
    {
        return;
    }
    let mut operands: Vec<&Expr> = Vec::new();
    for argument in &call.arguments.args {
        match argument {
            Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. }) => {
                operands.extend(elts)
            }
            other => operands.push(other),
        }
    }
    operands.extend(keyword(call, "out"));
    report(checker, stmt, call.range(), &operands);
}

fn report(checker: &mut Checker<'_, '_>, stmt: StmtId, range: TextRange, operands: &[&Expr]) {
    let model = checker.model;
    let arrays: Vec<(&Expr, &Array)> =
        operands.iter().filter_map(|operand| Some((*operand, model.device(operand)?))).collect();
    let pair = arrays.iter().enumerate().find_map(|(at, (one, first))| {
        let (two, second) =
            arrays[at + 1..].iter().find(|(_, second)| first.queue.surely_differs(&second.queue))?;
        Some((one, first, two, second))
    });
    let Some((one, first, two, second)) = pair else { return };
    if model.is_guarded(stmt) {
        return;
    }
    let (one, two) = (model.text(*one), model.text(*two));
    checker.report(
        range,
        format!(
            "`{one}` is on {}, `{two}` on {}: dpnp refuses to mix them",
            described(model, first),
            described(model, second)
        ),
        format!("make both on one queue, `sycl_queue=`, or move one, `{two}.to_device({one}.sycl_queue)`"),
        None,
    );
}

fn described(model: &Model<'_>, array: &Array) -> String {
    match &array.queue {
        Queue::Created(place) => format!("the queue made in line {}", model.source.line((*place).into())),
        Queue::Device(filter) => format!("device \"{filter}\""),
        Queue::Default => "the default queue".to_owned(),
        Queue::Unknown => "a queue".to_owned(),
    }
}
