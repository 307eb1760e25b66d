//! The grammar of `ONEAPI_DEVICE_SELECTOR`, as the SYCL runtime reads it. With a malformed one it shows no device at all
//! and says nothing, or aborts the process.
//!
//! Measured on the runtimes of dpnp 0.19 and 0.20: backends in any case, types in lower case only, empty terms and
//! numbers passed over.

const BACKENDS: &[&str] =
    &["*", "level_zero", "level_zero_v2", "opencl", "cuda", "hip", "native_cpu", "offload"];
const TYPES: &[&str] = &["*", "cpu", "gpu", "fpga", "acc", "accelerator", "npu"];

/// What is wrong with a value of `ONEAPI_DEVICE_SELECTOR`; `None` if nothing is known to be.
#[must_use]
pub fn fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let mut discarding = false;
    let terms = || text.split(';').filter(|term| !term.is_empty());
    if terms().next().is_none() {
        return Some("there is no term".to_string());
    }
    for term in terms() {
        let (term, discards) = match term.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (term, false),
        };
        if discarding && !discards {
            return Some(format!("`{term}` accepts devices after a term with `!` has begun to discard them"));
        }
        discarding |= discards;
        let Some((backend, devices)) = term.split_once(':') else {
            return Some(format!("`{term}` has no `:`"));
        };
        if !BACKENDS.contains(&backend.to_ascii_lowercase().as_str()) {
            return Some(format!("`{backend}` is no backend"));
        }
        let named = || devices.split(',').filter(|device| !device.is_empty());
        if named().next().is_none() {
            return Some(format!("`{term}` names no device"));
        }
        if let Some(wrong) = named().find(|device| !is_device(device)) {
            return Some(format!("`{wrong}` is no device type or number"));
        }
    }
    None
}

/// A type, or numbers of a device, a sub-device and a sub-sub-device.
fn is_device(device: &str) -> bool {
    let number =
        |part: &str| part == "*" || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    TYPES.contains(&device) || device.split('.').count() <= 3 && device.split('.').all(number)
}

/// The selector that says what a value of the old `SYCL_DEVICE_FILTER` meant, as far as it can be said.
#[must_use]
pub fn from_filter(filter: &str) -> Option<String> {
    let term = |filter: &str| {
        let (mut backend, mut kind, mut number) = ("*", None, None);
        for field in filter.split(':') {
            match field.trim() {
                "" | "*" => {}
                name if BACKENDS.contains(&name) => backend = name,
                name if TYPES.contains(&name) => kind = Some(name.to_string()),
                name if name.bytes().all(|byte| byte.is_ascii_digit()) => number = Some(name.to_string()),
                _ => return None,
            }
        }
        // A number counts the devices of a type there, and all devices of a backend here.
        let device = match (kind, number) {
            (Some(kind), None) => kind,
            (Some(kind), Some(zero)) if zero == "0" => kind,
            (None, Some(number)) => number,
            (None, None) => "*".to_string(),
            _ => return None,
        };
        Some(format!("{backend}:{device}"))
    };
    let terms: Option<Vec<_>> = filter.split(',').map(term).collect();
    terms.map(|terms| terms.join(";"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn well_formed() {
        for good in [
            "",
            "*:cpu",
            "level_zero:gpu",
            "OPENCL:gpu",
            "level_zero:0,1;opencl:cpu",
            "!opencl:*",
            "*:*;!cuda:0",
            "cuda:0.1",
            "*:*.*",
            "*:cpu;",
            "*:cpu,,0",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
    }

    #[test]
    fn malformed() {
        for bad in [
            "gpu",
            "level-zero:gpu",
            "opencl:gpus",
            ";",
            "!",
            "*:CPU",
            " *:cpu",
            ":gpu",
            "opencl:",
            "!*:cpu;*:gpu",
            "*:0.0.0.0",
            "cuda:-1",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn old_filters_are_translated_where_they_can_be() {
        for (old, new) in [
            ("level_zero:gpu:0", Some("level_zero:gpu")),
            ("cpu", Some("*:cpu")),
            ("opencl", Some("opencl:*")),
            ("level_zero:1", Some("level_zero:1")),
            ("gpu,cpu", Some("*:gpu;*:cpu")),
            ("level_zero:gpu:1", None),
            ("esimd_emulator", None),
        ] {
            assert_eq!(from_filter(old).as_deref(), new, "{old}");
            assert_eq!(new.and_then(fault), None, "{old}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*") {
            let _ = fault(&text);
            if let Some(selector) = from_filter(&text) {
                prop_assert_eq!(fault(&selector), None);
            }
        }
    }
}
