//! One suite for every policy, and programs drawn at random against a naive model.

mod caching;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use proptest::prelude::*;

use super::*;
use crate::sync::lock_std as lock;

/// An upstream that remembers everything and can be told to refuse and to lag behind.
#[derive(Default)]
pub(crate) struct Fake {
    state: Mutex<State>,
    /// Work that has been queued, and how much of it is done.
    queued: AtomicUsize,
    done: AtomicUsize,
    waits: AtomicUsize,
    /// What happens elsewhere while a fence is being asked for, looked at, or waited for in vain.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    while_looked_at: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    in_vain: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

#[derive(Default)]
struct State {
    next: usize,
    blocks: HashMap<usize, u64>,
    /// The most bytes of blocks at a time, and those of all blocks ever taken.
    most: u64,
    taken: u64,
    capacity: Option<u64>,
    refuse_gives: bool,
    retained: HashMap<usize, i64>,
    abandoned: Vec<usize>,
    rested: Vec<usize>,
}

impl Fake {
    fn queue_work(&self) {
        self.queued.fetch_add(1, SeqCst);
    }

    fn finish_work(&self) {
        self.done.store(self.queued.load(SeqCst), SeqCst);
    }

    fn held(&self) -> u64 {
        lock(&self.state).blocks.values().sum()
    }

    fn most(&self) -> u64 {
        lock(&self.state).most
    }

    fn count(&self) -> usize {
        lock(&self.state).blocks.len()
    }

    fn retained(&self) -> i64 {
        lock(&self.state).retained.values().sum()
    }
}

impl Upstream for Fake {
    type Fence = usize;
    type Refusal = &'static str;

    fn take(&self, _: &Place, bytes: u64) -> Result<usize, &'static str> {
        let mut state = lock(&self.state);
        let held: u64 = state.blocks.values().sum();
        if state.capacity.is_some_and(|capacity| held.saturating_add(bytes) > capacity) {
            return Err("full");
        }
        state.next += 0x10_0000_0000;
        let address = state.next;
        state.blocks.insert(address, bytes);
        state.most = state.most.max(held + bytes);
        state.taken += bytes;
        Ok(address)
    }

    fn give(&self, _: &Place, address: usize) -> Result<(), &'static str> {
        let mut state = lock(&self.state);
        if state.refuse_gives {
            return Err("not now");
        }
        state.blocks.remove(&address).map(drop).ok_or("not mine")
    }

    fn fence(&self, _: &Place, _: u64) -> Option<usize> {
        let meanwhile = self.meanwhile.lock().expect("no panic").take();
        meanwhile.into_iter().for_each(|happens| happens());
        let queued = self.queued.load(SeqCst);
        (queued > self.done.load(SeqCst)).then_some(queued)
    }

    fn passed(&self, fence: &usize) -> bool {
        let meanwhile = self.while_looked_at.lock().expect("no panic").take();
        meanwhile.into_iter().for_each(|happens| happens());
        self.done.load(SeqCst) >= *fence
    }

    fn wait(&self, fence: &usize) -> bool {
        self.waits.fetch_add(1, SeqCst);
        let in_vain = self.in_vain.lock().expect("no panic").take();
        if let Some(happens) = in_vain {
            happens();
            return false;
        }
        self.done.fetch_max(*fence, SeqCst);
        true
    }

    fn rested(&self, address: usize, _: u64) {
        lock(&self.state).rested.push(address);
    }

    fn retain(&self, owner: usize) {
        *lock(&self.state).retained.entry(owner).or_default() += 1;
    }

    fn release(&self, owner: usize) {
        *lock(&self.state).retained.entry(owner).or_default() -= 1;
    }

    fn is_abandoned(&self, owner: usize, times: usize) -> bool {
        let state = lock(&self.state);
        assert!(
            state.retained[&owner] >= times as i64 && times > 0,
            "asked about an owner that it let go of"
        );
        state.abandoned.contains(&owner)
    }
}

const MIB: u64 = 1 << 20;

fn place(owner: usize) -> Place {
    Place { owner, handle: 7, device: DeviceId::new(1), kind: Kind::Device, align: 0 }
}

