//! DPM403: the host waits for the device in every step.

use super::steps::{names_large_step, target_names};
use super::{Checker, LEAST_REPEATS, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt, ast};
use crate::semantic::{ExprId, LoopId, LoopKind, Model, Value};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM403",
    name: "sync-in-loop",
    severity: Severity::Warning,
    what: "Finds `float()`, `int()`, `bool()`, `item()`, `print()` and implicit truth tests of device arrays in a loop,
and Python iteration over the elements of a device array. One read per chunk, batch or epoch, reads behind a
condition (`if step % 100 == 0`) and loops that run only a few times are left alone.",
    why: "Each read waits until all queued work is done and then moves a few bytes. The device idles while Python
prepares the next step; a loop over elements starts a kernel and a copy for each of them.",
    example: "
for step in range(10_000):
    dpnp.multiply(x, decay, out=x)
    history.append(float(dpnp.sum(x)))
",
    instead: "
history = dpnp.empty(10_000)
for step in range(10_000):
    dpnp.multiply(x, decay, out=x)
    history[step] = dpnp.sum(x)
history = dpnp.asnumpy(history)
",
    fix: "None: how often a value is needed is the program's decision.",
    references: &["SYCL 2020, 4.6.5: queues and synchronisation", "DPM303 for scalars kept as arrays"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    let mut lines = rustc_hash::FxHashSet::default();
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        let Some(innermost) = node.innermost else { continue };
        let Some((read, how)) = read(model, id) else { continue };
        let element = is_element(model, read, innermost);
        let Some(busy) = model.busy_loop(Some(innermost), LEAST_REPEATS) else { continue };
        if !model.runs_always(id, innermost)
            || !element && is_large_step(model, innermost)
            || busy != innermost && !element
        {
            continue;
        }
        let text = shortened(model.text(read));
        let (message, advice) = if element {
            (
                format!("{how} reads the device array one element at a time"),
                "work on the whole array, or fetch it once with `dpnp.asnumpy(...)` before the loop"
                    .to_owned(),
            )
        } else {
            (
                format!("{how} waits for the device in every step to read `{text}`"),
                "keep the value on the device and read it once every many steps".to_owned(),
            )
        };
        lines.insert(model.source.line(node.expr.start()));
        checker.report(node.expr.range(), message, advice, None);
    }
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let expr = model.index.node(id).expr;
        if let Some(array) = iterated(model, id)
            && array.elements().is_none_or(|count| count >= LEAST_REPEATS)
            && !lines.contains(&model.source.line(expr.start()))
        {
            let text = shortened(model.text(expr));
            lines.insert(model.source.line(expr.start()));
            checker.report(
                expr.range(),
                format!("Python iterates over the elements of the device array `{text}`"),
                "use a dpnp function on the whole array, or fetch it once with `dpnp.asnumpy(...)`",
                None,
            );
        }
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or(text);
    if line.len() == text.len() && line.chars().count() <= 50 {
        return line.to_owned();
    }
    line.chars().take(49).chain(['…']).collect()
}

/// What the expression reads from the device, and by what.
fn read<'a>(model: &Model<'a>, id: ExprId) -> Option<(&'a Expr, &'static str)> {
    let node = model.index.node(id);
    if let Expr::Call(call) = node.expr {
        match model.value(&call.func) {
            Value::Path(path) => {
                let how = match &**path {
                    "builtins.float" => "`float()`",
                    "builtins.int" => "`int()`",
                    "builtins.bool" => "`bool()`",
                    "builtins.complex" => "`complex()`",
                    "builtins.str" | "builtins.repr" => "`str()`",
                    "builtins.print" => return printed(model, call).map(|read| (read, "`print()`")),
                    path if path.starts_with("math.") => "a `math` function",
                    _ => return None,
                };
                let read = call.arguments.args.first()?;
                model.device(read)?;
                return Some((read, how));
            }
            Value::Method(owner, name) if matches!(&**name, "item" | "tolist") => {
                owner.as_device()?;
                let Expr::Attribute(attribute) = &*call.func else { return None };
                // `tolist` of a whole array is one transfer of what the program asked for.
                if &**name == "tolist" && owner.as_device()?.dimensions() != Some(0) {
                    return None;
                }
                return Some((&attribute.value, "`item()`"));
            }
            // `logger.info("%s", x)` prints.
            Value::Unknown | Value::Function(_) => {
                let Expr::Attribute(attribute) = &*call.func else { return None };
                let logs = matches!(attribute.attr.as_str(), "debug" | "info" | "warning" | "error");
                return if logs { printed(model, call).map(|read| (read, "logging")) } else { None };
            }
            _ => return None,
        }
    }
    is_tested(model, id).then_some((node.expr, "a truth test"))
}

