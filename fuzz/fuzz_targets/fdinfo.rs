//! Any text as `/proc/PID/fdinfo/N`. Must hold: no panic, also where sizes are added up.

#![no_main]

use dpmem_devices::fdinfo::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(Some(client)) = parse(text) {
        let _ = (client.on_device(), client.on_host());
    }
});
