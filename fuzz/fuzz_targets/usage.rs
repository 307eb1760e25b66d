//! Any bytes as the file in which a program publishes what it has in use. Must hold: no panic. The file is as long as
//! a real one and begins like one, or no byte of it would be looked at.

#![no_main]

use dpmem_core::UsageMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut file = vec![0; size_of::<UsageMap>()];
    file[..8].copy_from_slice(b"dpmemU02");
    for (index, chunk) in data.chunks(9).enumerate() {
        // Nine bytes are eight to put and where to put them, spread over the file.
        let at = 8 + (index * 64 + usize::from(chunk[chunk.len() - 1]) * 225) % (file.len() - 16);
        file[at..at + chunk.len()].copy_from_slice(chunk);
    }
    let _ = UsageMap::decoded(&file);
    let _ = UsageMap::decoded(data);
});
