//! Any text as a PCI address. Must hold: no panic, and an address that was read is written as it can be read again.

#![no_main]

use dpmem_devices::Address;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse::<Address>().ok(), Some(address));
    }
});
