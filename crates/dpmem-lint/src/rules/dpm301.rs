//! DPM301: a loop allocates the same block again and again.

use super::{Checker, LEAST_REPEATS, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::parse::{Expr, Ranged, Stmt, ast};
use crate::semantic::{
    Category, Dim, ExprId, Fate, LoopId, LoopKind, Model, Value, accepts_out, is_elementwise, keyword,
    strip_library,
};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM301",
    name: "alloc-in-loop",
    severity: Severity::Warning,
    what: "Finds operators, `@` included, functions that take `out=` and creation functions in a `for` or `while` loop
whose result has the same size in every iteration and is gone at its end. Results that are kept (appended, stored,
yielded, handed to unknown code), sizes that change, and loops that run only a few times are left alone.",
    why: "Each iteration pays for an allocation and a free, which cost more than the arithmetic up to about a million
elements, and a freed block may still wait for the kernel that uses it, so memory in use rises.",
    example: "
for _ in range(steps):
    c = dpnp.add(a, b)
",
    instead: "
c = dpnp.empty_like(a)
for _ in range(steps):
    dpnp.add(a, b, out=c)
",
    fix: "Unsafe: `out=` is introduced where shape and dtype of the result are known and nothing else refers to the
target; `x = x + y` becomes `x += y`. Code that relies on each iteration making a new object would change.",
    references: &["dpnp documentation: the `out` parameter of `dpnp.add` and others", "DPM304 for arrays that grow"],
};

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        let Some(innermost) = node.innermost else { continue };
        if !is_statement_loop(model, innermost) || !allocates(model, id) || in_larger(model, id) {
            continue;
        }
        let Some(busy) = model.busy_loop(Some(innermost), LEAST_REPEATS) else { continue };
        if !is_statement_loop(model, busy)
            || !model.runs_always(id, busy)
            || !is_stable(model, node.expr, busy, &[])
            || !is_freed(model, id, busy)
        {
            continue;
        }
        let creation = created_by(model, node.expr);
        let target = match model.fate(id) {
            Fate::Named(name, _) => name,
            _ => "buffer",
        };
        let advice = match creation {
            Some(_) => format!(
                "allocate `{target}` once before the loop and reuse it, with `{target}.fill(...)` or `out={target}`"
            ),
            None => format!(
                "allocate `{target}` once before the loop and write into it: `{}`",
                with_out(model, id, target).unwrap_or_else(|| format!("out={target}"))
            ),
        };
        checker.report(
            node.expr.range(),
            "this allocates a block of one size in every iteration and frees it again",
            advice,
            fixed(model, id, busy),
        );
    }
}

fn is_statement_loop(model: &Model<'_>, id: LoopId) -> bool {
    !matches!(model.index.loops[id.at()].kind, LoopKind::Comprehension(..))
}

/// `dpnp.zeros` and its kin.
fn created_by<'m>(model: &'m Model<'_>, expr: &Expr) -> Option<&'m str> {
    let Expr::Call(call) = expr else { return None };
    let name = model.device_function(call)?;
    matches!(
        name,
        "zeros" | "ones" | "empty" | "full" | "zeros_like" | "ones_like" | "empty_like" | "full_like"
    )
    .then_some(name)
}

