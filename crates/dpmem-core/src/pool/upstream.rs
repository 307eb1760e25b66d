//! What the pool stands on: who hands out memory, and who knows when freed memory is at rest.

use crate::kind::{DeviceId, Kind};

/// What two blocks must have in common for one to take the other's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The context they belong to, opaque here.
    pub owner: usize,
    /// The device as upstream names it, opaque here; a sub-device differs from its root.
    pub handle: usize,
    /// The root device, for the account.
    pub device: DeviceId,
    /// Their kind.
    pub kind: Kind,
    /// The alignment asked for.
    pub align: u32,
}

/// Where the pool takes memory from and gives it back to.
///
/// # Contract
/// The pool hands a freed block out again only if [`Upstream::fence`] answered `None` when it was freed, or
/// [`Upstream::passed`] or [`Upstream::wait`] has answered true for the fence since. It calls [`Upstream::rested`] once
/// in between.
pub trait Upstream {
    /// A moment in each queue that may still use a block.
    type Fence: Send + Sync;
    /// Why upstream refused.
    type Refusal: Copy;

    /// Takes a block.
    ///
    /// # Errors
    /// Upstream's own reason.
    fn take(&self, place: &Place, bytes: u64) -> Result<usize, Self::Refusal>;
    /// Gives a block back.
    ///
    /// # Errors
    /// Upstream's own reason; the block is then still there.
    fn give(&self, place: &Place, address: usize) -> Result<(), Self::Refusal>;
    /// What has to pass before a block of that size that is freed now is at rest; `None` if it is at rest.
    fn fence(&self, place: &Place, bytes: u64) -> Option<Self::Fence>;
    /// Whether a fence has passed; never waits.
    fn passed(&self, fence: &Self::Fence) -> bool;
    /// Waits for a fence, for a bounded time; whether it has passed.
    fn wait(&self, fence: &Self::Fence) -> bool;
    /// A block has come to rest and may be handed out again.
    fn rested(&self, address: usize, bytes: u64) {
        let _ = (address, bytes);
    }
    /// Keeps an owner alive while blocks of it may be cached.
    fn retain(&self, owner: usize);
    /// Ends [`Upstream::retain`].
    fn release(&self, owner: usize);
    /// Whether nobody but the pool, which has retained it `times`, keeps an owner alive.
    fn is_abandoned(&self, owner: usize, times: usize) -> bool;
}
