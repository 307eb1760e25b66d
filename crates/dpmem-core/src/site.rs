//! Sites: where blocks of one kind on one device come from, and what became of them.
//!
//! [`Composition`] is the other half of the peak's protocol (see `peak`): the part of a site's live bytes that belongs
//! to the newest peak the site has heard of.

use std::collections::HashMap;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::append::{self, AppendTable};
use crate::kind::{DeviceId, Kind, MAX_DEVICES};
use crate::pattern::{Growth, GrowthSample, Pattern};
use crate::peak::{PeakReading, Tick};
use crate::stack::{Origin, RawFrame, StackId};
use crate::sync::{Mutex, lock, lock_std};

/// How many sites are told apart; later ones share the site `other stacks` of their kind and device.
pub const MAX_SITES: usize = append::CAPACITY;

/// Frees of a site whose place in the program is looked at.
pub(crate) const LOOKED: u32 = 16;

/// A site, as an index into the ledger's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(u32);

impl SiteId {
    /// Its number, as reports show it.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What makes a site: kind, device and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SiteKey {
    /// Kind of its blocks.
    pub kind: Kind,
    /// Device of its blocks.
    pub device: DeviceId,
    /// The Python stack that allocates them.
    pub stack: StackId,
}

/// Live bytes and blocks of a site, and what part of them the newest peak contains.
///
/// Events may arrive in any order; the result depends only on their ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Composition {
    live_bytes: i64,
    live_count: i64,
    newest_epoch: u32,
    settled_bytes: i64,
    settled_count: i64,
}

impl Composition {
    /// Enters an event: `bytes` and `count` are negative for a free.
    pub fn enter(&mut self, tick: Tick, bytes: i64, count: i64) {
        if tick.epoch > self.newest_epoch {
            // All that is here came before the peak that this event has seen.
            self.settled_bytes = self.live_bytes;
            self.settled_count = self.live_count;
            self.newest_epoch = tick.epoch;
        }
        if tick.set_peak || tick.epoch < self.newest_epoch {
            self.settled_bytes += bytes;
            self.settled_count += count;
        }
        self.live_bytes += bytes;
        self.live_count += count;
    }

    /// Bytes and blocks live now.
    pub fn live(&self) -> (i64, i64) {
        (self.live_bytes, self.live_count)
    }

    /// Bytes and blocks at the peak that `reading` shows; `None` if the site has heard of a later one.
    pub fn at_peak(&self, reading: PeakReading) -> Option<(i64, i64)> {
        match self.newest_epoch.cmp(&reading.epoch) {
            std::cmp::Ordering::Equal => Some((self.settled_bytes, self.settled_count)),
            std::cmp::Ordering::Less => Some((self.live_bytes, self.live_count)),
            std::cmp::Ordering::Greater => None,
        }
    }
}

/// Which kind of thread freed a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedBy {
    /// One that was running Python: the program let go of the block.
    Program,
    /// The same, while it was still in the line that had allocated the block.
    SameLine,
    /// One that wasn't: the runtime let go of it, after the work that used it had ended.
    Runtime,
}

/// The counters of a site.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteCounts {
    pub(crate) composition: Composition,
    pub(crate) alloc_count: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) free_count: u64,
    pub(crate) freed_bytes: u64,
    pub(crate) failed_count: u64,
    pub(crate) out_of_memory_count: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) runtime_ticks: u64,
    pub(crate) pattern: Pattern,
}

/// What the lock of a site guards.
#[derive(Default)]
struct State {
    counts: SiteCounts,
    growth: Option<Box<Growth>>,
}

/// One site.
pub(crate) struct Site {
    pub(crate) key: SiteKey,
    state: Mutex<State>,
    /// Ticks of frees, which are known only after the counts have been let go of.
    free_ticks: AtomicU64,
    /// Frees whose place has been looked at.
    looked: AtomicU32,
}

impl Site {
    fn new(key: SiteKey) -> Self {
        Site {
            key,
            state: Mutex::new(State::default()),
            free_ticks: AtomicU64::new(0),
            looked: AtomicU32::new(0),
        }
    }

    pub(crate) fn allocated(&self, tick: Tick, bytes: u64, now: u64, runtime_ticks: u64) {
        let mut state = lock(&self.state);
        let State { counts, growth } = &mut *state;
        counts.composition.enter(tick, bytes as i64, 1);
        counts.runtime_ticks += runtime_ticks;
        counts.alloc_count += 1;
        counts.allocated_bytes += bytes;
        let (live_bytes, live_count) = counts.composition.live();
        let (live_bytes, live_count) = (live_bytes.max(0) as u64, live_count.max(0) as u64);
        counts.peak_bytes = counts.peak_bytes.max(live_bytes);
        counts.pattern.allocated(bytes, live_count, counts.free_count, now);
        Growth::enter(growth, counts.alloc_count, GrowthSample { ticks: now, live_bytes });
    }

    /// A block that existed before recording started: live, but not allocated here.
    pub(crate) fn adopted(&self, tick: Tick, bytes: u64) {
        let counts = &mut lock(&self.state).counts;
        counts.composition.enter(tick, bytes as i64, 1);
        counts.peak_bytes = counts.peak_bytes.max(counts.composition.live_bytes.max(0) as u64);
    }