/// The expression makes a new device array of at least one dimension.
fn allocates<'a>(model: &Model<'a>, id: ExprId) -> bool {
    let expr = model.index.node(id).expr;
    let Some(result) = model.device(expr) else { return false };
    if result.dimensions() == Some(0) || result.elements().is_some_and(|count| count <= 1) {
        return false;
    }
    let large = |expr: &'a Expr| is_arrayish(model, expr, 0);
    match expr {
        Expr::BinOp(operation) => {
            if matches!(operation.op, ast::Operator::MatMult) && result.dimensions().is_none() {
                // `x @ x` of unknown rank is most likely a number.
                return large(&operation.left)
                    && large(&operation.right)
                    && model.text(&*operation.left) != model.text(&*operation.right);
            }
            // A parameter in arithmetic may as well be a number: the device array must be the array.
            let known = |side: &'a Expr| model.device(side).is_some() && large(side);
            known(&operation.left) || known(&operation.right)
        }
        Expr::Call(call) => {
            match model.device_function(call) {
                // A buffer with a name can be made once; an argument is another function's business.
                Some(_) if created_by(model, expr).is_some() => matches!(model.fate(id), Fate::Named(..)),
                Some("dot" | "take") if result.dimensions().is_none() => false,
                Some("concatenate" | "concat" | "stack") => false,
                Some(name) => {
                    accepts_out(name)
                        && keyword(call, "out").is_none()
                        && call.arguments.args.iter().any(large)
                        && call.arguments.args.iter().all(|argument| {
                            !matches!(model.value(argument), Value::Unknown) || large(argument)
                        })
                        && call.arguments.args.len() <= if is_elementwise(name) { 3 } else { 2 }
                }
                None => false,
            }
        }
        _ => false,
    }
}

