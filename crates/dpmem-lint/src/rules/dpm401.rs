//! DPM401: the same data, or one element at a time, crosses between host and device in a loop.

use super::{Checker, LEAST_REPEATS, RuleDoc};
use crate::finding::{Edit, Fix, Safety, Severity};
use crate::fixes;
use crate::parse::ast;
use crate::parse::{Expr, Ranged, Stmt};
use crate::semantic::{ExprId, LoopId, LoopKind, Model, Value, strip_library};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM401",
    name: "conversion-in-loop",
    severity: Severity::Warning,
    what: "Finds conversions between NumPy and dpnp in a loop whose data is the same in every iteration, or a single
element of an array. Chunks that differ from step to step, scalars, arrays of a few bytes, buffers that the loop
refills and conversions behind a condition are left alone.",
    why: "Every conversion allocates a block and moves the data across the bus, and the queue waits for it. Data that
does not change needs one crossing; elements are cheaper to move together.",
    example: "
weights = numpy.ones(100_000)
for _ in range(steps):
    w = dpnp.asarray(weights)
    dpnp.add(x, w, out=x)
",
    instead: "
weights = numpy.ones(100_000)
w = dpnp.asarray(weights)
for _ in range(steps):
    dpnp.add(x, w, out=x)
",
    fix: "Moving the conversion in front of the loop is safe when its result is neither changed nor kept inside the
loop. Other cases get no fix.",
    references: &[
        "dpnp documentation: `dpnp.asarray`, `dpnp.asnumpy`",
        "DPM403 for reads of single values",
    ],
};

/// Up to this many bytes a copy is the library's own business.
const SMALL_BYTES: u64 = 32;

/// A conversion: the data, and which way it goes.
struct Conversion<'a> {
    data: &'a Expr,
    to_device: bool,
}

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for (id, call) in model.calls() {
        let Some(innermost) = model.index.node(id).innermost else { continue };
        let Some(conversion) = conversion(model, call) else { continue };
        if is_small(model.value(conversion.data)) {
            continue;
        }
        let way = if conversion.to_device { "to the device" } else { "to the host" };
        let data = model.text(conversion.data);
        if let Some(outermost) = model.invariant_in(conversion.data, Some(innermost))
            && arguments_are_invariant(model, call, outermost)
            && model.repeats(innermost, outermost, LEAST_REPEATS)
            && model.runs_always(id, outermost)
        {
            let fix = hoisted(model, id, call, &conversion, outermost);
            checker.report(
                call.range(),
                format!("`{data}` is sent {way} in every iteration although it does not change"),
                format!("convert `{data}` once, before the loop"),
                fix,
            );
        } else if is_element(model, &conversion, innermost)
            && model.busy_loop(Some(innermost), LEAST_REPEATS).is_some()
            && model.runs_always(id, innermost)
        {
            checker.report(
                call.range(),
                format!("`{data}` is sent {way} one element at a time"),
                "convert the whole array once, outside the loop, and index the result".to_owned(),
                None,
            );
        }
    }
}

