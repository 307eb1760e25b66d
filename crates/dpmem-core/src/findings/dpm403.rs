//! DPM403: a loop reads single values from the device.

use super::chunked::moves_with_loop;
use super::facts::Facts;
use super::operation::{Purpose, is_fresh_data, purpose, reads, sends};
use super::place::{Place, user_frame};
use super::{Finding, KIB, LEAST_REPEATS, RuleDoc, Severity, Value};
use crate::kind::{DeviceId, Direction};
use crate::snapshot::Snapshot;
use crate::stack::Frame;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM403",
    name: "sync-in-loop",
    severity: Severity::Warning,
    what: "Fires for a line that read a value of a device array (`float()`, `int()`, `bool()`, `item()`, printing, an implicit
truth test) 20 times or more at one place; what a library function reads for itself doesn't count. Left alone are lines
that read once per chunk (the same function sends new data to the device, or draws it there, at least half as often, or
the loop works on a slice that moves with it or goes through `dpmem.chunks`), once per epoch (another line of the same
function, or of what it calls, gave the device work four times as often), or less than four times a second.",
    explanation: None,
};

/// Work of another line for one read, from which on the read belongs to an outer loop.
const INNER_REPEATS: u64 = 4;
/// Reads that are further apart cost next to nothing.
const SECONDS_APART: f64 = 0.25;
const CHUNK_AT_LEAST: u64 = KIB / 4;
/// Copies that were not known to repeat earlier ones: of two different chunks, two each.
const DIFFERENT_AT_LEAST: u64 = 4;
/// The interpreter moves the position of a call by this much once it has specialised it; different calls are further
/// apart.
const SAME_CALL: u32 = 4;

/// Reads of one line.
struct Reads<'a> {
    count: u64,
    first_ticks: u64,
    last_ticks: u64,
    instruction: u32,
    how: &'a str,
    frames: &'a [Frame],
}

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let snapshot = facts.snapshot;
    let mut faulty: Vec<(Place, Reads<'_>)> = Vec::new();
    for (place, reads) in by_call(snapshot) {
        match faulty.last_mut() {
            Some((known, most)) if *known == place && most.count >= reads.count => {}
            Some((known, most)) if *known == place => *most = reads,
            _ => faulty.push((place, reads)),
        }
    }
    let faulty = faulty.into_iter().filter(|(place, reads)| {
        reads.count >= LEAST_REPEATS
            && reads.seconds_apart(facts.seconds_per_tick) < SECONDS_APART
            && !reads.per_chunk(snapshot)
            && !reads.per_epoch(snapshot, place)
            && !moves_with_loop(place.line, &|line| (facts.source)(&place.file, line))
    });
    faulty.map(|(place, reads)| reads.finding(place, facts.seconds_per_tick)).collect()
}

