//! What one device's share of the pool amounts to, and the limit on it.
//!
//! Protocol: room is **claimed** *before* upstream is asked, in one compare-and-swap against the limit, and given up
//! again if upstream refuses. It counts as reserved, and for the peak, only once upstream has given the block, and no
//! more before its room is given up. So with any number of threads, what is reserved never passes a limit that stood
//! still meanwhile, and a request that fails is in no number. All other numbers are plain sums that are exact whenever no
//! call is under way.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::reserve::{Reserve, ReserveRow};
use crate::sync::{AtomicU64, lock_std as lock};

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
    /// Cached blocks given back to make room: not those that went because somebody wanted the pool empty.
    pub trims: u64,
    /// Requests that succeeded after a shortage, by stage.
    pub rescues: [u64; 4],
    /// What upstream did beyond the program's requests and frees while they were recorded.
    pub beyond: Beyond,
}

/// By how much more upstream gave and took back than the program asked for and freed. Less, where the cache served. Added
/// to the sums of what was recorded of the program, these are those of what went to and came from upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Bytes that upstream gave, less those asked for.
    pub taken_bytes: i64,
    /// Bytes that upstream took back, less those freed.
    pub given_bytes: i64,
}

impl Beyond {
    pub(super) fn plus(self, other: Beyond) -> Beyond {
        Beyond {
            taken_bytes: self.taken_bytes.wrapping_add(other.taken_bytes),
            given_bytes: self.given_bytes.wrapping_add(other.given_bytes),
        }
    }

    fn since(self, other: Beyond) -> Beyond {
        Beyond {
            taken_bytes: self.taken_bytes.wrapping_sub(other.taken_bytes),
            given_bytes: self.given_bytes.wrapping_sub(other.given_bytes),
        }
    }
}

/// The part of the time in which the program's requests are recorded.
#[derive(Clone, Copy, Default)]
struct Recorded {
    from: Beyond,
    until: Option<Beyond>,
}

/// Why there is no room for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The limit does not allow it.
    Limit,
    /// There is no limit, but the sum would be more than can be counted.
    Uncountable,
}

pub(super) struct Account {
    /// What is reserved, and what upstream is being asked for.
    claimed: AtomicU64,
    /// What is reserved, unless it is in a row that was lent.
    own: ReserveRow,
    lent: Option<&'static ReserveRow>,
    cached: AtomicU64,
    in_use: AtomicU64,
    peak_in_use: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    trims: AtomicU64,
    rescues: [AtomicU64; 4],
    /// Bytes that upstream has ever given, and those of all requests served.
    taken: AtomicU64,
    served: AtomicU64,
    recorded: Mutex<Recorded>,
}

impl Account {
    /// An empty account. What is reserved is kept in `row` if there is one, where somebody else reads it.
    pub(super) fn new(row: Option<&'static ReserveRow>) -> Self {
        Account {
            claimed: AtomicU64::new(0),
            own: ReserveRow::new(),
            lent: row,
            cached: AtomicU64::new(0),
            in_use: AtomicU64::new(0),
            peak_in_use: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            trims: AtomicU64::new(0),
            rescues: std::array::from_fn(|_| AtomicU64::new(0)),
            taken: AtomicU64::new(0),
            served: AtomicU64::new(0),
            recorded: Mutex::default(),
        }
    }

    /// Makes room for a block that upstream is about to be asked for.
    pub(super) fn claim(&self, bytes: u64) -> Result<(), NoRoom> {
        let mut claimed = self.claimed.load(Relaxed);
        loop {
            let limit = self.row().limit();
            let wanted = match claimed.checked_add(bytes) {
                Some(wanted) if wanted <= limit => wanted,
                None if limit == NO_LIMIT => return Err(NoRoom::Uncountable),
                _ => return Err(NoRoom::Limit),
            };
            // Sees the room that was given up as no longer reserved.
            match self.claimed.compare_exchange_weak(claimed, wanted, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => claimed = now,
            }
        }
    }

    /// Upstream has refused what was claimed.
    pub(super) fn disclaim(&self, bytes: u64) {
        self.claimed.fetch_sub(bytes, Release);
    }

    /// Upstream has given what was claimed.
    pub(super) fn reserve(&self, bytes: u64) {
        self.row().add(bytes);
        self.taken.fetch_add(bytes, Relaxed);
    }

    /// Takes a block in that exists already, whatever the limit says.
    pub(super) fn reserve_regardless(&self, bytes: u64) {
        self.claimed.fetch_add(bytes, Relaxed);
        self.reserve(bytes);
    }

    /// A block is upstream's again.
    pub(super) fn give_up(&self, bytes: u64) {
        self.row().sub(bytes);
        self.disclaim(bytes);
    }

    /// A request has been served. Not for the sums over all accounts.
    pub(super) fn served(&self, bytes: u64) {
        self.served.fetch_add(bytes, Relaxed);
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
        self.claimed.load(Relaxed) > self.row().limit()
    }