/// Evidence that the value has at least one dimension.
///
/// Where the rank is unknown, a parameter that meets dpnp functions counts as an array, a reduction or product as a
/// number, and what is computed element by element as its operands.
fn is_arrayish<'a>(model: &Model<'a>, expr: &'a Expr, depth: usize) -> bool {
    if depth > 6 {
        return false;
    }
    let arrayish = |expr: &'a Expr| is_arrayish(model, expr, depth + 1);
    match model.value(expr) {
        Value::Array(array) => {
            if let Some(count) = array.dimensions() {
                return count > 0;
            }
        }
        Value::Unknown => {}
        _ => return false,
    }
    match expr {
        Expr::Name(name) => {
            let Some(id) = model.index.expr_id(expr) else { return false };
            let scope = model.owner(model.index.node(id).scope, name.id.as_str());
            model.is_given(expr)
                || model.is_parameter(name.id.as_str(), scope)
                || model.stores(name.id.as_str(), scope).any(|store| {
                    matches!(model.index.stmt(model.index.node(store).stmt).stmt, Stmt::Assign(assign)
                        if assign.targets.iter().any(Expr::is_name_expr)
                            && model.device(&assign.value).is_some()
                            && arrayish(&assign.value))
                })
        }
        // Of numbers, as far as anyone knows.
        Expr::BinOp(_) | Expr::UnaryOp(_) if model.device(expr).is_none() => false,
        Expr::BinOp(operation) => {
            let known = |side: &'a Expr| model.device(side).is_some() && arrayish(side);
            !matches!(operation.op, ast::Operator::MatMult)
                && (known(&operation.left) || known(&operation.right))
        }
        Expr::UnaryOp(operation) => arrayish(&operation.operand),
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "T" | "mT") && arrayish(&attribute.value)
        }
        Expr::Subscript(subscript) => {
            let parts: &[Expr] = match &*subscript.slice {
                Expr::Tuple(tuple) => &tuple.elts,
                slice => std::slice::from_ref(slice),
            };
            parts.iter().any(Expr::is_slice_expr) && arrayish(&subscript.value)
        }
        Expr::Call(call) => match model.value(&call.func) {
            Value::Path(path) => match strip_library(path) {
                Some(
                    "asarray" | "array" | "ascontiguousarray" | "concatenate" | "stack" | "reshape"
                    | "fromfile",
                ) => true,
                Some("roll" | "flip" | "copy" | "astype" | "cumsum" | "sort" | "fft.fft" | "fft.ifft") => {
                    call.arguments.args.first().is_some_and(arrayish)
                }
                Some(name) if is_elementwise(name) => call.arguments.args.iter().any(arrayish),
                _ => false,
            },
            Value::Method(_, name) => match &*call.func {
                Expr::Attribute(attribute) => {
                    matches!(&**name, "copy" | "astype" | "conj" | "clip" | "cumsum")
                        && arrayish(&attribute.value)
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

/// Part of an expression that is reported as a whole.
fn in_larger(model: &Model<'_>, id: ExprId) -> bool {
    std::iter::successors(model.index.node(id).parent, |id| model.index.node(*id).parent)
        .any(|id| allocates(model, id))
}

/// Nothing holds the result when the next iteration replaces it.
fn is_freed(model: &Model<'_>, id: ExprId, busy: LoopId) -> bool {
    match model.fate(id) {
        Fate::Discarded | Fate::Consumed => true,
        Fate::Named(name, _) => {
            let scope = &model.index.functions[model.index.node(id).scope.at()];
            !scope.globals.contains(name) && !scope.nonlocals.contains(name) && !model.is_kept(name, busy)
        }
        _ => false,
    }
}

/// True if the value has one shape, whatever the iteration.
fn is_stable<'a>(model: &Model<'a>, expr: &'a Expr, id: LoopId, assumed: &[&'a str]) -> bool {
    let stable = |expr: &'a Expr| is_stable(model, expr, id, assumed);
    if model.value(expr).is_number()
        || model.value(expr).as_array().is_some_and(|array| array.dimensions() == Some(0))
    {
        return true;
    }
    match expr {
        Expr::Name(name) => {
            let name = name.id.as_str();
            if !model.loop_effects(id).bound.contains(name) {
                return true;
            }
            // Its own earlier value is stable by assumption, as in `x = x + y`.
            if assumed.contains(&name) {
                return true;
            }
            let assumed: Vec<&'a str> = assumed.iter().copied().chain([name]).collect();
            let stores: Vec<ExprId> = model.stores_in_loop(name, id).collect();
            assumed.len() < 16
                && !stores.is_empty()
                && stores.iter().all(|store| match model.index.stmt(model.index.node(*store).stmt).stmt {
                    Stmt::AugAssign(assign) => is_stable(model, &assign.value, id, &assumed),
                    Stmt::Assign(assign) if model.index.node(*store).parent.is_none() => {
                        is_stable(model, &assign.value, id, &assumed)
                    }
                    // `a, b = b, a`
                    Stmt::Assign(assign) => match &*assign.value {
                        Expr::Tuple(tuple) => tuple.elts.iter().all(Expr::is_name_expr),
                        _ => false,
                    },
                    _ => false,
                })
        }
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "T" | "mT" | "real" | "imag") && stable(&attribute.value)
                || !model.loop_effects(id).replaced.contains(attribute.attr.as_str())
                    && stable(&attribute.value)
                    && !matches!(model.value(expr), Value::Unknown)
        }
        // A list or tuple may hold arrays of many sizes.
        Expr::Subscript(subscript) => {
            model.value(&subscript.value).as_array().is_some()
                && stable(&subscript.value)
                && has_stable_extent(model, &subscript.slice, id)
        }
        Expr::BinOp(operation) => stable(&operation.left) && stable(&operation.right),
        Expr::UnaryOp(operation) => stable(&operation.operand),
        Expr::Compare(comparison) => stable(&comparison.left) && comparison.comparators.iter().all(stable),
        Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
            elts.iter().all(stable)
        }
        Expr::Call(call) => {
            let constant = |call: &'a ast::ExprCall| {
                call.arguments.args.iter().all(|argument| model.is_invariant(argument, id))
                    && call.arguments.keywords.iter().all(|keyword| model.is_invariant(&keyword.value, id))
            };
            let keywords = call.arguments.keywords.iter().all(|keyword| {
                matches!(model.value(&keyword.value), Value::Number(_) | Value::Dtype(_) | Value::Text(_))
                    || model.is_invariant(&keyword.value, id)
            });
            match model.value(&call.func) {
                Value::Path(path) => match strip_library(path) {
                    Some(name) if name.ends_with("_like") && created_by(model, expr).is_some() => {
                        keywords && call.arguments.args.iter().all(stable)
                    }
                    Some(_) if created_by(model, expr).is_some() => constant(call),
                    Some(name)
                        if accepts_out(name) && !matches!(name, "concatenate" | "concat" | "compress") =>
                    {
                        keywords && call.arguments.args.iter().all(stable)
                    }
                    Some(
                        "asarray" | "array" | "astype" | "ascontiguousarray" | "copy" | "transpose" | "roll"
                        | "flip",
                    ) => keywords && call.arguments.args.first().is_some_and(stable),
                    Some(name) if name.starts_with("random.") => constant(call),
                    Some("fft.fft" | "fft.ifft" | "linalg.inv" | "linalg.cholesky" | "linalg.solve") => {
                        call.arguments.args.iter().all(stable)
                    }
                    _ => false,
                },
                Value::Method(owner, name) => {
                    let receiver = match &*call.func {
                        Expr::Attribute(attribute) => stable(&attribute.value),
                        _ => false,
                    };
                    owner.as_device().is_some()
                        && receiver
                        && matches!(
                            &**name,
                            "copy"
                                | "astype"
                                | "transpose"
                                | "conj"
                                | "clip"
                                | "ravel"
                                | "sum"
                                | "mean"
                                | "max"
                                | "min"
                                | "dot"
                        )
                        && call.arguments.args.iter().all(|argument| {
                            !matches!(model.value(argument), Value::Unknown)
                                || model.is_invariant(argument, id)
                        })
                }
                _ => false,
            }
        }
        _ => model.is_invariant(expr, id),
    }
}

