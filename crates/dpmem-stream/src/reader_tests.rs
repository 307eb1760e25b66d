//! Jobs, their ends, and the end of the reader.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;

use super::*;
use crate::Origin;

const LONG: Duration = Duration::from_secs(60);

/// Memory that tells where it is dropped.
struct Lent {
    bytes: Vec<u8>,
    dropped: Arc<Mutex<Vec<ThreadId>>>,
    filled: Sender<Vec<u8>>,
}

impl Target for Lent {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.dropped.lock().expect("no panic").push(std::thread::current().id());
        let _ = self.filled.send(std::mem::take(&mut self.bytes));
    }
}

/// Answers with a number; waits first for leave, if it is to.
struct Numbered(u8, Option<Mutex<Receiver<()>>>, Arc<AtomicUsize>);

impl Origin for Numbered {
    fn read(&self, _: u64, into: &mut [u8], _: &mut OpenFiles) -> Result<(), Error> {
        assert!(self.0 != 13, "thirteen");
        if let Some(leave) = &self.1 {
            leave.lock().expect("no panic").recv().expect("leave is given");
        }
        into.fill(self.0);
        self.2.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

struct Bench {
    dropped: Arc<Mutex<Vec<ThreadId>>>,
    reads: Arc<AtomicUsize>,
    filled: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
}

impl Bench {
    fn new() -> Bench {
        Bench { dropped: Arc::default(), reads: Arc::default(), filled: channel() }
    }

    fn job(&self, number: u8, leave: Option<Receiver<()>>) -> Job {
        let origin = Arc::new(Numbered(number, leave.map(Mutex::new), self.reads.clone()));
        let target = Lent { bytes: vec![0; 4], dropped: self.dropped.clone(), filled: self.filled.0.clone() };
        let (offset, count, stride, bytes, target_offset, target_stride) = (0, 1, 0, 4, 0, 0);
        let (swapped, order) = (0, None);
        let block =
            Block { origin, offset, count, stride, bytes, target_offset, target_stride, swapped, order };
        Job { target: Box::new(target), blocks: vec![block] }
    }
}

#[test]
fn jobs_are_done_in_order_and_dropped_by_who_asks() {
    let (bench, reader) = (Bench::new(), Reader::start().expect("a thread"));
    let tickets: Vec<_> =
        (1..6).map(|number| reader.submit(bench.job(number, None)).expect("open")).collect();
    for (number, ticket) in (1..6).zip(tickets) {
        reader.wait(ticket, LONG).expect("in time").expect("well");
        assert_eq!(bench.filled.1.recv().expect("dropped"), [number; 4]);
        // An end can be had once.
        assert!(matches!(reader.wait(ticket, LONG), Some(Err(Error::Closed))));
    }
    let here = std::thread::current().id();
    assert!(bench.dropped.lock().expect("no panic").iter().all(|thread| *thread == here));
}

#[test]
fn patience_ends_and_the_job_goes_on() {
    let (bench, reader) = (Bench::new(), Reader::start().expect("a thread"));
    let (give, leave) = channel();
    let ticket = reader.submit(bench.job(1, Some(leave))).expect("open");
    assert!(reader.wait(ticket, Duration::ZERO).is_none());
    assert!(!reader.has_ended(ticket).expect("open"));
    give.send(()).expect("it waits");
    reader.wait(ticket, LONG).expect("in time").expect("well");
}

#[test]
fn a_panic_is_an_error_of_its_job_alone() {
    let (bench, reader) = (Bench::new(), Reader::start().expect("a thread"));
    let (bad, good) = (reader.submit(bench.job(13, None)), reader.submit(bench.job(14, None)));
    let end = reader.wait(bad.expect("open"), LONG).expect("in time");
    assert!(matches!(end, Err(Error::Fault(text)) if text == "thirteen"));
    reader.wait(good.expect("open"), LONG).expect("in time").expect("well");
}

#[test]
fn closing_ends_the_thread_and_lets_go_of_all_jobs() {
    let (bench, mut reader) = (Bench::new(), Reader::start().expect("a thread"));
    let (give, leave) = channel();
    let first = reader.submit(bench.job(1, Some(leave))).expect("open");
    for number in 2..5 {
        reader.submit(bench.job(number, None)).expect("open");
    }
    give.send(()).expect("it waits");
    reader.close();
    let here = std::thread::current().id();
    assert_eq!(*bench.dropped.lock().expect("no panic"), [here; 4]);
    assert!(matches!(reader.wait(first, LONG), Some(Err(Error::Closed))));
    assert!(matches!(reader.submit(bench.job(9, None)), Err(Error::Closed)));
    assert!(matches!(reader.has_ended(first), Err(Error::Closed)));
}

#[test]
fn a_reader_of_another_process_is_left_alone() {
    let (bench, mut reader) = (Bench::new(), Reader::start().expect("a thread"));
    reader.process += 1;
    assert!(matches!(reader.submit(bench.job(1, None)), Err(Error::Forked)));
    assert!(matches!(reader.wait(0, LONG), Some(Err(Error::Forked))));
    // Must not wait for a thread that isn't there.
    reader.close();
    // In this test it is.
    reader.shared.stop.store(true, Ordering::Release);
    reader.shared.came.notify_all();
}
