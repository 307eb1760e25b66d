//! What one device's share of the pool amounts to, and the limit on it.
//!
//! Protocol: room is reserved *before* upstream is asked and given up again if upstream refuses, in one
//! compare-and-swap against the limit. So with any number of threads, what is reserved never passes a limit that stood
//! still meanwhile. All other numbers are plain sums that are exact whenever no call is under way.

use std::sync::atomic::Ordering::Relaxed;

use crate::sync::AtomicU64;

const NO_LIMIT: u64 = u64::MAX;

/// What a stage of the way out of a shortage achieved. See [`super::Pool::rescued`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Rescue {
    /// Idle cached blocks were given back.
    Trim = 0,
    /// Queued work was waited for.
    Wait = 1,
    /// Python's cyclic collector ran.
    Collect = 2,
    /// A callback of the program freed something.
    Callback = 3,
}

impl Rescue {
    /// All stages, in the order in which they are tried.
    pub const ALL: [Rescue; 4] = [Rescue::Trim, Rescue::Wait, Rescue::Collect, Rescue::Callback];

    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rescue::Trim => "trim",
            Rescue::Wait => "wait",
            Rescue::Collect => "collect",
            Rescue::Callback => "callback",
        }
    }
}

/// The numbers of an account at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReading {
    /// The limit, if there is one.
    pub limit_bytes: Option<u64>,
    /// Held from upstream.
    pub reserved_bytes: u64,
    /// The most ever held.
    pub peak_reserved_bytes: u64,
    /// Held and used by no block of the program's.
    pub cached_bytes: u64,
    /// In use by the program, as it asked for it.
    pub in_use_bytes: u64,
    /// The most in use at a time.
    pub peak_in_use_bytes: u64,
    /// Requests served from the cache.
    pub hits: u64,
    /// Requests passed on to upstream.
    pub misses: u64,
    /// Cached blocks given back to make room.
    pub trims: u64,
    /// Requests that succeeded after a shortage, by stage.
    pub rescues: [u64; 4],
}

pub(super) struct Account {
    reserved: AtomicU64,
    peak_reserved: AtomicU64,
    cached: AtomicU64,
    in_use: AtomicU64,
    peak_in_use: AtomicU64,
    limit: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    trims: AtomicU64,
    rescues: [AtomicU64; 4],
}

