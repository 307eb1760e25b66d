//! What goes back to upstream: to make room, when nobody wants it kept any more, and with its owner.
//!
//! Whoever has a free block in hand here is on a [`Visit`], so that its owner outlives it.

use std::sync::{Arc, PoisonError};

use super::account::Account;
use super::shelf::{End, Free, Held, Space};
use super::upstream::{Place, Upstream};
use super::visits::Visit;
use super::{Pool, Space_, Trim, account_of};
use crate::kind::DeviceId;

impl<U: Upstream> Pool<U> {
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

    /// Gives back what is cached beyond the limit of a device.
    pub fn fit(&self, upstream: &U, device: DeviceId) {
        let Some(limit) = self.limit(device) else { return };
        let over = self.reading(device).reserved_bytes.saturating_sub(limit);
        if over > 0 {
            self.trim(upstream, Some(device), over, Trim::All);
        }
    }

    /// Puts a block back on its shelf that was looked at, or gives it back if it is not to be kept any more; the bytes that
    /// went.
    fn put_back(&self, upstream: &U, space: &Space<U::Fence>, shelf: usize, free: Free<U::Fence>) -> u64 {
        let held = free.held.clone();
        let kept = space.keep(shelf, free, End::Oldest, || self.is_kept(&held));
        kept.err().map_or(0, |free| self.evict(upstream, &free))
    }

    /// Owners that are gone but for us. They are asked about under the lock, as another thread that found out the same
    /// would let go of them.
    pub(super) fn drop_abandoned(&self, upstream: &U) {
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
            self.evict_all(upstream, space);
        }
    }

    /// The reserve is about to grow beyond what the program's peak justifies, by `excess`: gives rested blocks back
    /// instead, or waits for one on the same shelf, so that a host running ahead of its kernels does not blow the pool
    /// up. A block to use, if one was waited for.
    pub(super) fn hold_back(
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

    pub(super) fn give(&self, upstream: &U, held: &Arc<Held<U::Fence>>) -> Result<(), U::Refusal> {
        // Out of the map first: upstream may hand the address out again before the call returns. If it is not there any
        // more, the pool has been closed meanwhile, and the block is off the accounts already.
        let ours = self.held.remove(held.address).is_some();
        let given = upstream.give(&held.place, held.address);
        match given {
            Ok(()) if ours => self.given_up(held),
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
        Visit::new(upstream, space).map_or(0, |_visit| self.evict_all(upstream, space))
    }

    /// Gives back all that is free in a space; the bytes that went. The caller has come in.
    fn evict_all(&self, upstream: &U, space: &Space<U::Fence>) -> u64 {
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
