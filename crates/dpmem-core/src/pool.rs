//! The caching pool and limits: what is asked of the runtime when the program asks for memory, and what is kept when it
//! frees some.
//!
//! Owns size classes, free lists, accounts and limits. Must not know how memory is made, nor wait by itself: all of that
//! is [`Upstream`]'s. Blocks are whole upstream blocks, never parts of one, so questions about a pointer stay true.
//!
//! Invariants, each checked by the conformance tests for every [`Policy`]:
//! * a block has one user at a time, and a freed one is handed out again only at rest (see [`Upstream`]);
//! * what is reserved is the sum of the blocks taken and not given back, and passes a limit only if that was lowered;
//! * what is in use is the sum of the requests, what is cached the sum of the free blocks;
//! * after [`Pool::empty`] with nothing in use, nothing is reserved.
//!
//! Threads: everything may be called from any. No lock is held across a call to upstream other than
//! [`Upstream::passed`] and [`Upstream::is_abandoned`].

mod account;
mod class;
mod held;
mod reserve;
mod shelf;
mod submissions;
mod trimming;
mod upstream;
mod visits;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use account::{Account, NoRoom};
pub use account::{Beyond, PoolReading, Rescue};
use held::HeldMap;
pub use reserve::{Reserve, ReserveRow};
use shelf::{End, FORGOTTEN, FREE, Free, Held, Space};
pub use submissions::Submissions;
pub use upstream::{Place, Upstream};

use crate::kind::{DeviceId, Kind, MAX_DEVICES};

/// Up to this much may be reserved whatever the program's peak is: little memory is not worth giving back.
const FREE_REIN: u64 = 1 << 20;

/// What becomes of requests and of freed blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every request goes upstream as it is, every freed block back. For a limit without a pool.
    Direct,
    /// Requests are rounded up to size classes, freed blocks are kept for the next request.
    Caching,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 2] = [Policy::Direct, Policy::Caching];
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<R> {
    /// The limit does not allow it.
    Limit,
    /// There is no limit, but what would be reserved is more than can be counted. Upstream was not asked.
    Uncountable,
    /// Upstream refused.
    Upstream(R),
}

/// What became of a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed<R> {
    /// The pool does not know the address.
    Unknown,
    /// It is done.
    Done,
    /// The block is free already.
    Twice,
    /// Upstream would not take it back; the block is as it was.
    Refused(R),
}

/// What the pool knows of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The start of a block in use, with the size asked for.
    InUse(u64),
    /// The start of a block that the program has freed.
    Free,
}

/// What is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// Blocks at rest.
    Rested,
    /// All free blocks. Upstream then sees the free that the program made, as late as now.
    All,
}

/// The pool of a process.
pub struct Pool<U: Upstream> {
    spaces: RwLock<Vec<Arc<Space<U::Fence>>>>,
    held: HeldMap<U::Fence>,
    /// Device and shared memory by device; host memory at [`DeviceId::NONE`].
    accounts: Box<[Account]>,
    total: Account,
    /// What is reserved on all devices together: without host memory, as limits go.
    on_devices: ReserveRow,
    caching: AtomicBool,
    /// How often caching has begun. Upstream may know nothing of what was done with a block while nothing was cached,
    /// so only blocks of this time are kept.
    era: AtomicU64,
    frees: AtomicU64,
}

type Space_<U> = Arc<Space<<U as Upstream>::Fence>>;

impl<U: Upstream> Pool<U> {
    /// An empty pool.
    pub fn new(policy: Policy) -> Self {
        Self::with_rows(policy, None)
    }

    /// An empty pool that keeps what is reserved on each device in `rows`, where somebody else reads it.
    pub fn with_rows(policy: Policy, rows: Option<&'static [ReserveRow; MAX_DEVICES]>) -> Self {
        let account = |device: usize| Account::new(rows.map(|rows| &rows[device]));
        Pool {
            spaces: RwLock::new(Vec::new()),
            held: HeldMap::new(),
            accounts: (0..MAX_DEVICES).map(account).collect(),
            total: Account::new(None),
            on_devices: ReserveRow::new(),
            caching: AtomicBool::new(policy == Policy::Caching),
            era: AtomicU64::new(0),
            frees: AtomicU64::new(0),
        }
    }