impl Account {
    pub(super) fn new() -> Self {
        Account {
            reserved: AtomicU64::new(0),
            peak_reserved: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            in_use: AtomicU64::new(0),
            peak_in_use: AtomicU64::new(0),
            limit: AtomicU64::new(NO_LIMIT),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            trims: AtomicU64::new(0),
            rescues: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Makes room for a block; false if the limit does not allow it.
    pub(super) fn reserve(&self, bytes: u64) -> bool {
        let mut reserved = self.reserved.load(Relaxed);
        loop {
            let wanted = reserved.saturating_add(bytes);
            if wanted > self.limit.load(Relaxed) {
                return false;
            }
            match self.reserved.compare_exchange_weak(reserved, wanted, Relaxed, Relaxed) {
                Ok(_) => {
                    raise(&self.peak_reserved, wanted);
                    return true;
                }
                Err(now) => reserved = now,
            }
        }
    }

    /// Takes a block in that exists already, whatever the limit says.
    pub(super) fn reserve_regardless(&self, bytes: u64) {
        let reserved = self.reserved.fetch_add(bytes, Relaxed) + bytes;
        raise(&self.peak_reserved, reserved);
    }

    pub(super) fn give_up(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn used(&self, bytes: u64) {
        let in_use = self.in_use.fetch_add(bytes, Relaxed) + bytes;
        raise(&self.peak_in_use, in_use);
    }

    pub(super) fn unused(&self, bytes: u64) {
        self.in_use.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn cached(&self, bytes: u64) {
        self.cached.fetch_add(bytes, Relaxed);
    }

    pub(super) fn uncached(&self, bytes: u64) {
        self.cached.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn hit(&self) {
        self.hits.fetch_add(1, Relaxed);
    }

    pub(super) fn miss(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    pub(super) fn trimmed(&self) {
        self.trims.fetch_add(1, Relaxed);
    }

    pub(super) fn rescued(&self, rescue: Rescue) {
        self.rescues[rescue as usize].fetch_add(1, Relaxed);
    }

    /// Whether more is reserved than the limit allows, because the limit was lowered.
    pub(super) fn is_over(&self) -> bool {
        self.reserved.load(Relaxed) > self.limit.load(Relaxed)
    }

    pub(super) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(NO_LIMIT), Relaxed);
    }

    pub(super) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Relaxed)).filter(|&limit| limit != NO_LIMIT)
    }

    /// By how much reserving `block` more for a request of `bytes` would take the reserve beyond what the program's own
    /// peak justifies.
    pub(super) fn bulge(&self, block: u64, bytes: u64) -> u64 {
        let in_use = self.in_use.load(Relaxed) + bytes;
        let peak = self.peak_in_use.load(Relaxed).max(in_use);
        let justified = (peak + peak / 4).max(super::FREE_REIN);
        (self.reserved.load(Relaxed) + block).saturating_sub(justified)
    }

    pub(super) fn start_peak_anew(&self) {
        self.peak_reserved.store(self.reserved.load(Relaxed), Relaxed);
        // Of what another thread has reserved since that was read.
        raise(&self.peak_reserved, self.reserved.load(Relaxed));
    }

    pub(super) fn reading(&self) -> PoolReading {
        PoolReading {
            limit_bytes: self.limit(),
            reserved_bytes: self.reserved.load(Relaxed),
            peak_reserved_bytes: self.peak_reserved.load(Relaxed),
            cached_bytes: self.cached.load(Relaxed),
            in_use_bytes: self.in_use.load(Relaxed),
            peak_in_use_bytes: self.peak_in_use.load(Relaxed),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            trims: self.trims.load(Relaxed),
            rescues: std::array::from_fn(|stage| self.rescues[stage].load(Relaxed)),
        }
    }
}

/// Most events set no new peak, and then a read is all that is needed.
fn raise(peak: &AtomicU64, value: u64) {
    if peak.load(Relaxed) < value {
        peak.fetch_max(value, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_what_is_reserved() {
        let account = Account::new();
        account.set_limit(Some(100));
        assert!(account.reserve(60) && !account.reserve(41) && account.reserve(40));
        account.set_limit(Some(50));
        assert!(account.is_over() && !account.reserve(1));
        account.give_up(60);
        assert!(!account.is_over() && account.reserve(10));
        account.set_limit(None);
        assert!(account.reserve(1 << 40));
        assert_eq!(account.reading().peak_reserved_bytes, (1 << 40) + 50);
    }

    #[test]
    fn a_reserve_may_pass_the_programs_peak_by_a_quarter() {
        let account = Account::new();
        assert_eq!(account.bulge(1000, 1000), 0, "little memory has free rein");
        let mega = 1 << 20;
        account.used(100 * mega);
        account.reserve_regardless(110 * mega);
        assert_eq!(account.bulge(15 * mega, mega), 0);
        assert_eq!(account.bulge(20 * mega, 0), 5 * mega);
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Two threads take and give up room; neither ever sees, nor leaves, more reserved than the limit.
    #[test]
    fn the_limit_holds_between_threads() {
        loom::model(|| {
            let account = Arc::new(Account::new());
            account.set_limit(Some(10));
            let work = |account: Arc<Account>, bytes: u64| {
                move || {
                    let taken = account.reserve(bytes);
                    assert!(account.reading().reserved_bytes <= 10);
                    if taken {
                        account.give_up(bytes);
                    }
                    taken
                }
            };
            let other = thread::spawn(work(account.clone(), 6));
            let mine = work(account.clone(), 7)();
            let theirs = other.join().expect("no panic");
            assert!(mine || theirs, "one of them fits");
            assert_eq!(account.reading().reserved_bytes, 0);
            assert!(account.reading().peak_reserved_bytes <= 10);
        });
    }
}