fn conversion<'a>(model: &Model<'a>, call: &'a ast::ExprCall) -> Option<Conversion<'a>> {
    match model.value(&call.func) {
        Value::Path(path) => {
            let data = call.arguments.args.first()?;
            match strip_library(path)? {
                "array" | "asarray" | "asanyarray" | "ascontiguousarray" | "from_numpy" => {
                    is_host_data(model.value(data)).then_some(Conversion { data, to_device: true })
                }
                "asnumpy" | "to_numpy" => {
                    model.device(data)?;
                    Some(Conversion { data, to_device: false })
                }
                _ => None,
            }
        }
        Value::Method(owner, name) if &**name == "asnumpy" => {
            owner.as_device()?;
            match &*call.func {
                Expr::Attribute(attribute) => Some(Conversion { data: &attribute.value, to_device: false }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// NumPy arrays, and lists of numbers.
fn is_host_data(value: &Value) -> bool {
    match value {
        Value::Array(array) => !array.is_device(),
        Value::Tuple(items) => !items.is_empty() && items.iter().all(Value::is_number),
        Value::Container(Some(element)) => element.is_number(),
        _ => false,
    }
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Array(array) => {
            let width = array.dtype.map_or(8, |dtype| u64::from(dtype.bytes));
            array.dimensions() != Some(0)
                && array.elements().is_some_and(|count| count * width <= SMALL_BYTES)
        }
        Value::Tuple(items) => items.len() as u64 * 8 <= SMALL_BYTES,
        _ => false,
    }
}

fn arguments_are_invariant<'a>(model: &Model<'a>, call: &'a ast::ExprCall, id: LoopId) -> bool {
    call.arguments.keywords.iter().all(|keyword| model.is_invariant(&keyword.value, id))
        && call.arguments.args.iter().skip(1).all(|argument| model.is_invariant(argument, id))
}

/// One element of an array, another one in each iteration.
fn is_element<'a>(model: &Model<'a>, conversion: &Conversion<'a>, innermost: LoopId) -> bool {
    let value = model.value(conversion.data);
    if value.as_array().and_then(|array| array.dimensions()) != Some(0) {
        return false;
    }
    match conversion.data {
        Expr::Subscript(subscript) => {
            model.value(&subscript.value).as_array().is_some()
                && !model.is_invariant(&subscript.slice, innermost)
        }
        Expr::Name(name) => {
            let (target, iterated) = match &model.index.loops[innermost.at()].kind {
                LoopKind::For(node) => (&*node.target, &*node.iter),
                LoopKind::Comprehension(_, generator) => (&generator.target, &generator.iter),
                LoopKind::While(_) => return false,
            };
            matches!(target, Expr::Name(target) if target.id == name.id)
                && model.value(iterated).as_array().is_some()
        }
        _ => false,
    }
}

/// Moves the conversion in front of the loop, if nothing can tell.
fn hoisted<'a>(
    model: &Model<'a>,
    id: ExprId,
    call: &'a ast::ExprCall,
    conversion: &Conversion<'a>,
    outermost: LoopId,
) -> Option<Fix> {
    if matches!(model.index.loops[outermost.at()].kind, LoopKind::Comprehension(..)) {
        return None;
    }
    let loop_stmt = model.index.stmt(model.index.loops[outermost.at()].stmt);
    let indentation = model.source.indentation(loop_stmt.stmt.start())?;
    let newline = model.source.newline();
    let node = model.index.node(id);
    let stmt = model.index.stmt(node.stmt);
    let scope = node.scope;
    if let Stmt::Assign(assign) = stmt.stmt
        && let [Expr::Name(target)] = assign.targets.as_slice()
        && node.parent.is_none()
    {
        let name = target.id.as_str();
        let function = &model.index.functions[scope.at()];
        let plain = !function.globals.contains(name) && !function.nonlocals.contains(name);
        let early = model.loads(name, scope).any(|load| model.range(load).start() < stmt.stmt.start());
        let alone = model.index.blocks[stmt.block.at()].len() > 1;
        if !plain
            || early
            || !alone
            || model.stores(name, scope).count() != 1
            || model.is_kept(name, outermost)
            || model.loop_effects(outermost).touched.contains(name)
        {
            return None;
        }
        let line = fixes::whole_lines(model.source, stmt.stmt.range())?;
        let body = model.source.slice(line).trim_start_matches([' ', '\t']);
        let at = model.source.line_start(model.source.line(loop_stmt.stmt.start()));
        return Some(Fix {
            safety: Safety::Safe,
            edits: vec![
                Edit::insert((at as u32).into(), format!("{indentation}{body}")),
                Edit { range: line, text: String::new() },
            ],
        });
    }
    if !matches!(model.fate(id), crate::semantic::Fate::Consumed) {
        return None;
    }
    let suffix = if conversion.to_device { "device" } else { "host" };
    let base = match conversion.data {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "data",
    };
    let name = fixes::fresh_name(model, &format!("{base}_{suffix}"))?;
    Some(Fix {
        safety: Safety::Safe,
        edits: vec![
            Edit::insert(
                loop_stmt.stmt.start(),
                format!("{name} = {}{newline}{indentation}", model.text(call)),
            ),
            Edit::replace(call, name),
        ],
    })
}
