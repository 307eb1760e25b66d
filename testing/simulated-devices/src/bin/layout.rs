//! Prints where everything is that the library declares by hand, one thing a line, for the test that compares it with
//! the public headers:
//!
//! ```text
//! struct NAME SIZE
//! field STRUCT FIELD OFFSET
//! place TABLE FIELD NUMBER
//! value NAME NUMBER
//! ```

use std::fmt::Write;

use simulated_devices::level_zero::abi::{LAYOUTS, structure::STRUCTURES};
use simulated_devices::level_zero::{OUTCOMES, loader::TABLES};
use simulated_devices::opencl::target::SLOTS;

fn main() -> std::fmt::Result {
    let mut text = String::new();
    for layout in LAYOUTS {
        writeln!(text, "struct {} {}", layout.name, layout.size)?;
        for (field, offset) in layout.fields {
            writeln!(text, "field {} {} {offset}", layout.name, field.trim_end_matches('_'))?;
        }
    }
    for table in TABLES {
        for (place, field) in table.places {
            writeln!(text, "place {} {field} {place}", table.name)?;
        }
    }
    for (name, value) in OUTCOMES.iter().chain(STRUCTURES) {
        writeln!(text, "value {name} {value}")?;
    }
    for slot in SLOTS {
        writeln!(text, "place cl_icd_dispatch {} {}", slot.1, slot.0)?;
    }
    print!("{text}");
    Ok(())
}