/// Whole numbers keep the extent whatever they are; slices only with constant bounds.
fn has_stable_extent<'a>(model: &Model<'a>, slice: &'a Expr, id: LoopId) -> bool {
    let parts: &[Expr] = match slice {
        Expr::Tuple(tuple) => &tuple.elts,
        _ => std::slice::from_ref(slice),
    };
    parts.iter().all(|part| match part {
        Expr::Slice(_) => model.is_invariant(part, id),
        _ => model.value(part).is_number() || model.is_invariant(part, id),
    })
}

const OPERATORS: &[(ast::Operator, &str)] = &[
    (ast::Operator::Add, "add"),
    (ast::Operator::Sub, "subtract"),
    (ast::Operator::Mult, "multiply"),
    (ast::Operator::Div, "divide"),
    (ast::Operator::FloorDiv, "floor_divide"),
    (ast::Operator::Mod, "remainder"),
    (ast::Operator::Pow, "power"),
    (ast::Operator::MatMult, "matmul"),
    (ast::Operator::BitAnd, "bitwise_and"),
    (ast::Operator::BitOr, "bitwise_or"),
    (ast::Operator::BitXor, "bitwise_xor"),
];

/// The expression as a call that writes into `target`.
fn with_out(model: &Model<'_>, id: ExprId, target: &str) -> Option<String> {
    let text = |expr: &Expr| model.text(expr);
    match model.index.node(id).expr {
        Expr::BinOp(operation) => {
            let (_, name) = OPERATORS.iter().find(|(operator, _)| *operator == operation.op)?;
            let module = model.module_name(id)?;
            let (left, right) = (text(&operation.left), text(&operation.right));
            let short = !left.contains(['\n', '#']) && !right.contains(['\n', '#']);
            short.then(|| format!("{module}.{name}({left}, {right}, out={target})"))
        }
        Expr::Call(call) => {
            let text = model.text(call);
            if text.contains(['\n', '#']) {
                return None;
            }
            let inside = text.strip_suffix(')')?.trim_end().trim_end_matches(',');
            Some(format!("{inside}, out={target})"))
        }
        _ => None,
    }
}

