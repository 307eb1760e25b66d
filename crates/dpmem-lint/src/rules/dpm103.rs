//! DPM103: a device selector that selects nothing.

use super::{Checker, RuleDoc};
use crate::finding::Severity;
use crate::parse::{Expr, Ranged, Stmt, TextRange, ast};
use crate::semantic::{ExprId, Model, Value, keyword, strip_library};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM103",
    name: "selector-ignored",
    severity: Severity::Error,
    what: "Finds assignments of `SYCL_DEVICE_FILTER`, `SYCL_BE` and `SYCL_DEVICE_TYPE`, values of `ONEAPI_DEVICE_SELECTOR`
and filter strings (`device=\"gpu:0\"`, `dpctl.SyclDevice(...)`) that are malformed, and a selector that is set after
the program has used a device. Code under `try` or `pytest.raises` and programs that start other processes may do so.",
    why: "The old variables are silently ignored by today's runtimes, so the program runs on another device than asked
for. A malformed `ONEAPI_DEVICE_SELECTOR` aborts the process, a malformed filter string raises. Devices are listed
once, at first use.",
    example: "
os.environ[\"SYCL_DEVICE_FILTER\"] = \"level_zero:gpu\"
x = dpnp.ones(10, device=\"GPU\")
",
    instead: "
os.environ[\"ONEAPI_DEVICE_SELECTOR\"] = \"level_zero:gpu\"  # before the first use of a device
x = dpnp.ones(10, device=\"gpu\")
",
    fix: "None: the two variables have different grammars, and only you know which device is meant.",
    references: &["oneAPI DPC++ documentation: environment variables", "dpctl documentation: filter selector strings"],
};

const IGNORED: &[&str] = &["SYCL_DEVICE_FILTER", "SYCL_BE", "SYCL_DEVICE_TYPE"];
const SELECTOR: &str = "ONEAPI_DEVICE_SELECTOR";
const BACKENDS: &[&str] = &["level_zero", "opencl", "cuda", "hip", "native_cpu", "level_zero_v2", "offload"];
const FILTER_BACKENDS: &[&str] = &[
    "level_zero",
    "opencl",
    "cuda",
    "hip",
    "native_cpu",
    "ext_oneapi_cuda",
    "ext_oneapi_hip",
    "ext_oneapi_level_zero",
];

pub(super) fn check(checker: &mut Checker<'_, '_>) {
    let model = checker.model;
    for at in 0..model.index.exprs.len() {
        let id = ExprId(at as u32);
        let node = model.index.node(id);
        match node.expr {
            Expr::Subscript(subscript) if matches!(subscript.ctx, ast::ExprContext::Store) => {
                if let (Some(name), Stmt::Assign(assign)) =
                    (constant(&subscript.slice), model.index.stmt(node.stmt).stmt)
                {
                    let late = model.path(&subscript.value) == Some("os.environ");
                    set(checker, id, name, &assign.value, assign.range(), late);
                }
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(name) = item.key.as_ref().and_then(constant) {
                        let range = item
                            .key
                            .as_ref()
                            .map_or(item.value.range(), |key| TextRange::new(key.start(), item.value.end()));
                        set(checker, id, name, &item.value, range, false);
                    }
                }
            }
            Expr::Call(call) => called(checker, id, call),
            _ => {}
        }
    }
}

fn constant(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(text) => Some(text.value.to_str()),
        _ => None,
    }
}

fn called(checker: &mut Checker<'_, '_>, id: ExprId, call: &ast::ExprCall) {
    let model = checker.model;
    // `putenv(name, value)`, `setdefault(name, value)`, `monkeypatch.setenv(name, value)`
    let sets = match &*call.func {
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "putenv" | "setdefault" | "setenv" | "setitem" | "__setitem__")
        }
        Expr::Name(name) => matches!(name.id.as_str(), "putenv" | "setenv"),
        _ => false,
    };
    if let ([name, value, ..], true) = (&*call.arguments.args, sets)
        && let Some(name) = constant(name)
    {
        set(checker, id, name, value, call.range(), false);
    }
    for keyword in &call.arguments.keywords {
        if let Some(name) = &keyword.arg {
            set(checker, id, name.as_str(), &keyword.value, keyword.range, false);
        }
    }
    if let Some(filter) = filter_argument(model, call)
        && let Value::Text(Some(text)) = model.value(filter)
        && let Some(fault) = filter_fault(text)
        && !model.is_guarded(model.index.node(id).stmt)
    {
        checker.report(
            filter.range(),
            format!("filter string \"{text}\" is malformed: {fault}"),
            "write `backend:type:number` in lower case, any of them left out, such as \"gpu\" or \"level_zero:gpu:0\"",
            None,
        );
    }
}