fn every_policy(test: impl Fn(&Fake, &Pool<Fake>)) {
    for policy in Policy::ALL {
        let (upstream, pool) = (Fake::default(), Pool::new(policy));
        test(&upstream, &pool);
        pool.empty(&upstream);
        assert_eq!(pool.total().reserved_bytes, upstream.held(), "{policy:?}");
        pool.close(&upstream);
        assert_eq!(pool.total().reserved_bytes, 0, "{policy:?}");
        assert_eq!((pool.total().cached_bytes, pool.total().in_use_bytes), (0, 0), "{policy:?}");
        assert_eq!(upstream.retained(), 0, "{policy:?} keeps an owner");
    }
}

#[test]
fn a_block_is_as_large_as_asked_for_and_known_by_its_size() {
    every_policy(|upstream, pool| {
        let address = pool.allocate(upstream, place(1), 5000).expect("upstream has room");
        assert!(lock(&upstream.state).blocks[&address] >= 5000);
        assert_eq!(pool.known(address), Some(Known::InUse(5000)));
        assert_eq!(pool.known(address + 1), None, "only its start is known");
        assert_eq!(pool.known_around(address, address + 4999), Some(Known::InUse(5000)));
        assert_eq!(pool.known_around(address, address + 8192), None, "upstream's whole is larger");
        assert_eq!(pool.reading(DeviceId::new(1)).in_use_bytes, 5000);
        assert_eq!(pool.free(upstream, address), Freed::Done);
        assert_ne!(pool.known(address), Some(Known::InUse(5000)));
    });
}

#[test]
fn what_is_not_the_pools_is_left_alone() {
    every_policy(|upstream, pool| {
        assert_eq!(pool.free(upstream, 0x1234), Freed::Unknown);
        let address = pool.allocate(upstream, place(1), 100).expect("room");
        assert_eq!(pool.free(upstream, address), Freed::Done);
        let again = pool.free(upstream, address);
        assert!(matches!(again, Freed::Twice | Freed::Unknown), "{again:?}");
        assert_eq!(pool.total().in_use_bytes, 0);
    });
}

#[test]
fn a_limit_is_kept_and_a_lower_one_hurts_only_what_comes_next() {
    every_policy(|upstream, pool| {
        let device = DeviceId::new(1);
        assert_eq!(pool.set_limit(upstream, device, Some(10 * MIB)), None);
        let kept = pool.allocate(upstream, place(1), 6 * MIB).expect("below the limit");
        assert_eq!(pool.allocate(upstream, place(1), 5 * MIB), Err(Refused::Limit));
        assert_eq!(pool.set_limit(upstream, device, Some(MIB)), Some(10 * MIB));
        assert_eq!(pool.known(kept), Some(Known::InUse(6 * MIB)));
        assert_eq!(pool.allocate(upstream, place(1), 10), Err(Refused::Limit));
        assert_eq!(pool.free(upstream, kept), Freed::Done);
        assert_eq!(pool.reading(device).reserved_bytes, 0, "nothing is cached beyond a limit");
        pool.allocate(upstream, place(1), MIB).expect("room again, to the byte");
    });
}

#[test]
fn what_limits_count_is_without_host_memory() {
    every_policy(|upstream, pool| {
        let host = Place { device: DeviceId::NONE, kind: Kind::Host, ..place(1) };
        let other = Place { device: DeviceId::new(2), kind: Kind::Shared, ..place(1) };
        let on_devices = || {
            let reading = pool.total_on_devices();
            (reading.reserved_bytes, reading.cached_bytes, reading.peak_reserved_bytes)
        };
        let on_host = pool.allocate(upstream, host, 8 * MIB).expect("room");
        let kept = pool.allocate(upstream, other, MIB).expect("room");
        let freed = pool.allocate(upstream, place(1), 2 * MIB).expect("room");
        pool.adopt(place(1), 64, 4 * MIB);
        assert_eq!(on_devices(), (7 * MIB, 0, 7 * MIB));
        for address in [on_host, freed] {
            assert_eq!(pool.free(upstream, address), Freed::Done);
        }
        pool.disown(64);
        let cached = if pool.policy() == Policy::Caching { 2 * MIB } else { 0 };
        assert_eq!(on_devices(), (MIB + cached, cached, 7 * MIB));
        pool.recording_begins();
        assert_eq!(on_devices(), (MIB + cached, cached, MIB + cached));
        assert_eq!(pool.free(upstream, kept), Freed::Done);
        pool.empty(upstream);
        assert_eq!(on_devices().0, 0);
    });
}