    /// Changes the policy. What is cached goes back if the new one caches nothing.
    pub fn set_policy(&self, upstream: &U, policy: Policy) {
        match policy {
            Policy::Caching if self.is_caching() => {}
            Policy::Caching => {
                // What a failure left on the shelves: nobody knows any more when that is at rest.
                self.empty(upstream);
                self.era.fetch_add(1, Ordering::SeqCst);
                self.caching.store(true, Ordering::SeqCst);
            }
            Policy::Direct => {
                self.stop_caching();
                self.empty(upstream);
            }
        }
    }

    /// Keeps nothing more from now on. What is cached stays until [`Pool::empty`]; nobody gets it meanwhile.
    pub fn stop_caching(&self) {
        self.caching.store(false, Ordering::SeqCst);
    }

    /// The policy in force.
    pub fn policy(&self) -> Policy {
        if self.is_caching() { Policy::Caching } else { Policy::Direct }
    }

    /// Serves a request. Takes no way out of a shortage by itself: see [`Pool::trim`].
    ///
    /// # Errors
    /// What stood in the way.
    pub fn allocate(&self, upstream: &U, place: Place, bytes: u64) -> Result<usize, Refused<U::Refusal>> {
        let account = self.account(&place);
        let class = class::of(bytes).filter(|_| self.is_caching());
        let Some((shelf, block)) = class else {
            return self.grow(upstream, place, None, bytes, bytes);
        };
        let space = self.space(upstream, place);
        if !account.is_over() {
            if let Some(free) = space.take_rested(upstream, shelf) {
                return Ok(self.hand_out(upstream, free, bytes));
            }
            if let Some(free) =
                self.hold_back(upstream, account, (&space, shelf), account.bulge(block, bytes))
            {
                return Ok(self.hand_out(upstream, free, bytes));
            }
        }
        let kept = Some((space, shelf));
        match self.grow(upstream, place, kept, block, bytes) {
            // Rounding up must not be what a request fails for.
            Err(_) if block > bytes => self.grow(upstream, place, None, bytes, bytes),
            answer => answer,
        }
    }

    /// Serves a request for memory that is not like any other: it is counted, and goes upstream when it is freed.
    ///
    /// # Errors
    /// What stood in the way.
    pub fn allocate_uncached(
        &self,
        upstream: &U,
        place: Place,
        bytes: u64,
    ) -> Result<usize, Refused<U::Refusal>> {
        self.grow(upstream, place, None, bytes, bytes)
    }

    /// Takes a block in that the program has from before. It goes upstream when it is freed.
    pub fn adopt(&self, place: Place, address: usize, bytes: u64) {
        self.account(&place).served(bytes);
        self.both(self.account(&place), |a| {
            a.reserve_regardless(bytes);
            a.used(bytes);
        });
        self.reserved(&place, bytes);
        self.enter(Held { place, address, bytes, shelf: None, era: 0, asked: AtomicU64::new(bytes) });
    }

    /// Ends [`Pool::adopt`] of a block that turned out to be freed already.
    pub fn disown(&self, address: usize) {
        if let Some(held) = self.held.remove(address) {
            self.forget(&held);
        }
    }

    /// Takes a block back from the program.
    pub fn free(&self, upstream: &U, address: usize) -> Freed<U::Refusal> {
        let Some(held) = self.held.get(address) else { return Freed::Unknown };
        let asked = match held.asked.swap(FREE, Ordering::AcqRel) {
            FREE => return Freed::Twice,
            FORGOTTEN => return Freed::Unknown,
            asked => asked,
        };
        let account = self.account(&held.place);
        self.both(account, |a| a.unused(asked));
        // Asked again when it is put on the shelf: caching may have ended and begun meanwhile, and its fence is of before.
        let is_kept = || self.is_kept(&held);
        if let Some((space, shelf)) = held.shelf.as_ref().filter(|_| is_kept() && !account.is_over()) {
            let fence = upstream.fence(&held.place, held.bytes);
            if fence.is_none() {
                upstream.rested(held.address, held.bytes);
            }
            let since = self.frees.fetch_add(1, Ordering::Relaxed);
            self.both(account, |a| a.cached(held.bytes));
            let free = Free { held: held.clone(), fence, since };
            let Err(free) = space.keep(*shelf, free, End::Newest, is_kept) else { return Freed::Done };
            self.both(account, |a| a.uncached(free.held.bytes));
        }
        match self.give(upstream, &held) {
            Ok(()) => Freed::Done,
            Err(refusal) => {
                held.asked.store(asked, Ordering::Release);
                self.both(account, |a| a.used(asked));
                Freed::Refused(refusal)
            }
        }
    }

