//! The blocks in use, found by any address inside them.
//!
//! Blocks are filed by the region of the address space they start in, and regions are spread over shards, each with a
//! lock of its own, so that threads seldom meet. Large blocks would span many small regions, so there are four levels
//! of region sizes and a block is filed on the first whose regions are no smaller than itself: it then lies in its own
//! region or reaches into the next, and a look-up by an inner address has two regions to look at on each level.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::kind::{DeviceId, Kind};
use crate::site::SiteId;
use crate::sync::lock_std as lock;

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its size as it was asked for.
    pub bytes: u64,
    /// The site that allocated it.
    pub site: SiteId,
    /// Its device.
    pub device: DeviceId,
    /// Its kind.
    pub kind: Kind,
    /// Place of its allocation among all allocations of the ledger.
    pub sequence: u64,
}

const SHARDS: usize = 64;
const LEVEL_BITS: [u32; 4] = [20, 26, 32, 63];

struct Level {
    bits: u32,
    len: AtomicUsize,
    shards: [Mutex<BTreeMap<usize, Block>>; SHARDS],
}

impl Level {
    fn shard(&self, region: usize) -> &Mutex<BTreeMap<usize, Block>> {
        &self.shards[(region.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) % SHARDS]
    }

    fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }
}

/// All blocks in use, by address.
pub struct BlockMap {
    levels: [Level; 4],
}

impl Default for BlockMap {
    fn default() -> Self {
        BlockMap {
            levels: LEVEL_BITS.map(|bits| Level {
                bits,
                len: AtomicUsize::new(0),
                shards: std::array::from_fn(|_| Mutex::new(BTreeMap::new())),
            }),
        }
    }
}

impl BlockMap {
    /// Files a block. Returns the block that was filed at that very address, if there was one.
    pub fn insert(&self, base: usize, block: Block) -> Option<Block> {
        let replaced = self.remove(base);
        let level = self.level_for(block.bytes);
        lock(level.shard(base >> level.bits)).insert(base, block);
        level.len.fetch_add(1, Relaxed);
        replaced
    }

    /// Takes out the block that starts at `base`.
    pub fn remove(&self, base: usize) -> Option<Block> {
        self.levels.iter().filter(|level| !level.is_empty()).find_map(|level| {
            let block = lock(level.shard(base >> level.bits)).remove(&base)?;
            level.len.fetch_sub(1, Relaxed);
            Some(block)
        })
    }

    /// The block that contains `address`, and where it starts.
    pub fn find(&self, address: usize) -> Option<(usize, Block)> {
        self.levels.iter().filter(|level| !level.is_empty()).find_map(|level| {
            let region = address >> level.bits;
            [Some(region), region.checked_sub(1)].into_iter().flatten().find_map(|region| {
                let blocks = lock(level.shard(region));
                let (&base, &block) = blocks.range(..=address).next_back()?;
                let inside = (address - base) as u64;
                (inside < block.bytes || inside == 0).then_some((base, block))
            })
        })
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.levels.iter().map(|level| level.len.load(Relaxed)).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All blocks with their addresses, in no order. Each shard is read at a moment of its own.
    pub fn to_vec(&self) -> Vec<(usize, Block)> {
        let mut blocks = Vec::with_capacity(self.len());
        for shard in self.levels.iter().flat_map(|level| &level.shards) {
            blocks.extend(lock(shard).iter().map(|(&base, &block)| (base, block)));
        }
        blocks
    }

    fn level_for(&self, bytes: u64) -> &Level {
        let fits = self.levels.iter().find(|level| bytes <= 1 << level.bits);
        fits.unwrap_or(&self.levels[LEVEL_BITS.len() - 1])
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::site::{SiteKey, SiteTable};
    use crate::stack::{Origin, StackId};

    fn block(bytes: u64, sequence: u64) -> Block {
        let stack = StackId::origin(Origin::RuntimeThread);
        let key = SiteKey { kind: Kind::Device, device: DeviceId::new(1), stack };
        Block {
            bytes,
            site: SiteTable::new(1).intern(key),
            device: DeviceId::new(1),
            kind: Kind::Device,
            sequence,
        }
    }

    #[test]
    fn inner_addresses_find_their_block() {
        let map = BlockMap::default();
        let big = 40 << 30;
        map.insert(0x10_0000 - 64, block(128, 0));
        map.insert(0x7000_0000_0000, block(big, 1));
        assert_eq!(
            map.find(0x10_0000 + 63).map(|(base, _)| base),
            Some(0x10_0000 - 64),
            "across a region's edge"
        );
        assert_eq!(map.find(0x10_0000 + 64), None, "one past the end");
        assert_eq!(map.find(0x7000_0000_0000 + big as usize - 1).map(|(_, b)| b.sequence), Some(1));
        assert_eq!(map.remove(0x7000_0000_0000 + 8), None, "only its start frees a block");
        assert!(map.remove(0x7000_0000_0000).is_some());
        assert_eq!(map.len(), 1);
    }

    #[test]
    fn an_address_holds_one_block_whatever_its_size() {
        let map = BlockMap::default();
        map.insert(0x10_0000, block(64, 0));
        assert_eq!(map.insert(0x10_0000, block(1 << 30, 1)).map(|b| b.sequence), Some(0));
        assert_eq!((map.len(), map.remove(0x10_0000).map(|b| b.sequence)), (1, Some(1)));
    }

    #[test]
    fn an_empty_block_is_found_by_its_address() {
        let map = BlockMap::default();
        map.insert(0x1000, block(0, 0));
        assert!(map.find(0x1000).is_some());
        assert!(map.find(0x1001).is_none());
        assert!(map.remove(0x1000).is_some());
    }

    proptest! {
        /// Against a naive model: disjoint blocks of all sizes, looked up at their edges and inside.
        #[test]
        fn agrees_with_a_plain_map(sizes in prop::collection::vec(0u64..(1 << 34), 1..60), drop_every in 2usize..5) {
            let map = BlockMap::default();
            let mut model = HashMap::new();
            let mut base = 0x1_0000usize;
            for (n, &bytes) in sizes.iter().enumerate() {
                let bytes = bytes >> (n % 5 * 7);
                map.insert(base, block(bytes, n as u64));
                model.insert(base, (bytes, n as u64));
                base += bytes as usize + 64;
            }
            for (n, (base, _)) in model.clone().into_iter().enumerate() {
                if n % drop_every == 0 {
                    let expected = model.remove(&base);
                    prop_assert_eq!(map.remove(base).map(|b| (b.bytes, b.sequence)), expected);
                    prop_assert_eq!(map.find(base), None);
                }
            }
            for (&base, &(bytes, sequence)) in &model {
                for inside in [0, bytes / 2, bytes.saturating_sub(1)] {
                    let found = map.find(base + inside as usize).map(|(start, b)| (start, b.sequence));
                    prop_assert_eq!(found, Some((base, sequence)));
                }
                prop_assert_eq!(map.find(base + bytes as usize + 1), None);
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(map.to_vec().len(), model.len());
        }
    }
}
