//! Blocks of USM in use, of both drivers, found by any address inside them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::system::Mapping;

/// Who may use a block, in the words of USM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In the host's memory; of no device.
    Host,
    /// In a device's memory.
    Device,
    /// Moves between both.
    Shared,
}

/// What a block is made of.
pub enum Backing {
    /// Our own mapping.
    Own(Mapping),
    /// The CPU runtime's own allocation, so that it frees as that does.
    Runtime,
}

/// A block.
pub struct Block {
    /// Its size, as asked for.
    pub bytes: usize,
    /// Its kind.
    pub kind: Kind,
    /// Whose memory it takes.
    pub device: Option<&'static Device>,
    /// The context that it was made in.
    pub context: usize,
    /// What it is made of.
    pub backing: Backing,
}

static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());
static HOST: AtomicU64 = AtomicU64::new(0);

/// Files a block, whose room is reserved.
pub fn add(address: usize, block: Block) {
    if block.device.is_none() {
        HOST.fetch_add(block.bytes as u64, Ordering::SeqCst);
    }
    lock().insert(address, block);
}

/// Takes the block that begins there out; `None` if there is none. Its room is taken until it is released.
pub fn take(address: usize) -> Option<Block> {
    lock().remove(&address)
}

/// Puts a block back that was taken out and could not be freed.
pub fn put_back(address: usize, block: Block) {
    lock().insert(address, block);
}

impl Block {
    /// Gives the room of a block back that was taken out.
    pub fn release(&self) {
        match self.device {
            Some(device) => device.release(self.bytes as u64),
            None => {
                HOST.fetch_sub(self.bytes as u64, Ordering::SeqCst);
            }
        }
    }
}

/// Looks at the block that an address points into, with its start.
pub fn find<T>(address: usize, look: impl FnOnce(usize, &Block) -> T) -> Option<T> {
    let blocks = lock();
    let (&start, block) = blocks.range(..=address).next_back()?;
    (address - start < block.bytes).then(|| look(start, block))
}

/// Bytes of host allocations.
pub fn host_bytes() -> u64 {
    HOST.load(Ordering::SeqCst)
}

fn lock() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_inside_finds_the_block() {
        let (mapping, start) = Mapping::new(100, 64).expect("there is memory");
        let block =
            Block { bytes: 100, kind: Kind::Host, device: None, context: 1, backing: Backing::Own(mapping) };
        let before = host_bytes();
        add(start, block);
        assert_eq!(host_bytes(), before + 100);
        assert_eq!(find(start + 99, |found, block| (found, block.kind)), Some((start, Kind::Host)));
        assert!(find(start + 100, |_, _| ()).is_none());
        assert!(take(start + 1).is_none(), "only the start frees");
        let block = take(start).expect("it is there");
        assert_eq!(host_bytes(), before + 100, "it isn't free yet");
        put_back(start, block);
        take(start).expect("it is there again").release();
        assert_eq!(host_bytes(), before);
    }
}