#[test]
fn a_limit_that_was_put_takes_nothing_back_until_it_is_to_fit() {
    let (upstream, device) = (Fake::default(), DeviceId::new(1));
    let pool = Pool::new(Policy::Caching);
    let address = pool.allocate(&upstream, place(1), 6 * MIB).expect("room");
    assert_eq!(pool.free(&upstream, address), Freed::Done);
    assert_eq!(pool.put_limit(device, Some(MIB)), None);
    assert_eq!(upstream.count(), 1, "nothing has gone upstream");
    pool.fit(&upstream, device);
    assert_eq!((upstream.count(), pool.total().reserved_bytes), (0, 0));
}

#[test]
fn devices_with_one_limit_are_said_to_have_it() {
    every_policy(|upstream, pool| {
        let limit_of = |device, limit| {
            pool.set_limit(upstream, DeviceId::new(device), limit);
            pool.total().limit_bytes
        };
        assert_eq!(pool.total().limit_bytes, None);
        assert_eq!(limit_of(1, Some(MIB)), Some(MIB));
        assert_eq!(limit_of(2, Some(MIB)), Some(MIB));
        assert_eq!(limit_of(2, Some(2 * MIB)), None, "there is no one limit");
        assert_eq!(limit_of(1, None), Some(2 * MIB));
    });
}

#[test]
fn what_is_not_to_be_kept_counts_all_the_same() {
    every_policy(|upstream, pool| {
        pool.set_limit(upstream, DeviceId::new(1), Some(MIB));
        let address = pool.allocate_uncached(upstream, place(1), MIB).expect("room to the byte");
        assert_eq!(pool.allocate_uncached(upstream, place(1), 1), Err(Refused::Limit));
        assert_eq!(pool.known(address), Some(Known::InUse(MIB)));
        assert_eq!(pool.free(upstream, address), Freed::Done);
        assert_eq!((upstream.count(), pool.total().reserved_bytes), (0, 0));
    });
}

#[test]
fn upstreams_refusal_leaves_no_trace() {
    every_policy(|upstream, pool| {
        lock(&upstream.state).capacity = Some(MIB);
        assert_eq!(pool.allocate(upstream, place(1), 2 * MIB), Err(Refused::Upstream("full")));
        for reading in [pool.total(), pool.reading(DeviceId::new(1))] {
            assert_eq!(reading, PoolReading::default());
        }
        lock(&upstream.state).capacity = Some(MIB - 7);
        pool.allocate(upstream, place(1), MIB - 7).expect("rounding up is not what it fails for");
        for reading in [pool.total(), pool.reading(DeviceId::new(1))] {
            assert_eq!(reading.peak_reserved_bytes, MIB - 7, "the rounded size was refused");
        }
    });
}

#[test]
fn a_size_that_cannot_be_counted_is_refused_and_leaves_no_trace() {
    every_policy(|upstream, pool| {
        let kept = pool.allocate(upstream, place(1), 5 * MIB).expect("room");
        let before = pool.reading(DeviceId::new(1));
        for bytes in [u64::MAX, u64::MAX - 4095] {
            assert_eq!(pool.allocate(upstream, place(1), bytes), Err(Refused::Uncountable));
            assert_eq!(pool.allocate_uncached(upstream, place(1), bytes), Err(Refused::Uncountable));
        }
        pool.set_limit(upstream, DeviceId::new(1), Some(8 * MIB));
        assert_eq!(pool.allocate(upstream, place(1), u64::MAX), Err(Refused::Limit));
        pool.set_limit(upstream, DeviceId::new(1), None);
        assert_eq!(pool.reading(DeviceId::new(1)), before);
        assert_eq!(pool.free(upstream, kept), Freed::Done);
    });
}

