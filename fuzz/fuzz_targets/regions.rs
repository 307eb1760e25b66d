//! Any bytes as the answer of the i915 and xe drivers. Must hold: no panic, and never more free than there is.

#![no_main]

use dpmem_devices::regions::{on_device, parse_i915, parse_xe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| {
    for regions in [parse_i915(answer), parse_xe(answer)].into_iter().flatten() {
        assert!(regions.iter().all(|region| region.free <= region.total));
        let _ = on_device(&regions);
    }
});