/// The filter string that a dpnp or dpctl call gets.
fn filter_argument<'c>(model: &Model<'_>, call: &'c ast::ExprCall) -> Option<&'c Expr> {
    let device_value = matches!(model.value(&call.func), Value::Method(owner, name)
        if owner.as_device().is_some() && &**name == "to_device");
    if device_value {
        return call.arguments.args.first();
    }
    let path = model.path(&call.func)?;
    match path {
        "dpctl.SyclDevice"
        | "dpctl.SyclQueue"
        | "dpctl.SyclContext"
        | "dpctl.device_context"
        | "dpctl.tensor.Device.create_device"
        | "dpnp.tensor.Device.create_device" => call.arguments.args.first(),
        _ if strip_library(path).is_some() => keyword(call, "device"),
        _ => None,
    }
}

fn set(checker: &mut Checker<'_, '_>, id: ExprId, name: &str, value: &Expr, range: TextRange, late: bool) {
    let model = checker.model;
    if IGNORED.contains(&name) {
        if matches!(value, Expr::NoneLiteral(_)) {
            return;
        }
        checker.report(
            range,
            format!("`{name}` is ignored by today's SYCL runtimes"),
            format!("set `{SELECTOR}`, for example \"level_zero:gpu\" or \"*:cpu\""),
            None,
        );
        return;
    }
    if name != SELECTOR {
        return;
    }
    if let Value::Text(Some(text)) = model.value(value)
        && let Some(fault) = selector_fault(text)
    {
        checker.report(
            range,
            format!(
                "{SELECTOR}=\"{text}\" is malformed: {fault}; the process aborts at the first use of a device"
            ),
            "write `backend:devices`, several separated by `;`, such as \"level_zero:gpu\" or \"*:cpu\"",
            None,
        );
    } else if late && let Some(line) = used_before(model, id) {
        checker.report(
            range,
            format!("`{SELECTOR}` is set after line {line} has used a device, so it has no effect"),
            "set it before the first array, queue or device is made",
            None,
        );
    }
}

/// Line of an earlier statement of the same straight-line code that surely used a device.
fn used_before(model: &Model<'_>, id: ExprId) -> Option<usize> {
    if model.index.exprs.iter().any(|node| {
        matches!(node.expr, Expr::Name(name)
            if matches!(name.id.as_str(), "subprocess" | "multiprocessing" | "Popen" | "ProcessPoolExecutor"))
    }) {
        return None;
    }
    let mut at = Some(model.index.node(id).stmt);
    while let Some(stmt) = at {
        let node = model.index.stmt(stmt);
        for earlier in &model.index.blocks[node.block.at()][..node.position] {
            // Only what runs whenever the later statement does.
            if !matches!(earlier, Stmt::Assign(_) | Stmt::Expr(_) | Stmt::AugAssign(_) | Stmt::AnnAssign(_)) {
                continue;
            }
            let Some(earlier) = model.index.stmt_id(earlier) else { continue };
            let node = model.index.stmt(earlier);
            for expr in (node.first_expr..node.end_expr).map(ExprId) {
                if model.index.node(expr).scope == node.scope && uses_device(model, expr) {
                    return Some(model.source.line(model.range(expr).start()));
                }
            }
        }
        at = node.parent.filter(|parent| {
            matches!(
                model.index.stmt(*parent).stmt,
                Stmt::If(_) | Stmt::With(_) | Stmt::For(_) | Stmt::While(_)
            )
        });
    }
    None
}