    pub(crate) fn freed(&self, tick: Tick, bytes: u64, by: FreedBy) {
        let counts = &mut lock(&self.state).counts;
        counts.composition.enter(tick, -(bytes as i64), -1);
        counts.free_count += 1;
        counts.freed_bytes += bytes;
        counts.pattern.freed(bytes, by);
    }

    /// A free that the runtime refused: the block is live after all.
    pub(crate) fn restored(&self, tick: Tick, bytes: u64) {
        let counts = &mut lock(&self.state).counts;
        counts.composition.enter(tick, bytes as i64, 1);
        counts.free_count -= 1;
        counts.freed_bytes -= bytes;
    }

    pub(crate) fn failed(&self, for_lack: bool) {
        let counts = &mut lock(&self.state).counts;
        counts.failed_count += 1;
        counts.out_of_memory_count += u64::from(for_lack);
    }

    /// Whether it should be found out where this free is made: only for the first few of a site.
    pub(crate) fn wants_place_of_free(&self) -> bool {
        self.looked.load(Ordering::Relaxed) < LOOKED && self.looked.fetch_add(1, Ordering::Relaxed) < LOOKED
    }

    pub(crate) fn spent_freeing(&self, ticks: u64) {
        self.free_ticks.fetch_add(ticks, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> SiteCounts {
        let mut counts = lock(&self.state).counts;
        counts.runtime_ticks += self.free_ticks.load(Ordering::Relaxed);
        counts
    }

    pub(crate) fn growth(&self) -> Vec<GrowthSample> {
        Growth::samples(lock(&self.state).growth.as_deref())
    }
}

const SHARDS: usize = 16;

/// All sites.
pub(crate) struct SiteTable {
    sites: AppendTable<Site>,
    by_key: [StdMutex<HashMap<SiteKey, SiteId, FxBuildHasher>>; SHARDS],
    /// Where sites go once the table is full: one for each device and kind, made with the table, so that there always
    /// is one.
    overflow: Box<[Site]>,
}

impl SiteTable {
    pub(crate) fn new(capacity: usize) -> Self {
        let stack = StackId::origin(Origin::OtherStacks);
        let places =
            (0..MAX_DEVICES).map(DeviceId::new).flat_map(|device| Kind::ALL.map(|kind| (kind, device)));
        SiteTable {
            sites: AppendTable::new(capacity),
            by_key: std::array::from_fn(|_| StdMutex::new(FxHashMap::default())),
            overflow: places.map(|(kind, device)| Site::new(SiteKey { kind, device, stack })).collect(),
        }
    }

    /// The site of `key`, made if there is none yet.
    pub(crate) fn intern(&self, key: SiteKey) -> SiteId {
        let mut shard = lock_std(&self.by_key[shard_of(&key)]);
        if let Some(&id) = shard.get(&key) {
            return id;
        }
        match self.sites.push(Site::new(key)) {
            Ok(index) => {
                let id = SiteId(index as u32);
                shard.insert(key, id);
                id
            }
            Err(_) => SiteId((MAX_SITES + key.device.index() * Kind::ALL.len() + key.kind as usize) as u32),
        }
    }

    pub(crate) fn get(&self, id: SiteId) -> &Site {
        match id.index().checked_sub(MAX_SITES) {
            Some(beyond) => &self.overflow[beyond.min(self.overflow.len() - 1)],
            None => self.sites.get(id.index()).unwrap_or(&self.overflow[0]),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SiteId, &Site)> {
        let numbered =
            self.overflow.iter().enumerate().map(|(n, site)| (SiteId((MAX_SITES + n) as u32), site));
        let used = numbered.filter(|(_, site)| {
            let counts = site.counts();
            counts.alloc_count + counts.failed_count > 0 || counts.composition.live().1 > 0
        });
        self.sites.iter().map(|(index, site)| (SiteId(index as u32), site)).chain(used)
    }
}

fn shard_of(key: &SiteKey) -> usize {
    use std::hash::BuildHasher;
    (FxBuildHasher.hash_one(key) >> 32) as usize % SHARDS
}

const CACHE: usize = 128;

/// A thread's memory of sites it used lately, so that a known stack costs no lock.
pub struct SiteCache {
    entries: [(u64, u64, u32); CACHE],
}

impl SiteCache {
    /// An empty cache.
    pub const fn new() -> Self {
        SiteCache { entries: [(0, 0, 0); CACHE] }
    }

    /// What was stored for this ledger and hash; the caller checks that it is the same stack.
    pub(crate) fn find(&self, ledger: u64, hash: u64) -> Option<SiteId> {
        let (owner, known, site) = self.entries[hash as usize % CACHE];
        (owner == ledger && known == hash).then_some(SiteId(site))
    }

    pub(crate) fn store(&mut self, ledger: u64, hash: u64, site: SiteId) {
        self.entries[hash as usize % CACHE] = (ledger, hash, site.0);
    }
}

impl Default for SiteCache {
    fn default() -> Self {
        SiteCache::new()
    }
}

/// The hash of a site: its stack's, mixed with kind and device.
pub(crate) fn site_hash(stack_hash: u64, kind: Kind, device: DeviceId) -> u64 {
    let place = (kind as u64) << 8 | device.index() as u64;
    (stack_hash ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(29)
}

/// Whether `raw` is empty, that is: there was no Python stack to read.
pub(crate) fn origin_of(raw: &[RawFrame], reason: Origin) -> Option<StackId> {
    raw.is_empty().then(|| StackId::origin(reason))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::peak::PeakClock;

    fn key(stack: u32) -> SiteKey {
        let origin = if stack == 0 { Origin::RuntimeThread } else { Origin::BeforeStart };
        SiteKey { kind: Kind::Device, device: DeviceId::new(1), stack: StackId::origin(origin) }
    }

    #[test]
    fn a_key_has_one_site() {
        let table = SiteTable::new(10);
        assert_eq!(table.intern(key(0)), table.intern(key(0)));
        assert_ne!(table.intern(key(0)), table.intern(key(1)));
    }

    #[test]
    fn a_full_table_still_counts() {
        let table = SiteTable::new(1);
        table.intern(key(0));
        let beyond = table.intern(key(1));
        table.get(beyond).allocated(Tick { current: 5, epoch: 1, set_peak: true }, 5, 1, 0);
        let (_, overflow) = table.iter().last().expect("the overflow site is listed once it is used");
        assert_eq!(overflow.counts().allocated_bytes, 5);
        assert_eq!(overflow.key.stack.as_origin(), Some(Origin::OtherStacks));
        assert_eq!((overflow.key.kind, overflow.key.device), (key(1).kind, key(1).device));
    }

    /// Allocations (site, bytes) and frees (of the n-th live block) on four sites; bytes of 0 start the peak anew.
    fn events() -> impl Strategy<Value = Vec<(bool, usize, u64)>> {
        prop::collection::vec((any::<bool>(), 0usize..64, 0u64..100), 1..200)
    }

    proptest! {
        /// Whatever order the events reach their sites in, the parts at the peak are those of the naive replay.
        #[test]
        fn composition_is_exact_in_any_order(events in events(), seed in any::<u64>()) {
            let clock = PeakClock::default();
            let mut live: Vec<(usize, u64)> = Vec::new();
            let (mut now, mut at_peak, mut peak) = ([0i64; 4], [0i64; 4], 0i64);
            let mut deliveries = Vec::new();
            for (allocate, index, bytes) in events {
                if bytes == 0 {
                    clock.restart();
                    peak = now.iter().sum();
                    at_peak = now;
                } else if allocate || live.is_empty() {
                    let site = index % 4;
                    live.push((site, bytes));
                    now[site] += bytes as i64;
                    deliveries.push((site, clock.add(bytes), bytes as i64, 1));
                } else {
                    let (site, bytes) = live.remove(index % live.len());
                    now[site] -= bytes as i64;
                    deliveries.push((site, clock.sub(bytes), -(bytes as i64), -1));
                }
                if now.iter().sum::<i64>() > peak {
                    peak = now.iter().sum();
                    at_peak = now;
                }
            }
            shuffle_nearby(&mut deliveries, seed);
            let mut sites = [Composition::default(); 4];
            for (site, tick, bytes, count) in deliveries {
                sites[site].enter(tick, bytes, count);
            }
            let reading = clock.read();
            prop_assert_eq!(reading.peak as i64, peak);
            for site in 0..4 {
                prop_assert_eq!(sites[site].at_peak(reading).map(|(bytes, _)| bytes), Some(at_peak[site]));
                prop_assert_eq!(sites[site].live().0, now[site]);
            }
        }
    }

    /// Any permutation is allowed: the protocol promises that the order of delivery does not matter.
    fn shuffle_nearby<T>(items: &mut [T], mut seed: u64) {
        for index in (1..items.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            items.swap(index, (seed >> 33) as usize % (index + 1));
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::peak::PeakClock;

    /// Two threads allocate and free on two sites; at the end the parts at the peak sum to the peak.
    #[test]
    fn parts_sum_to_the_peak() {
        loom::model(|| {
            let shared = Arc::new((PeakClock::default(), Mutex::new([Composition::default(); 2])));
            let work = |shared: Arc<(PeakClock, Mutex<[Composition; 2]>)>, site: usize, bytes: u64| {
                move || {
                    let tick = shared.0.add(bytes);
                    lock(&shared.1)[site].enter(tick, bytes as i64, 1);
                    let tick = shared.0.sub(bytes);
                    lock(&shared.1)[site].enter(tick, -(bytes as i64), -1);
                }
            };
            let other = thread::spawn(work(shared.clone(), 1, 3));
            work(shared.clone(), 0, 5)();
            other.join().expect("the other thread does not panic");
            let reading = shared.0.read();
            let sites = lock(&shared.1);
            let parts: i64 = sites.iter().filter_map(|s| s.at_peak(reading)).map(|(bytes, _)| bytes).sum();
            assert_eq!(parts, reading.peak as i64);
            assert!(sites.iter().all(|site| site.live() == (0, 0)));
        });
    }
}