#[test]
fn a_refused_free_changes_nothing() {
    every_policy(|upstream, pool| {
        let address = pool.allocate(upstream, place(1), 1 << 50).expect("too large for any class");
        lock(&upstream.state).refuse_gives = true;
        assert_eq!(pool.free(upstream, address), Freed::Refused("not now"));
        assert_eq!(pool.known(address), Some(Known::InUse(1 << 50)));
        lock(&upstream.state).refuse_gives = false;
        assert_eq!(pool.free(upstream, address), Freed::Done);
        assert_eq!((pool.total().reserved_bytes, upstream.count()), (0, 0));
    });
}

#[test]
fn blocks_from_before_count_and_go_back() {
    every_policy(|upstream, pool| {
        let address = upstream.take(&place(1), MIB).expect("room");
        pool.adopt(place(1), address, MIB);
        pool.set_limit(upstream, DeviceId::new(1), Some(MIB));
        assert_eq!(pool.allocate(upstream, place(1), 10), Err(Refused::Limit));
        assert_eq!(pool.free(upstream, address), Freed::Done);
        assert_eq!((pool.total().reserved_bytes, upstream.count()), (0, 0));
    });
}

#[test]
fn an_address_whose_free_went_past_is_counted_once() {
    every_policy(|upstream, pool| {
        let address = pool.allocate(upstream, place(1), MIB).expect("room");
        pool.adopt(place(1), address, 5);
        assert_eq!((pool.total().reserved_bytes, pool.total().in_use_bytes), (5, 5));
        assert_eq!(pool.free(upstream, address), Freed::Done);
    });
}

#[test]
fn host_memory_is_on_no_devices_account() {
    every_policy(|upstream, pool| {
        let host = Place { kind: Kind::Host, ..place(1) };
        pool.set_limit(upstream, DeviceId::new(1), Some(10));
        pool.allocate(upstream, host, MIB).expect("the limit is the device's");
        assert_eq!(pool.reading(DeviceId::new(1)).in_use_bytes, 0);
        assert_eq!(pool.reading(DeviceId::NONE).in_use_bytes, MIB);
    });
}

#[test]
fn threads_share_a_limit_and_leave_nothing() {
    every_policy(|upstream, pool| {
        let device = DeviceId::new(1);
        pool.set_limit(upstream, device, Some(8 * MIB));
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                scope.spawn(move || {
                    for round in 0..400u64 {
                        let Ok(address) =
                            pool.allocate(upstream, place(1), (thread + round % 3 + 1) * MIB / 2)
                        else {
                            pool.trim(upstream, Some(device), u64::MAX, Trim::All);
                            continue;
                        };
                        assert!(pool.reading(device).reserved_bytes <= 8 * MIB);
                        assert_eq!(pool.free(upstream, address), Freed::Done);
                    }
                });
            }
        });
        pool.empty(upstream);
        assert_eq!((pool.total().reserved_bytes, upstream.count()), (0, 0));
        assert_eq!((pool.total().cached_bytes, pool.total().in_use_bytes), (0, 0));
    });
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(u64, usize),
    Free(usize),
    Queue,
    Finish,
    Trim(u64, bool),
    Limit(Option<u64>),
    Policy(bool),
    Capacity(Option<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![1u64..5000, 1u64..(4 * MIB), Just(MIB)];
    let step = prop_oneof![
        8 => (size, 1usize..3).prop_map(|(bytes, owner)| Step::Allocate(bytes, owner)),
        6 => (0usize..64).prop_map(Step::Free),
        3 => Just(Step::Queue),
        2 => Just(Step::Finish),
        1 => (0u64..(8 * MIB), any::<bool>()).prop_map(|(bytes, all)| Step::Trim(bytes, all)),
        1 => prop::option::of(MIB..(16 * MIB)).prop_map(Step::Limit),
        1 => any::<bool>().prop_map(Step::Policy),
        1 => prop::option::of(MIB..(16 * MIB)).prop_map(Step::Capacity),
    ];
    prop::collection::vec(step, 1..160)
}

