//! DPM501: the peak came close to what the device allows.

use super::facts::{Facts, Room};
use super::place::{Place, site};
use super::{Explanation, Finding, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::kind::Kind;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM501",
    name: "near-capacity",
    severity: Severity::Warning,
    what: "Fires where the most memory that the run had in use on a device at a time came within a tenth of the limit \
that was set, or of the device's capacity where there is none. The line is the one that held most at the peak.",
    explanation: Some(Explanation {
        why: "The next larger input, or another process on the same device, makes the program fail.",
        example: "
images = dpnp.asarray(all_images)
features = extract(images)
",
        instead: "
for images in batches:
    features.append(dpnp.asnumpy(extract(dpnp.asarray(images))))
",
    }),
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts.rooms.iter().filter_map(|room| finding(facts, room)).collect()
}

fn finding(facts: &Facts<'_>, room: &Room) -> Option<Finding> {
    let (most, what) = match (room.limit_bytes, room.capacity_bytes) {
        (Some(limit), _) => (limit, "limit"),
        (None, Some(capacity)) => (capacity, "capacity"),
        (None, None) => return None,
    };
    if room.peak_bytes == 0 || room.peak_bytes < most - most / 10 {
        return None;
    }
    let at_peak = facts.snapshot.peak.sites.iter().flatten();
    let on_device = at_peak
        .filter_map(|&(id, bytes, _)| Some((site(facts.snapshot, id)?, bytes)))
        .filter(|(site, _)| site.device == room.device && site.kind != Kind::Host);
    let largest = on_device.max_by_key(|&(_, bytes)| bytes);
    Some(Finding {
        rule: &DOC,
        place: largest.and_then(|(site, _)| Place::of(&site.frames)),
        device: room.device,
        message: format!(
            "the peak of {} is within a tenth of the {what} of {}",
            size(room.peak_bytes),
            size(most)
        ),
        advice: "work in chunks, or let go of what held most at the peak before it".to_string(),
        evidence: vec![("peak_bytes", Value::Whole(room.peak_bytes)), ("allowed_bytes", Value::Whole(most))],
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::DeviceId;

    fn found(peak: u64, limit: Option<u64>, capacity: Option<u64>) -> Vec<Finding> {
        let mut run = Run::new();
        let small = run.site(&["ones"], 3, 1, Kind::Device);
        run.allocate(small, 10);
        let large = run.site(&["ones"], 4, 1, Kind::Device);
        run.allocate(large, 80);
        let room =
            Room { device: DeviceId::new(1), peak_bytes: peak, limit_bytes: limit, capacity_bytes: capacity };
        check(&Facts { rooms: &[room], ..Facts::of(&run.snapshot()) })
    }

    #[test]
    fn close_to_the_limit_or_else_to_the_capacity() {
        let findings = found(90, Some(100), Some(1000));
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(4));
        assert!(findings[0].message.contains("limit of 100 B"), "{}", findings[0].message);
        assert_eq!(found(95, None, Some(100)).len(), 1);
    }

    #[test]
    fn enough_room_and_unknown_room_are_innocent() {
        assert!(found(89, Some(100), None).is_empty());
        assert!(found(95, Some(1000), Some(100)).is_empty(), "the limit is what counts");
        assert!(found(95, None, None).is_empty());
        assert!(found(0, Some(0), None).is_empty());
    }
}