    pub(super) fn set_limit(&self, limit: Option<u64>) {
        self.row().set_limit(limit.unwrap_or(NO_LIMIT));
    }

    pub(super) fn limit(&self) -> Option<u64> {
        Some(self.row().limit()).filter(|&limit| limit != NO_LIMIT)
    }

    /// By how much reserving `block` more for a request of `bytes` would take the reserve beyond what the program's own
    /// peak justifies.
    pub(super) fn bulge(&self, block: u64, bytes: u64) -> u64 {
        let in_use = self.in_use.load(Relaxed) + bytes;
        let peak = self.peak_in_use.load(Relaxed).max(in_use);
        let justified = (peak + peak / 4).max(super::FREE_REIN);
        (self.claimed.load(Relaxed) + block).saturating_sub(justified)
    }

    /// Another recording begins, and with it what goes beyond the program's requests.
    pub(super) fn recording_begins(&self) {
        *lock(&self.recorded) = Recorded { from: self.beyond_ever(), until: None };
    }

    /// The program's requests are not recorded any more.
    pub(super) fn recording_ends(&self) {
        lock(&self.recorded).until.get_or_insert_with(|| self.beyond_ever());
    }

    pub(super) fn beyond(&self) -> Beyond {
        let recorded = *lock(&self.recorded);
        recorded.until.unwrap_or_else(|| self.beyond_ever()).since(recorded.from)
    }

    fn beyond_ever(&self) -> Beyond {
        let kept = self.row().bytes().wrapping_sub(self.in_use.load(Relaxed)) as i64;
        let taken_bytes = self.taken.load(Relaxed).wrapping_sub(self.served.load(Relaxed)) as i64;
        Beyond { taken_bytes, given_bytes: taken_bytes.wrapping_sub(kept) }
    }

    pub(super) fn start_peak_anew(&self) {
        self.row().start_peak_anew();
    }

    pub(super) fn reading(&self) -> PoolReading {
        let Reserve { bytes, peak_bytes, limit_bytes } = self.row().reading();
        PoolReading {
            limit_bytes,
            reserved_bytes: bytes,
            peak_reserved_bytes: peak_bytes,
            cached_bytes: self.cached.load(Relaxed),
            in_use_bytes: self.in_use.load(Relaxed),
            peak_in_use_bytes: self.peak_in_use.load(Relaxed),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            trims: self.trims.load(Relaxed),
            rescues: std::array::from_fn(|stage| self.rescues[stage].load(Relaxed)),
            beyond: self.beyond(),
        }
    }

    fn row(&self) -> &ReserveRow {
        self.lent.unwrap_or(&self.own)
    }
}

/// Most events set no new peak, and then a read is all that is needed.
pub(super) fn raise(peak: &AtomicU64, value: u64) {
    if peak.load(Relaxed) < value {
        peak.fetch_max(value, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_what_is_reserved() {
        let account = Account::new(None);
        let take = |bytes| account.claim(bytes).map(|()| account.reserve(bytes));
        account.set_limit(Some(100));
        assert_eq!([take(60), take(41), take(40)], [Ok(()), Err(NoRoom::Limit), Ok(())]);
        account.set_limit(Some(50));
        assert!(account.is_over() && take(1).is_err());
        account.give_up(60);
        assert!(!account.is_over() && take(10).is_ok());
        account.set_limit(None);
        assert_eq!(take(1 << 40), Ok(()));
        assert_eq!(account.reading().peak_reserved_bytes, (1 << 40) + 50);
    }

    #[test]
    fn what_was_only_claimed_takes_room_and_is_in_no_number() {
        let account = Account::new(None);
        account.set_limit(Some(100));
        assert_eq!(account.claim(60), Ok(()));
        assert_eq!(account.claim(41), Err(NoRoom::Limit));
        account.reserve_regardless(10);
        account.disclaim(60);
        assert_eq!(account.claim(90), Ok(()));
        let reading = account.reading();
        assert_eq!((reading.reserved_bytes, reading.peak_reserved_bytes), (10, 10));
    }

    #[test]
    fn what_cannot_be_counted_is_not_claimed() {
        let account = Account::new(None);
        account.reserve_regardless(1000);
        assert_eq!(account.claim(u64::MAX), Err(NoRoom::Uncountable));
        assert_eq!(account.claim(u64::MAX - 999), Err(NoRoom::Uncountable));
        account.set_limit(Some(2000));
        assert_eq!(account.claim(u64::MAX), Err(NoRoom::Limit));
        assert_eq!(account.claim(1000), Ok(()));
    }

    #[test]
    fn a_reserve_may_pass_the_programs_peak_by_a_quarter() {
        let account = Account::new(None);
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
            let account = Arc::new(Account::new(None));
            account.set_limit(Some(10));
            let work = |account: Arc<Account>, bytes: u64| {
                move || {
                    let taken = account.claim(bytes).is_ok();
                    if taken {
                        account.reserve(bytes);
                    }
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