proptest! {
    /// Whatever a program does, the pool's numbers are those of a model that keeps plain lists, and no block is handed
    /// out that somebody uses or that work may still touch.
    #[test]
    fn agrees_with_a_naive_model(steps in steps(), caching in any::<bool>()) {
        let policy = if caching { Policy::Caching } else { Policy::Direct };
        let (upstream, pool) = (Fake::default(), Pool::new(policy));
        let mut live: Vec<(usize, u64)> = Vec::new();
        // What was queued when an address was freed.
        let mut freed: HashMap<usize, usize> = HashMap::new();
        let (mut peak, mut asked) = (0, 0);
        for step in steps {
            match step {
                Step::Allocate(bytes, owner) => {
                    let before = pool.total().reserved_bytes;
                    match pool.allocate(&upstream, place(owner), bytes) {
                        Ok(address) => {
                            prop_assert!(live.iter().all(|&(other, _)| other != address), "used twice");
                            let fence = freed.remove(&address).unwrap_or(0);
                            prop_assert!(upstream.passed(&fence), "still in flight");
                            prop_assert!(lock(&upstream.state).blocks[&address] >= bytes);
                            live.push((address, bytes));
                            asked += bytes;
                        }
                        Err(Refused::Limit) => {
                            let limit = pool.limit(DeviceId::new(1)).expect("a limit refuses");
                            prop_assert!(pool.total().reserved_bytes + bytes > limit);
                        }
                        Err(Refused::Uncountable) => prop_assert!(false, "all sizes here can be counted"),
                        Err(Refused::Upstream(_)) => {
                            prop_assert!(lock(&upstream.state).capacity.is_some());
                            prop_assert!(pool.total().reserved_bytes <= before);
                        }
                    }
                }
                Step::Free(index) if !live.is_empty() => {
                    let (address, _) = live.swap_remove(index % live.len());
                    prop_assert_eq!(pool.free(&upstream, address), Freed::Done);
                    freed.insert(address, upstream.queued.load(SeqCst));
                }
                Step::Free(_) => {}
                Step::Queue => upstream.queue_work(),
                Step::Finish => upstream.finish_work(),
                Step::Trim(bytes, all) => {
                    let which = if all { Trim::All } else { Trim::Rested };
                    let before = pool.total().reserved_bytes;
                    let gone = pool.trim(&upstream, Some(DeviceId::new(1)), bytes, which);
                    prop_assert_eq!(pool.total().reserved_bytes, before - gone);
                    if all && gone < bytes {
                        prop_assert_eq!(pool.total().cached_bytes, 0);
                    }
                }
                Step::Limit(limit) => {
                    pool.set_limit(&upstream, DeviceId::new(1), limit);
                    let reading = pool.total();
                    let over = limit.is_some_and(|limit| reading.reserved_bytes > limit);
                    prop_assert!(!over || reading.cached_bytes == 0);
                }
                Step::Policy(caching) => {
                    pool.set_policy(&upstream, if caching { Policy::Caching } else { Policy::Direct });
                }
                Step::Capacity(capacity) => lock(&upstream.state).capacity = capacity,
            }
            let reading = pool.total();
            let in_use: u64 = live.iter().map(|&(_, bytes)| bytes).sum();
            peak = in_use.max(peak);
            let taken: u64 = live.iter().map(|(address, _)| lock(&upstream.state).blocks[address]).sum();
            prop_assert_eq!(reading.in_use_bytes, in_use);
            prop_assert_eq!(reading.peak_in_use_bytes, peak);
            prop_assert_eq!(reading.reserved_bytes, upstream.held());
            prop_assert_eq!(reading.peak_reserved_bytes, upstream.most());
            prop_assert_eq!(reading.cached_bytes, upstream.held() - taken);
            let ever_taken = lock(&upstream.state).taken;
            let given = ever_taken - upstream.held();
            let beyond = Beyond {
                taken_bytes: ever_taken as i64 - asked as i64,
                given_bytes: given as i64 - (asked - in_use) as i64,
            };
            prop_assert_eq!(reading.beyond, beyond);
            // All is on one device here.
            let of_device = pool.reading(DeviceId::new(1));
            prop_assert_eq!(PoolReading { limit_bytes: None, ..of_device }, PoolReading { limit_bytes: None, ..reading });
            prop_assert!(live.iter().all(|&(address, bytes)| pool.known(address) == Some(Known::InUse(bytes))));
        }
        for (address, _) in live {
            prop_assert_eq!(pool.free(&upstream, address), Freed::Done);
        }
        pool.empty(&upstream);
        prop_assert_eq!((pool.total().reserved_bytes, upstream.count()), (0, 0));
    }
}