    /// What is known of an address.
    pub fn known(&self, address: usize) -> Option<Known> {
        let held = self.held.get(address)?;
        let asked = held.asked.load(Ordering::Acquire);
        match asked {
            FREE => Some(Known::Free),
            FORGOTTEN => None,
            asked => Some(Known::InUse(asked)),
        }
    }

    /// What is known of the block that begins at `base`, if `address` lies in it. Upstream may cut its own blocks up and
    /// name the begin of the whole.
    pub fn known_around(&self, base: usize, address: usize) -> Option<Known> {
        let held = self.held.get(base)?;
        let inside = address.checked_sub(base).is_some_and(|offset| (offset as u64) < held.bytes);
        if inside { self.known(base) } else { None }
    }

    /// Sets the limit of a device; `None` for none. What is cached beyond it goes back. The limit before.
    pub fn set_limit(&self, upstream: &U, device: DeviceId, limit: Option<u64>) -> Option<u64> {
        let before = self.put_limit(device, limit);
        self.fit(upstream, device);
        before
    }

    /// Sets the limit of a device; one that is lower than before takes [`Pool::fit`] to be kept, which a caller can leave
    /// until it has no lock. The limit before.
    pub fn put_limit(&self, device: DeviceId, limit: Option<u64>) -> Option<u64> {
        let account = &self.accounts[device.index()];
        let before = account.limit();
        account.set_limit(limit);
        before
    }

    /// The limit of a device.
    pub fn limit(&self, device: DeviceId) -> Option<u64> {
        self.accounts[device.index()].limit()
    }

    /// A request of `place` succeeded thanks to a stage of the way out of a shortage.
    pub fn rescued(&self, place: &Place, rescue: Rescue) {
        self.both(self.account(place), |a| a.rescued(rescue));
    }

    /// The numbers of a device: its device and shared memory; those of host memory for [`DeviceId::NONE`].
    pub fn reading(&self, device: DeviceId) -> PoolReading {
        self.accounts[device.index()].reading()
    }

    /// The sums over all devices and kinds. The limit is that of each device that has one; none where they differ.
    pub fn total(&self) -> PoolReading {
        let mut limits = self.accounts.iter().filter_map(Account::limit);
        let limit_bytes = limits.next().filter(|first| limits.all(|other| other == *first));
        let beyond = self.accounts.iter().map(Account::beyond).fold(Beyond::default(), Beyond::plus);
        PoolReading { limit_bytes, beyond, ..self.total.reading() }
    }

    /// As [`Pool::total`], but bytes are those of device and shared memory: what limits count.
    pub fn total_on_devices(&self) -> PoolReading {
        let (total, host) = (self.total(), self.reading(DeviceId::NONE));
        let Reserve { bytes, peak_bytes, .. } = self.on_devices.reading();
        PoolReading {
            reserved_bytes: bytes,
            peak_reserved_bytes: peak_bytes,
            // Read one after the other, they need not agree.
            cached_bytes: total.cached_bytes.saturating_sub(host.cached_bytes),
            ..total
        }
    }

    /// The places that blocks may be cached of.
    pub fn places(&self) -> Vec<Place> {
        self.spaces().iter().map(|space| space.place).collect()
    }

    /// Starts the peak of what is reserved on a device anew.
    pub fn reset_peak(&self, device: DeviceId) {
        self.accounts[device.index()].start_peak_anew();
    }

    /// Another recording begins: starts all peaks of what is reserved anew, those of the sums included, and [`Beyond`]. The
    /// peaks of what is in use stay, as the bound on what is kept goes by them.
    pub fn recording_begins(&self) {
        self.accounts.iter().chain([&self.total]).for_each(Account::start_peak_anew);
        self.on_devices.start_peak_anew();
        self.accounts.iter().for_each(Account::recording_begins);
    }

    /// The program's requests are not recorded any more: [`Beyond`] stays what it is.
    pub fn recording_ends(&self) {
        self.accounts.iter().for_each(Account::recording_ends);
    }