/// The device array that a `print` prints, directly or in an f-string.
fn printed<'a>(model: &Model<'a>, call: &'a ast::ExprCall) -> Option<&'a Expr> {
    call.arguments.args.iter().find_map(|argument| match argument {
        Expr::FString(text) => text.value.elements().find_map(|element| match element {
            ast::InterpolatedStringElement::Interpolation(field) => {
                model.device(&field.expression).map(|_| &*field.expression)
            }
            ast::InterpolatedStringElement::Literal(_) => None,
        }),
        argument => model.device(argument).map(|_| argument),
    })
}

/// The whole test of an `if`, `while` or `assert`, or an operand of its `and`, `or`, `not`.
fn is_tested(model: &Model<'_>, id: ExprId) -> bool {
    let node = model.index.node(id);
    let Some(array) = model.device(node.expr) else { return false };
    // A test of a larger array raises; one of unknown rank is a reduction that is not followed.
    if array.dimensions().is_some_and(|count| count > 0)
        || !matches!(node.expr, Expr::Compare(_) | Expr::Call(_) | Expr::Name(_))
    {
        return false;
    }
    let is = |other: &Expr| std::ptr::eq(other, node.expr);
    match node.parent {
        Some(parent) => match model.index.node(parent).expr {
            Expr::UnaryOp(unary) => matches!(unary.op, ast::UnaryOp::Not),
            Expr::BoolOp(_) => true,
            Expr::If(ternary) => is(&ternary.test),
            _ => false,
        },
        None => match model.index.stmt(node.stmt).stmt {
            Stmt::If(stmt) => {
                is(&stmt.test)
                    || stmt.elif_else_clauses.iter().any(|clause| clause.test.as_ref().is_some_and(is))
            }
            Stmt::While(stmt) => is(&stmt.test),
            Stmt::Assert(stmt) => is(&stmt.test),
            _ => false,
        },
    }
}

/// `x[i]` of a device array with an index of the loop, or the variable of a loop over one.
fn is_element(model: &Model<'_>, read: &Expr, innermost: LoopId) -> bool {
    match read {
        Expr::Subscript(subscript) => {
            model.device(&subscript.value).is_some()
                && model.device(read).is_some_and(|array| array.dimensions().is_none_or(|count| count == 0))
                && indexed_by_loop(model, &subscript.slice, innermost)
        }
        Expr::Name(name) => {
            let (target, iterated) = match &model.index.loops[innermost.at()].kind {
                LoopKind::For(node) => (&*node.target, &*node.iter),
                LoopKind::Comprehension(_, generator) => (&generator.target, &generator.iter),
                LoopKind::While(_) => return false,
            };
            matches!(target, Expr::Name(target) if target.id == name.id) && model.device(iterated).is_some()
        }
        _ => false,
    }
}

fn indexed_by_loop(model: &Model<'_>, slice: &Expr, innermost: LoopId) -> bool {
    let parts: &[Expr] = match slice {
        Expr::Tuple(tuple) => &tuple.elts,
        _ => std::slice::from_ref(slice),
    };
    let mut names = rustc_hash::FxHashSet::default();
    for id in model.index.loops_around(Some(innermost)) {
        match &model.index.loops[id.at()].kind {
            LoopKind::For(node) => target_names(&node.target, &mut names),
            LoopKind::Comprehension(_, generator) => target_names(&generator.target, &mut names),
            LoopKind::While(_) => {}
        }
    }
    !parts.iter().any(Expr::is_slice_expr)
        && parts.iter().any(|part| match part {
            Expr::Name(name) => names.contains(name.id.as_str()),
            Expr::BinOp(operation) => [&operation.left, &operation.right]
                .iter()
                .any(|side| matches!(&***side, Expr::Name(name) if names.contains(name.id.as_str()))),
            _ => false,
        })
}

