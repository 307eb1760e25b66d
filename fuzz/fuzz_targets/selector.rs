//! Any text as `ONEAPI_DEVICE_SELECTOR` and `SYCL_DEVICE_FILTER`. Must hold: no panic, and what an old filter is
//! translated into is well-formed.

#![no_main]

use dpmem_devices::selector::{fault, from_filter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = fault(text);
    if let Some(selector) = from_filter(text) {
        assert_eq!(fault(&selector), None);
    }
});