/// The edits that write into one block, if shape and dtype are known and the target is the loop's own.
fn fixed<'a>(model: &Model<'a>, id: ExprId, busy: LoopId) -> Option<Fix> {
    let node = model.index.node(id);
    let Stmt::Assign(assign) = model.index.stmt(node.stmt).stmt else { return None };
    let [Expr::Name(target)] = assign.targets.as_slice() else { return None };
    if node.parent.is_some() || node.innermost != Some(busy) {
        return None;
    }
    let name = target.id.as_str();
    let result = model.device(node.expr)?;
    let dtype = result.dtype?;
    if !matches!(dtype.category, Category::Float | Category::Complex) {
        return None;
    }
    let shape = result.shape.as_ref()?;
    if shape.contains(&Dim::Unknown) {
        return None;
    }
    let operands: Vec<&'a Expr> = match node.expr {
        Expr::BinOp(operation) => {
            if matches!(operation.op, ast::Operator::MatMult) {
                return None;
            }
            vec![&operation.left, &operation.right]
        }
        Expr::Call(call) if model.device_function(call).is_some_and(is_elementwise) => {
            call.arguments.args.iter().collect()
        }
        _ => return None,
    };
    let same = |expr: &Expr| {
        model
            .device(expr)
            .is_some_and(|array| array.dtype == Some(dtype) && array.shape.as_ref() == Some(shape))
    };
    // More than two are never a case for a fix.
    let stores: Vec<ExprId> = model.stores(name, node.scope).take(3).collect();
    if model.is_aliased(name, node.scope) {
        return None;
    }
    // `x = x + y`, x made here.
    if let Expr::BinOp(operation) = node.expr
        && matches!(&*operation.left, Expr::Name(left) if left.id.as_str() == name)
    {
        let symbol = operation.op.as_str();
        let own = stores.iter().all(|store| {
            matches!(model.index.stmt(model.index.node(*store).stmt).stmt, Stmt::Assign(assign)
                if matches!(&*assign.value, Expr::Call(_) | Expr::BinOp(_)))
        });
        let fresh = stores.len() == 2 && own && same(&operation.left);
        let loads_self = mentions(model, &operation.right, name);
        return (fresh && !loads_self && fresh_value(model, &stores, id)).then(|| Fix {
            safety: Safety::Unsafe,
            edits: vec![Edit::replace(assign, format!("{name} {symbol}= {}", model.text(&*operation.right)))],
        });
    }
    let like = operands
        .iter()
        .find(|operand| operand.is_name_expr() && same(operand) && model.is_invariant_name(operand, busy))?;
    if stores.len() != 1 || mentions(model, node.expr, name) {
        return None;
    }
    // Nothing may read the name before the loop has bound it.
    let loop_stmt = model.index.stmt(model.index.loops[busy.at()].stmt).stmt;
    if model.loads(name, node.scope).any(|load| model.range(load).start() < assign.start()) {
        return None;
    }
    let indentation = model.source.indentation(loop_stmt.start())?;
    let module = model.module_name(id)?;
    let call = with_out(model, id, name)?;
    let newline = model.source.newline();
    Some(Fix {
        safety: Safety::Unsafe,
        edits: vec![
            Edit::insert(
                loop_stmt.start(),
                format!("{name} = {module}.empty_like({}){newline}{indentation}", model.text(*like)),
            ),
            Edit::replace(assign, call),
        ],
    })
}

/// The other binding of the name makes a new array.
fn fresh_value(model: &Model<'_>, stores: &[ExprId], id: ExprId) -> bool {
    stores.iter().all(|store| {
        let stmt = model.index.node(*store).stmt;
        stmt == model.index.node(id).stmt
            || matches!(model.index.stmt(stmt).stmt, Stmt::Assign(assign) if created_by(model, &assign.value).is_some())
    })
}

fn mentions(model: &Model<'_>, expr: &Expr, name: &str) -> bool {
    model.mentions(expr.range(), name).next().is_some()
}