/// A loop in which one iteration is a chunk, a batch or an epoch.
fn is_large_step(model: &Model<'_>, id: LoopId) -> bool {
    let node = &model.index.loops[id.at()];
    let iterated = match &node.kind {
        LoopKind::For(node) => Some(&*node.iter),
        LoopKind::Comprehension(_, generator) => Some(&generator.iter),
        LoopKind::While(_) => None,
    };
    if names_large_step(model, id) || iterated.is_some_and(|iterated| goes_through_chunks(model, iterated)) {
        return true;
    }
    // `range(0, n, chunk)` walks in chunks, `glob` over files.
    if let Some(Expr::Call(call)) = iterated
        && model.path(&call.func) == Some("builtins.range")
        && let [_, _, step] = &*call.arguments.args
        && model.value(step).as_integer().is_none_or(|step| step.abs() > 1)
    {
        return true;
    }
    let first = model.index.stmt(node.stmt);
    let inside = (first.first_expr..first.end_expr)
        .map(ExprId)
        .filter(|expr| model.in_loop(model.index.node(*expr).innermost, id));
    for expr in inside {
        let inner = model.index.node(expr);
        // An inner loop with device work makes this one an epoch.
        if inner.innermost != Some(id)
            && !matches!(
                inner.innermost.map(|inner| &model.index.loops[inner.at()].kind),
                Some(LoopKind::Comprehension(..))
            )
            && model.device(inner.expr).is_some()
        {
            return true;
        }
        if brings_data(model, inner.expr, id) {
            return true;
        }
    }
    false
}

/// `dpmem.chunks(...)`, bare or in a call such as `enumerate`.
fn goes_through_chunks(model: &Model<'_>, iterated: &Expr) -> bool {
    let Expr::Call(call) = iterated else { return false };
    model.path(&call.func) == Some("dpmem.chunks")
        || call.arguments.args.iter().any(|argument| goes_through_chunks(model, argument))
}

/// New host data goes to the device, or is read from a file: a chunk.
fn brings_data<'a>(model: &Model<'a>, expr: &'a Expr, id: LoopId) -> bool {
    let Expr::Call(call) = expr else { return false };
    let Some(path) = model.path(&call.func) else { return false };
    let name = path.rsplit('.').next().unwrap_or(path);
    if path.starts_with("numpy.") {
        return matches!(name, "load" | "fromfile" | "loadtxt" | "memmap" | "genfromtxt");
    }
    (path.starts_with("dpnp.") || path.starts_with("dpctl.tensor."))
        && matches!(name, "asarray" | "array" | "from_numpy" | "fromfile" | "copyto")
        && call.arguments.args.first().is_some_and(|data| {
            model.device(data).is_none() && !model.value(data).is_number() && !model.is_invariant(data, id)
        })
}

/// The 1-d device array that a loop, a comprehension or a built-in function walks through, given its expression.
fn iterated<'m>(model: &'m Model<'_>, id: ExprId) -> Option<&'m crate::semantic::Array> {
    let node = model.index.node(id);
    let array = model.device(node.expr)?;
    let is = |other: &Expr| std::ptr::eq(other, node.expr);
    let flat = array.dimensions() == Some(1);
    match node.parent {
        None => match model.index.stmt(node.stmt).stmt {
            Stmt::For(stmt) if is(&stmt.iter) && flat => Some(array),
            _ => None,
        },
        Some(parent) => match model.index.node(parent).expr {
            Expr::ListComp(ast::ExprListComp { generators, .. })
            | Expr::SetComp(ast::ExprSetComp { generators, .. })
            | Expr::Generator(ast::ExprGenerator { generators, .. })
            | Expr::DictComp(ast::ExprDictComp { generators, .. }) => {
                (flat && generators.iter().any(|generator| is(&generator.iter))).then_some(array)
            }
            Expr::Call(call) => {
                let first = call.arguments.args.iter().any(is);
                let path = model.path(&call.func)?;
                let whole = matches!(
                    path,
                    "builtins.sum"
                        | "builtins.max"
                        | "builtins.min"
                        | "builtins.any"
                        | "builtins.all"
                        | "builtins.sorted"
                ) && call.arguments.args.len() == 1;
                let walks = matches!(
                    path,
                    "builtins.list"
                        | "builtins.tuple"
                        | "builtins.set"
                        | "builtins.enumerate"
                        | "builtins.zip"
                        | "builtins.map"
                );
                (first && (whole && array.dimensions() != Some(0) || walks && flat)).then_some(array)
            }
            _ => None,
        },
    }
}