/// The reads of each call on each line: two on one line are two places that repeat themselves.
fn by_call(snapshot: &Snapshot) -> Vec<(Place, Reads<'_>)> {
    let mut transfers: Vec<_> = snapshot
        .transfers
        .iter()
        .filter(|transfer| transfer.direction == Direction::DeviceToHost)
        .filter_map(|transfer| Some((Place::of(&transfer.frames)?, transfer, reads(&transfer.frames)?)))
        .collect();
    transfers.sort_by(|one, two| (&one.0, one.1.user_instruction).cmp(&(&two.0, two.1.user_instruction)));
    let mut calls: Vec<(Place, Reads<'_>)> = Vec::new();
    for (place, transfer, how) in transfers {
        let (counts, instruction) = (&transfer.counts, transfer.user_instruction.unwrap_or(0));
        match calls.last_mut() {
            Some((known, call)) if *known == place && instruction.abs_diff(call.instruction) <= SAME_CALL => {
                call.count += counts.count;
                call.first_ticks = call.first_ticks.min(counts.first_ticks);
                call.last_ticks = call.last_ticks.max(counts.last_ticks);
            }
            _ => calls.push((
                place,
                Reads {
                    count: counts.count,
                    first_ticks: counts.first_ticks,
                    last_ticks: counts.last_ticks,
                    instruction,
                    how,
                    frames: &transfer.frames,
                },
            )),
        }
    }
    calls
}

impl Reads<'_> {
    fn seconds_apart(&self, seconds_per_tick: f64) -> f64 {
        let ticks = self.last_ticks.saturating_sub(self.first_ticks);
        ticks as f64 * seconds_per_tick / self.count.saturating_sub(1).max(1) as f64
    }

    /// Whether a stack goes through the function that reads.
    fn shares_function(&self, frames: &[Frame]) -> bool {
        let Some(reader) = user_frame(self.frames) else { return false };
        frames.iter().any(|frame| (&frame.file, &frame.function) == (&reader.file, &reader.function))
    }

    fn per_chunk(&self, snapshot: &Snapshot) -> bool {
        let sent = snapshot.transfers.iter().filter(|transfer| {
            let counts = &transfer.counts;
            transfer.direction == Direction::HostToDevice
                && counts.bytes >= CHUNK_AT_LEAST * counts.count
                && counts.count >= counts.repeats + DIFFERENT_AT_LEAST
                && sends(&transfer.frames).is_some()
                && self.shares_function(&transfer.frames)
        });
        let made = snapshot.sites.iter().filter(|site| {
            site.allocated_bytes >= CHUNK_AT_LEAST * site.alloc_count
                && is_fresh_data(&site.frames)
                && self.shares_function(&site.frames)
        });
        let sent: u64 = sent.map(|transfer| transfer.counts.count).sum();
        let made: u64 = made.map(|site| site.alloc_count).sum();
        2 * (sent + made) >= self.count
    }

    fn per_epoch(&self, snapshot: &Snapshot, place: &Place) -> bool {
        let inner = |frames: &[Frame], count: u64| {
            count >= INNER_REPEATS * self.count
                && self.shares_function(frames)
                && Place::of(frames).as_ref() != Some(place)
        };
        snapshot.launches.iter().any(|launch| inner(&launch.frames, launch.count))
            || snapshot
                .sites
                .iter()
                .any(|site| purpose(&site.frames) == Purpose::Result && inner(&site.frames, site.alloc_count))
    }

    fn finding(&self, place: Place, seconds_per_tick: f64) -> Finding {
        let how = match self.how {
            "__float__" => "float()",
            "__int__" | "__index__" => "int()",
            "__bool__" => "a truth test",
            "__complex__" => "complex()",
            "item" => "item()",
            _ => "printing",
        };
        Finding {
            rule: &DOC,
            place: Some(place),
            device: DeviceId::NONE,
            message: format!("read a device array {} times ({how}); each read waits for all queued work", self.count),
            advice: match how {
                "int()" | "a truth test" => "if Python needs the value for an index or a branch, ask for it once in many \
                                             steps; if not, keep it on the device and compute with the 0-d array",
                _ => "keep the value on the device (write it into an array made beforehand, or compute with the 0-d \
                      array), or read it once in many steps",
            }
            .to_string(),
            evidence: vec![
                ("count", Value::Whole(self.count)),
                ("seconds_apart_s", Value::Real(self.seconds_apart(seconds_per_tick))),
                ("read_by", Value::Text(how.to_string())),
            ],
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;

    const FLOAT: &[&str] = &["dpnp_array.__float__"];

    fn lines(run: &Run) -> Vec<u32> {
        check(&Facts::of(&run.snapshot())).iter().filter_map(|f| f.place.as_ref().map(|p| p.line)).collect()
    }

    fn read(run: &mut Run) {
        run.copy(FLOAT, 9, Direction::DeviceToHost, &[0; 8]);
    }

    #[test]
    fn a_read_per_step() {
        let mut run = Run::new();
        for _ in 0..30 {
            run.launch(8, 2);
            read(&mut run);
        }
        assert_eq!(lines(&run), [9]);
    }

    #[test]
    fn a_read_per_epoch_and_rare_reads_are_innocent() {
        let mut run = Run::new();
        for _ in 0..30 {
            (0..10).for_each(|_| run.launch(8, 1));
            read(&mut run);
        }
        assert_eq!(lines(&run), []);
        let mut run = Run::new();
        for _ in 0..30 {
            run.wait(400_000_000);
            read(&mut run);
        }
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn a_read_per_chunk_is_innocent() {
        let mut run = Run::new();
        for step in 0..30 {
            run.copy(&["_copy_from_numpy_into", "asarray"], 7, Direction::HostToDevice, &[step; 8000]);
            read(&mut run);
        }
        assert_eq!(lines(&run), []);
        let mut run = Run::new();
        for step in 0..48 {
            run.copy(&["_copy_from_numpy_into", "asarray"], 7, Direction::HostToDevice, &[step % 4; 8000]);
            read(&mut run);
        }
        assert_eq!(lines(&run), [], "four chunks, twelve times each");
        let mut run = Run::new();
        let drawn = run.site(&["empty", "RandomState.uniform", "RandomState.uniform"], 6, 1, Kind::Device);
        for _ in 0..30 {
            run.allocate(drawn, 8000);
            read(&mut run);
        }
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn few_reads_are_innocent() {
        let mut run = Run::new();
        (0..19).for_each(|_| read(&mut run));
        assert_eq!(lines(&run), []);
    }
}
