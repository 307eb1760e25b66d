//! DPM401: a loop converts the same data, or element by element.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::operation::{fetches, sends};
use super::place::Place;
use super::{Finding, LEAST_REPEATS, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::kind::{DeviceId, Direction};
use crate::snapshot::TransferSnapshot;
use crate::transfer::TransferCounts;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM401",
    name: "conversion-in-loop",
    severity: Severity::Warning,
    what: "Fires for a line that converted between host and device 20 times or more where three quarters of the copies
carried the data of the copy before (the contents are compared, not the addresses), or 50 times or more to the device a
single element, or a row of an array, of 1 KiB or less each. Chunks that differ, scalar operands, and the library's own small copies are left alone.",
    explanation: None,
};

/// Smaller copies are parameters or scalars.
const DATA_AT_LEAST: u64 = 33;
/// One element, of the widest dtype.
const ELEMENT_AT_MOST: u64 = 16;
/// A row or a record of a larger array; between the two lie parameters of a step.
const ROW_AT_MOST: u64 = 1 << 10;
const PIECES_AT_LEAST: u64 = 50;

/// What is wrong with a line's conversions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Repeats,
    Pieces,
}

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut places: BTreeMap<(Place, Direction), TransferCounts> = BTreeMap::new();
    for transfer in facts.snapshot.transfers.iter().filter(|transfer| is_conversion(transfer)) {
        let Some(place) = Place::of(&transfer.frames) else { continue };
        let sum = places.entry((place, transfer.direction)).or_default();
        sum.count += transfer.counts.count;
        sum.bytes += transfer.counts.bytes;
        sum.repeats += transfer.counts.repeats;
        sum.in_step += transfer.counts.in_step;
        sum.largest_bytes = sum.largest_bytes.max(transfer.counts.largest_bytes);
    }
    let faulty = places.into_iter().filter_map(|(at, counts)| {
        let fault = fault(at.1, &counts)?;
        Some((at, fault, counts))
    });
    faulty.map(|((place, direction), fault, counts)| finding(place, direction, fault, &counts)).collect()
}

fn is_conversion(transfer: &TransferSnapshot) -> bool {
    match transfer.direction {
        // `x[...] = data` sends data as well, but a single element there is a boundary value and no conversion.
        Direction::HostToDevice => {
            let setting = |function: &str| function == "__setitem__" || function == "copyto";
            sends(&transfer.frames)
                .is_some_and(|function| !setting(function) || transfer.counts.largest_bytes >= DATA_AT_LEAST)
        }
        Direction::DeviceToHost => fetches(&transfer.frames).is_some(),
        Direction::DeviceToDevice => false,
    }
}

fn fault(direction: Direction, counts: &TransferCounts) -> Option<Fault> {
    let each = counts.bytes / counts.count.max(1);
    // Of each different content two copies are seen before the third is known to be a repetition.
    if counts.count >= LEAST_REPEATS && each >= DATA_AT_LEAST && 4 * (counts.repeats + 2) >= 3 * counts.count
    {
        return Some(Fault::Repeats);
    }
    let largest = counts.largest_bytes;
    // Rows of one array lie at equal distances; what a stream yields doesn't.
    let rows = each >= DATA_AT_LEAST && largest <= ROW_AT_MOST && 2 * counts.in_step >= counts.count;
    let pieces = largest <= ELEMENT_AT_MOST || rows;
    let sent = direction == Direction::HostToDevice && counts.count >= PIECES_AT_LEAST;
    (sent && pieces).then_some(Fault::Pieces)
}

fn finding(place: Place, direction: Direction, fault: Fault, counts: &TransferCounts) -> Finding {
    let (way, call) = match direction {
        Direction::DeviceToHost => ("to the host", "dpnp.asnumpy(...)"),
        _ => ("to the device", "dpnp.asarray(...)"),
    };
    let each = size(counts.bytes / counts.count.max(1));
    let (message, advice) = match fault {
        Fault::Repeats => (
            format!(
                "copied {each} {way} {} times, and the data was the same nearly every time",
                counts.count
            ),
            format!("convert once before the loop and use the result inside it: `{call}`"),
        ),
        Fault::Pieces => (
            format!("copied pieces of {each} {way}, {} of them one by one", counts.count),
            format!("convert the whole array at once, `{call}`, and work on it on the device"),
        ),
    };
    Finding {
        rule: &DOC,
        place: Some(place),
        device: DeviceId::NONE,
        message,
        advice,
        evidence: vec![
            ("direction", Value::Text(direction.name().to_string())),
            ("count", Value::Whole(counts.count)),
            ("bytes", Value::Whole(counts.bytes)),
            ("repeated_count", Value::Whole(counts.repeats)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;

    const ASARRAY: &[&str] = &["_copy_from_numpy_into", "_asarray_from_numpy_ndarray", "asarray", "asarray"];

    fn found(library: &[&str], direction: Direction, count: usize, data: impl Fn(usize) -> Vec<u8>) -> usize {
        let mut run = Run::new();
        for step in 0..count {
            run.copy(library, 8, direction, &data(step));
        }
        check(&Facts::of(&run.snapshot())).len()
    }

    #[test]
    fn the_same_data_every_time() {
        assert_eq!(found(ASARRAY, Direction::HostToDevice, 20, |_| vec![1; 8000]), 1);
        let fetch = ["_copy_to_numpy", "asnumpy", "dpnp_array.asnumpy", "asnumpy"];
        assert_eq!(found(ASARRAY, Direction::HostToDevice, 40, |_| vec![1; 36]), 1, "a small kernel");
        assert_eq!(found(&fetch, Direction::DeviceToHost, 20, |_| vec![1; 8000]), 1);
    }

    #[test]
    fn one_element_at_a_time() {
        assert_eq!(found(ASARRAY, Direction::HostToDevice, 100, |step| vec![step as u8; 8]), 1);
        assert_eq!(
            found(ASARRAY, Direction::HostToDevice, 100, |step| vec![step as u8; 96]),
            0,
            "from a stream"
        );
        assert_eq!(
            found(ASARRAY, Direction::HostToDevice, 100, |step| vec![step as u8; 24]),
            0,
            "parameters"
        );
    }

    #[test]
    fn the_rows_of_an_array() {
        let mut run = Run::new();
        for step in 0..100 {
            let transfer = run.copy(ASARRAY, 8, Direction::HostToDevice, &[step as u8; 96]);
            run.ledger.came_from(transfer, 0x1000 + 96 * step);
        }
        assert_eq!(check(&Facts::of(&run.snapshot())).len(), 1);
    }

    #[test]
    fn chunks_few_copies_scalars_and_boundary_values_are_innocent() {
        assert_eq!(found(ASARRAY, Direction::HostToDevice, 100, |step| vec![step as u8; 8000]), 0);
        assert_eq!(found(ASARRAY, Direction::HostToDevice, 19, |_| vec![1; 8000]), 0);
        let operand =
            ["_copy_from_numpy_into", "asarray", "BinaryElementwiseFunc.__call__", "dpnp_array.__mul__"];
        assert_eq!(found(&operand, Direction::HostToDevice, 1000, |_| vec![1; 8]), 0);
        let set = ["_copy_from_numpy_into", "dpnp_array.__setitem__"];
        assert_eq!(found(&set, Direction::HostToDevice, 1000, |_| vec![1; 8]), 0);
        assert_eq!(found(&["mean", "mean"], Direction::HostToDevice, 1000, |_| vec![1; 100]), 0);
    }
}