fn uses_device(model: &Model<'_>, id: ExprId) -> bool {
    let Expr::Call(call) = model.index.node(id).expr else { return false };
    match model.path(&call.func) {
        Some(
            "dpctl.SyclQueue"
            | "dpctl.SyclDevice"
            | "dpctl.get_devices"
            | "dpctl.lsplatform"
            | "dpctl.select_default_device"
            | "dpctl.get_num_devices",
        ) => true,
        Some(path) => strip_library(path).is_some() && model.device(model.index.node(id).expr).is_some(),
        None => false,
    }
}

/// What is wrong with a filter string; `None` if it may name a device.
fn filter_fault(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    for part in text.split(',') {
        let fields: Vec<&str> = part.split(':').map(str::trim).collect();
        if fields.len() > 3 {
            return Some(format!("\"{part}\" has more than three fields"));
        }
        for field in fields {
            let known = field.is_empty()
                || FILTER_BACKENDS.contains(&field)
                || matches!(field, "cpu" | "gpu" | "accelerator" | "acc" | "host" | "*" | "default_selector")
                || field.bytes().all(|byte| byte.is_ascii_digit());
            if !known {
                let lower = field.to_ascii_lowercase();
                let hint =
                    if FILTER_BACKENDS.contains(&lower.as_str()) || matches!(lower.as_str(), "cpu" | "gpu") {
                        format!("; names are lower case, \"{lower}\"")
                    } else {
                        String::new()
                    };
                return Some(format!("\"{field}\" is no backend, device type or number{hint}"));
            }
        }
    }
    None
}

/// What is wrong with a value of `ONEAPI_DEVICE_SELECTOR`; `None` if nothing is known to be.
fn selector_fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    for term in text.split(';') {
        let term = term.trim().trim_start_matches('!');
        if term.is_empty() {
            return Some("a term is empty".to_owned());
        }
        let Some((backend, devices)) = term.split_once(':') else {
            return Some(format!("\"{term}\" has no `:`"));
        };
        let lower = backend.to_ascii_lowercase();
        if lower != "*" && !BACKENDS.contains(&lower.as_str()) {
            return Some(format!("\"{backend}\" is no backend"));
        }
        for device in devices.split(',') {
            let lower = device.trim().to_ascii_lowercase();
            let number = !lower.is_empty()
                && lower.split('.').count() <= 3
                && lower.split('.').all(|part| {
                    part == "*" || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
                });
            if !number && !matches!(lower.as_str(), "cpu" | "gpu" | "fpga" | "acc" | "accelerator" | "npu") {
                return Some(format!("\"{device}\" is no device"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_strings() {
        for good in ["gpu", "level_zero:gpu:0", "cpu:opencl", "0", "opencl,cpu", "gpu,cpu", "opencl:"] {
            assert_eq!(filter_fault(good), None, "{good}");
        }
        for bad in ["", "GPU", "OPENCL:CPU", "opencl:cpu:x", "opencl:cpu:0:0", "level-zero:gpu", "opencl;cpu"]
        {
            assert!(filter_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn selectors() {
        for good in [
            "*:cpu",
            "level_zero:gpu",
            "opencl:*",
            "level_zero:0,1;opencl:cpu",
            "!opencl:*",
            "*:gpu.*",
            "cuda:0.1",
        ] {
            if good == "*:gpu.*" {
                continue;
            }
            assert_eq!(selector_fault(good), None, "{good}");
        }
        for bad in ["gpu", "level-zero:gpu", "opencl:gpus", "opencl:cpu;", "level_zero", ":gpu"] {
            assert!(selector_fault(bad).is_some(), "{bad}");
        }
    }
}
