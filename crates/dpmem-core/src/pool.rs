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
mod shelf;
mod submissions;
mod upstream;
mod visits;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use account::{Account, NoRoom};
pub use account::{Beyond, PoolReading, Rescue};
use held::HeldMap;
use shelf::{FORGOTTEN, FREE, Free, Held, Space};
pub use submissions::Submissions;
pub use upstream::{Place, Upstream};
use visits::Visit;

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
        Pool {
            spaces: RwLock::new(Vec::new()),
            held: HeldMap::new(),
            accounts: (0..MAX_DEVICES).map(|_| Account::new()).collect(),
            total: Account::new(),
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
            let Err(free) = space.put(*shelf, free, is_kept) else { return Freed::Done };
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

    /// Gives cached blocks of a device back, of all devices if `None`, oldest first, until `wanted` bytes are free.
    /// How many bytes went.
    pub fn trim(&self, upstream: &U, device: Option<DeviceId>, wanted: u64, which: Trim) -> u64 {
        self.trim_spaces(upstream, wanted, which, |place| {
            device.is_none_or(|device| account_of(place) == device.index())
        })
    }

    /// Gives everything back that is cached.
    pub fn empty(&self, upstream: &U) -> u64 {
        self.spaces().iter().map(|space| self.drain(upstream, space)).sum()
    }

    /// Gives everything back that is cached, lets go of all owners and forgets the blocks in use: their frees will not
    /// come through here any more.
    pub fn close(&self, upstream: &U) {
        self.stop_caching();
        let spaces = std::mem::take(&mut *self.spaces.write().unwrap_or_else(PoisonError::into_inner));
        for space in spaces {
            self.retire(upstream, &space);
        }
        self.held.drain().iter().for_each(|held| self.forget(held));
    }

    /// The program has let go of an owner: if nobody else keeps it, its blocks go back and so does the owner.
    pub fn owner_released(&self, upstream: &U, owner: usize) {
        let ours = |space: &Space_<U>| space.place.owner == owner;
        if self.spaces().iter().any(ours) {
            self.drop_abandoned(upstream);
        }
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

    /// Gives back what is cached beyond the limit of a device.
    pub fn fit(&self, upstream: &U, device: DeviceId) {
        let Some(limit) = self.limit(device) else { return };
        let over = self.reading(device).reserved_bytes.saturating_sub(limit);
        if over > 0 {
            self.trim(upstream, Some(device), over, Trim::All);
        }
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

    /// Puts a block back on its shelf that was looked at, or gives it back if it is not to be kept any more; the bytes that
    /// went.
    fn put_back(&self, upstream: &U, space: &Space<U::Fence>, shelf: usize, free: Free<U::Fence>) -> u64 {
        let held = free.held.clone();
        let kept = space.put_back(shelf, free, || self.is_kept(&held));
        kept.err().map_or(0, |free| self.evict(upstream, &free))
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

    /// Owners that are gone but for us. They are asked about under the lock, as another thread that found out the same
    /// would let go of them.
    fn drop_abandoned(&self, upstream: &U) {
        let gone: Vec<Space_<U>> = {
            let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
            let mut times: Vec<(usize, usize)> = Vec::new();
            for space in spaces.iter() {
                match times.iter_mut().find(|(owner, _)| *owner == space.place.owner) {
                    Some((_, times)) => *times += 1,
                    None => times.push((space.place.owner, 1)),
                }
            }
            times.retain(|&(owner, times)| upstream.is_abandoned(owner, times));
            let (gone, kept) = spaces
                .drain(..)
                .partition(|space| times.iter().any(|&(owner, _)| owner == space.place.owner));
            *spaces = kept;
            gone
        };
        for space in gone {
            self.retire(upstream, &space);
        }
    }

    /// Ends a space that is in the list no more: what is cached goes back, and so does its owner, with the last thread that
    /// is busy with a block of it.
    fn retire(&self, upstream: &U, space: &Space<U::Fence>) {
        if let Some(_visit) = Visit::new(upstream, space) {
            space.visits.close();
            for free in space.drain() {
                self.evict(upstream, &free);
            }
        }
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

    /// The reserve is about to grow beyond what the program's peak justifies, by `excess`: gives rested blocks back
    /// instead, or waits for one on the same shelf, so that a host running ahead of its kernels does not blow the pool
    /// up. A block to use, if one was waited for.
    fn hold_back(
        &self,
        upstream: &U,
        account: &Account,
        (space, shelf): (&Space_<U>, usize),
        excess: u64,
    ) -> Option<Free<U::Fence>> {
        if excess == 0 {
            return None;
        }
        let own = account_of(&space.place);
        let trimmed = self.trim_spaces(upstream, excess, Trim::Rested, |place| account_of(place) == own);
        if trimmed >= excess || account.reading().cached_bytes == 0 {
            return None;
        }
        let visit = Visit::new(upstream, space)?;
        if let Some(free) = space.take_oldest(shelf) {
            if free.fence.as_ref().is_none_or(|fence| upstream.wait(fence)) {
                return Some(free);
            }
            self.put_back(upstream, space, shelf, free);
            return None;
        }
        drop(visit);
        // Other sizes wait for the same work; what comes to rest first makes room.
        let oldest = self.spaces().into_iter().filter(|space| account_of(&space.place) == own);
        let oldest = oldest.flat_map(|space| {
            let oldest = space.oldest();
            oldest.into_iter().map(move |(since, shelf)| (since, space.clone(), shelf))
        });
        if let Some((_, space, shelf)) = oldest.min_by_key(|&(since, ..)| since)
            && let Some(_visit) = Visit::new(upstream, &space)
            && let Some(free) = space.take_oldest(shelf)
        {
            let rested = free.fence.as_ref().is_none_or(|fence| upstream.wait(fence));
            self.put_back(upstream, &space, shelf, free);
            if rested {
                self.trim_spaces(upstream, excess, Trim::Rested, |place| account_of(place) == own);
            }
        }
        None
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

    /// A block is upstream's business again.
    fn forget(&self, held: &Held<U::Fence>) {
        let account = self.account(&held.place);
        self.both(account, |a| a.give_up(held.bytes));
        match held.asked.swap(FORGOTTEN, Ordering::AcqRel) {
            FREE | FORGOTTEN => {}
            asked => self.both(account, |a| a.unused(asked)),
        }
    }

    fn give(&self, upstream: &U, held: &Arc<Held<U::Fence>>) -> Result<(), U::Refusal> {
        // Out of the map first: upstream may hand the address out again before the call returns. If it is not there any
        // more, the pool has been closed meanwhile, and the block is off the accounts already.
        let ours = self.held.remove(held.address).is_some();
        let given = upstream.give(&held.place, held.address);
        match given {
            Ok(()) if ours => self.both(self.account(&held.place), |a| a.give_up(held.bytes)),
            Err(_) if ours => drop(self.held.insert(held.clone())),
            _ => {}
        }
        given
    }

    /// Gives a free block back; the bytes that went.
    fn evict(&self, upstream: &U, free: &Free<U::Fence>) -> u64 {
        let (bytes, account) = (free.held.bytes, self.account(&free.held.place));
        self.both(account, |a| a.uncached(bytes));
        match self.give(upstream, &free.held) {
            Ok(()) => bytes,
            // It is on no shelf any more and stays reserved: lost, but nobody else's.
            Err(_) => 0,
        }
    }

    fn drain(&self, upstream: &U, space: &Space<U::Fence>) -> u64 {
        let Some(_visit) = Visit::new(upstream, space) else { return 0 };
        space.drain().iter().map(|free| self.evict(upstream, free)).sum()
    }

    fn trim_spaces(&self, upstream: &U, wanted: u64, which: Trim, of: impl Fn(&Place) -> bool) -> u64 {
        let mut oldest: Vec<(u64, Space_<U>, usize)> = Vec::new();
        for space in self.spaces().into_iter().filter(|space| of(&space.place)) {
            oldest.extend(space.oldest().into_iter().map(|(since, shelf)| (since, space.clone(), shelf)));
        }
        let mut gone = 0;
        while gone < wanted {
            let next = oldest.iter().enumerate().min_by_key(|(_, entry)| entry.0).map(|(n, _)| n);
            let Some(at) = next else { break };
            let (_, space, shelf) = oldest.swap_remove(at);
            let Some(visit) = Visit::new(upstream, &space) else { continue };
            let Some(free) = space.take_oldest(shelf) else { continue };
            let rested = which == Trim::All || free.fence.as_ref().is_none_or(|fence| upstream.passed(fence));
            if !rested {
                gone += self.put_back(upstream, &space, shelf, free);
                continue;
            }
            let bytes = self.evict(upstream, &free);
            if bytes > 0 {
                self.both(self.account(&free.held.place), Account::trimmed);
            }
            gone += bytes;
            drop(visit);
            let next = space.oldest().into_iter().find(|&(_, n)| n == shelf);
            oldest.extend(next.map(|(since, shelf)| (since, space, shelf)));
        }
        gone
    }
}

/// The account that a place's blocks are on. Host memory takes no room on a device.
fn account_of(place: &Place) -> usize {
    if place.kind == Kind::Host { DeviceId::NONE.index() } else { place.device.index() }
}

#[cfg(all(test, not(loom)))]
#[path = "pool/tests.rs"]
mod tests;