    fn is_caching(&self) -> bool {
        self.caching.load(Ordering::SeqCst)
    }

    /// Whether a block is of this time of caching.
    fn is_kept(&self, held: &Held<U::Fence>) -> bool {
        self.is_caching() && held.era == self.era.load(Ordering::SeqCst)
    }

    fn account(&self, place: &Place) -> &Account {
        &self.accounts[account_of(place)]
    }

    fn both(&self, account: &Account, change: impl Fn(&Account)) {
        change(account);
        change(&self.total);
    }

    fn spaces(&self) -> Vec<Space_<U>> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The space of a place, made at its first request. Then is also the time to look for owners that were let go of
    /// without a word.
    fn space(&self, upstream: &U, place: Place) -> Space_<U> {
        let find = |spaces: &[Space_<U>]| spaces.iter().find(|space| space.place == place).cloned();
        if let Some(space) = find(&self.spaces.read().unwrap_or_else(PoisonError::into_inner)) {
            return space;
        }
        self.drop_abandoned(upstream);
        upstream.retain(place.owner);
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = find(&spaces) {
            drop(spaces);
            upstream.release(place.owner);
            return space;
        }
        let space = Arc::new(Space::new(place));
        spaces.push(space.clone());
        space
    }

    /// A free block becomes the program's.
    fn hand_out(&self, upstream: &U, free: Free<U::Fence>, bytes: u64) -> usize {
        let held = free.held;
        if free.fence.is_some() {
            upstream.rested(held.address, held.bytes);
        }
        // A pool that is closed meanwhile has forgotten the block.
        let ours = held.asked.compare_exchange(FREE, bytes, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if ours {
            self.account(&held.place).served(bytes);
        }
        self.both(self.account(&held.place), |a| {
            a.hit();
            a.uncached(held.bytes);
            if ours {
                a.used(bytes);
            }
        });
        held.address
    }

    /// Takes a block from upstream.
    fn grow(
        &self,
        upstream: &U,
        place: Place,
        shelf: Option<(Space_<U>, usize)>,
        block: u64,
        bytes: u64,
    ) -> Result<usize, Refused<U::Refusal>> {
        let account = self.account(&place);
        account.claim(block).map_err(|why| match why {
            NoRoom::Limit => Refused::Limit,
            NoRoom::Uncountable => Refused::Uncountable,
        })?;
        let address = match upstream.take(&place, block) {
            Ok(address) => address,
            Err(refusal) => {
                account.disclaim(block);
                return Err(Refused::Upstream(refusal));
            }
        };
        account.reserve(block);
        account.served(bytes);
        self.total.reserve_regardless(block);
        self.reserved(&place, block);
        self.both(account, |a| {
            a.miss();
            a.used(bytes);
        });
        let era = self.era.load(Ordering::SeqCst);
        self.enter(Held { place, address, bytes: block, shelf, era, asked: AtomicU64::new(bytes) });
        Ok(address)
    }

    fn enter(&self, held: Held<U::Fence>) {
        if let Some(stale) = self.held.insert(Arc::new(held)) {
            // Its free went past us.
            self.forget(&stale);
        }
    }

    fn reserved(&self, place: &Place, bytes: u64) {
        if is_on_device(place) {
            self.on_devices.add(bytes);
        }
    }

    /// A block is on no account any more.
    fn given_up(&self, held: &Held<U::Fence>) {
        self.both(self.account(&held.place), |a| a.give_up(held.bytes));
        if is_on_device(&held.place) {
            self.on_devices.sub(held.bytes);
        }
    }

    /// A block is upstream's business again.
    fn forget(&self, held: &Held<U::Fence>) {
        let account = self.account(&held.place);
        self.given_up(held);
        match held.asked.swap(FORGOTTEN, Ordering::AcqRel) {
            FREE | FORGOTTEN => {}
            asked => self.both(account, |a| a.unused(asked)),
        }
    }
}

/// The account that a place's blocks are on. Host memory takes no room on a device.
fn account_of(place: &Place) -> usize {
    if is_on_device(place) { place.device.index() } else { DeviceId::NONE.index() }
}

fn is_on_device(place: &Place) -> bool {
    place.kind != Kind::Host
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
