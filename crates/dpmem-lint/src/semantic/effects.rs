//! What the code of one region (a loop, a function) may change.
//!
//! Conservative towards silence: whatever cannot be followed counts as a change.

use rustc_hash::FxHashSet;

use super::index::{ExprId, FunctionId, LoopId};
use super::model::{Model, root_name};
use super::value::Value;
use crate::parse::ast::{self, Expr};

/// A stretch of code that runs as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    Loop(LoopId),
    Function(FunctionId),
}

/// Names and attributes that a region may change.
#[derive(Debug, Default)]
pub(crate) struct Effects<'a> {
    /// Names bound.
    pub(crate) bound: FxHashSet<&'a str>,
    /// Names whose object may be changed in place.
    pub(crate) touched: FxHashSet<&'a str>,
    /// Names of attributes stored, whatever the object.
    pub(crate) attributes: FxHashSet<&'a str>,
    /// Names of attributes bound to another object.
    pub(crate) replaced: FxHashSet<&'a str>,
    /// Something is called that is neither a library function nor followed.
    pub(crate) calls_unknown: bool,
}

/// How deep calls of the file's own functions are followed.
const CALL_DEPTH: usize = 2;

pub(crate) fn of<'a>(model: &Model<'a>, region: Region, depth: usize) -> Effects<'a> {
    let mut effects = Effects::default();
    for id in model.expressions(region) {
        expression(model, id, depth, &mut effects);
    }
    effects
}

fn expression<'a>(model: &Model<'a>, id: ExprId, depth: usize, effects: &mut Effects<'a>) {
    let expr = model.index.node(id).expr;
    match expr {
        Expr::Name(name) if !matches!(name.ctx, ast::ExprContext::Load) => {
            effects.bound.insert(name.id.as_str());
            if model.is_augmented(id) {
                effects.touched.insert(name.id.as_str());
            }
        }
        Expr::Attribute(attribute) if !matches!(attribute.ctx, ast::ExprContext::Load) => {
            effects.attributes.insert(attribute.attr.as_str());
            if !model.is_augmented(id) {
                effects.replaced.insert(attribute.attr.as_str());
            }
        }
        Expr::Subscript(subscript) if !matches!(subscript.ctx, ast::ExprContext::Load) => {
            touch(&subscript.value, effects);
        }
        Expr::Call(call) => called(model, call, depth, effects),
        Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Await(_) => effects.calls_unknown = true,
        _ => {}
    }
}

/// The object that `expr` is, or is part of, may change.
fn touch<'a>(expr: &'a Expr, effects: &mut Effects<'a>) {
    if let Some(name) = root_name(expr) {
        effects.touched.insert(name);
    }
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Attribute(attribute) => {
                effects.attributes.insert(attribute.attr.as_str());
                &attribute.value
            }
            Expr::Subscript(subscript) => &subscript.value,
            Expr::Call(call) => &call.func,
            _ => return,
        };
    }
}

fn called<'a>(model: &Model<'a>, call: &'a ast::ExprCall, depth: usize, effects: &mut Effects<'a>) {
    for keyword in &call.arguments.keywords {
        if keyword.arg.as_deref() == Some("out") {
            touch(&keyword.value, effects);
        }
    }
    match model.value(&call.func) {
        Value::Path(path) => {
            let name = path.rsplit('.').next().unwrap_or(path);
            if matches!(
                name,
                "copyto"
                    | "put"
                    | "place"
                    | "putmask"
                    | "shuffle"
                    | "fill_diagonal"
                    | "put_along_axis"
                    | "readinto"
            ) && let Some(first) = call.arguments.args.first()
            {
                touch(first, effects);
            }
            if !is_harmless(path) {
                unknown(call, effects);
            }
        }
        Value::Method(owner, name) => {
            let changes = match &**owner {
                Value::Array(_) => {
                    matches!(
                        &**name,
                        "fill" | "sort" | "partition" | "put" | "resize" | "itemset" | "setfield"
                    )
                }
                Value::HostRandom | Value::Text(_) | Value::Number(_) => false,
                _ => !matches!(&**name, "get" | "items" | "keys" | "values" | "index" | "count" | "copy"),
            };
            if let (true, Expr::Attribute(attribute)) = (changes, &*call.func) {
                touch(&attribute.value, effects);
            }
        }
        Value::Function(function) if depth < CALL_DEPTH => {
            let inner = of(model, Region::Function(*function), depth + 1);
            effects.calls_unknown |= inner.calls_unknown;
            effects.attributes.extend(inner.attributes.iter().copied());
            effects.replaced.extend(inner.replaced.iter().copied());
            let own = &model.index.functions[function.at()];
            let outside = |name: &&&str| !own.bound.contains(**name) || own.globals.contains(**name);
            effects.touched.extend(inner.touched.iter().filter(outside).copied());
            effects.bound.extend(inner.bound.iter().filter(|name| own.globals.contains(**name)).copied());
            let changes_own = inner.touched.iter().any(|name| own.bound.contains(*name));
            if changes_own || inner.calls_unknown {
                arguments(call, effects);
            }
        }
        _ => unknown(call, effects),
    }
}

fn unknown<'a>(call: &'a ast::ExprCall, effects: &mut Effects<'a>) {
    effects.calls_unknown = true;
    if let Expr::Attribute(attribute) = &*call.func {
        touch(&attribute.value, effects);
    }
    arguments(call, effects);
}

fn arguments<'a>(call: &'a ast::ExprCall, effects: &mut Effects<'a>) {
    let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
    for argument in call.arguments.args.iter().chain(keywords) {
        touch_all(argument, effects);
    }
}

/// An argument of an unknown call: every object reachable by name in it may change.
fn touch_all<'a>(expr: &'a Expr, effects: &mut Effects<'a>) {
    match expr {
        Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
            elts.iter().for_each(|element| touch_all(element, effects));
        }
        Expr::Starred(starred) => touch_all(&starred.value, effects),
        _ => touch(expr, effects),
    }
}

/// Calls that change nothing but what `out=` and the like name.
pub(crate) fn is_harmless(path: &str) -> bool {
    ["dpnp.", "numpy.", "dpctl.", "math.", "time.", "builtins."].iter().any(|prefix| path.starts_with(prefix))
        && !matches!(path, "builtins.map" | "builtins.filter" | "builtins.next")
}
