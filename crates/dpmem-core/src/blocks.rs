//! The blocks in use, found by any address inside them.
//!
//! Blocks are filed by the region of the address space they start in, and regions are spread over shards, each with a
//! lock of its own, so that threads seldom meet. Large blocks would span many small regions, so there are four levels
//! of region sizes and a block is filed on the first whose regions are no smaller than itself: it then lies in its own
//! region or reaches into the next, and a look-up by an inner address has two regions to look at on each level.

use std::collections::BTreeMap;
use std::sync::Mutex;

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
    /// When it was allocated, in ticks.
    pub since: u64,
}

const SHARDS: usize = 64;
const LEVEL_BITS: [u32; 4] = [20, 26, 32, 63];

struct Level {
    bits: u32,
    shards: [Mutex<Shard>; SHARDS],
}

/// The blocks of some regions, by address. Most shards hold a handful, and then a sorted list costs a third of a tree.
enum Shard {
    Few(Vec<(usize, Block)>),
    Many(BTreeMap<usize, Block>),
}

/// A list longer than this becomes a tree.
const FEW: usize = 48;

impl Shard {
    fn insert(&mut self, base: usize, block: Block) -> Option<Block> {
        match self {
            Shard::Few(blocks) => match blocks.binary_search_by_key(&base, |&(base, _)| base) {
                Ok(at) => Some(std::mem::replace(&mut blocks[at].1, block)),
                Err(at) if blocks.len() < FEW => {
                    blocks.insert(at, (base, block));
                    None
                }
                Err(_) => {
                    let mut tree: BTreeMap<_, _> = std::mem::take(blocks).into_iter().collect();
                    tree.insert(base, block);
                    *self = Shard::Many(tree);
                    None
                }
            },
            Shard::Many(blocks) => blocks.insert(base, block),
        }
    }

    fn remove(&mut self, base: usize) -> Option<Block> {
        match self {
            Shard::Few(blocks) => {
                let at = blocks.binary_search_by_key(&base, |&(base, _)| base).ok()?;
                Some(blocks.remove(at).1)
            }
            Shard::Many(blocks) => blocks.remove(&base),
        }
    }

    /// The last block that starts at `address` or before.
    fn at_or_before(&self, address: usize) -> Option<(usize, Block)> {
        match self {
            Shard::Few(blocks) => {
                let after = blocks.partition_point(|&(base, _)| base <= address);
                blocks.get(after.checked_sub(1)?).copied()
            }
            Shard::Many(blocks) => blocks.range(..=address).next_back().map(|(&base, &block)| (base, block)),
        }
    }

    fn append_to(&self, all: &mut Vec<(usize, Block)>) {
        match self {
            Shard::Few(blocks) => all.extend(blocks),
            Shard::Many(blocks) => all.extend(blocks.iter().map(|(&base, &block)| (base, block))),
        }
    }
}

impl Level {
    fn shard(&self, region: usize) -> &Mutex<Shard> {
        &self.shards[(region.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) % SHARDS]
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
                shards: std::array::from_fn(|_| Mutex::new(Shard::Few(Vec::new()))),
            }),
        }
    }
}

impl BlockMap {
    /// Files a block. Returns the block that was filed at that address among those of about its size, if there was one.
    pub fn insert(&self, base: usize, block: Block) -> Option<Block> {
        let level = self.level_for(block.bytes);
        lock(level.shard(base >> level.bits)).insert(base, block)
    }

    /// Takes out the block that starts at `base`.
    pub fn remove(&self, base: usize) -> Option<Block> {
        self.levels.iter().find_map(|level| lock(level.shard(base >> level.bits)).remove(base))
    }

    /// The block that contains `address`, and where it starts.
    pub fn find(&self, address: usize) -> Option<(usize, Block)> {
        self.levels.iter().find_map(|level| {
            let region = address >> level.bits;
            [Some(region), region.checked_sub(1)].into_iter().flatten().find_map(|region| {
                let (base, block) = lock(level.shard(region)).at_or_before(address)?;
                let inside = (address - base) as u64;
                (inside < block.bytes || inside == 0).then_some((base, block))
            })
        })
    }

    /// All blocks with their addresses, in no order. Each shard is read at a moment of its own.
    pub fn to_vec(&self) -> Vec<(usize, Block)> {
        let mut all = Vec::new();
        for shard in self.levels.iter().flat_map(|level| &level.shards) {
            lock(shard).append_to(&mut all);
        }
        all
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

    fn block(bytes: u64, since: u64) -> Block {
        let stack = StackId::origin(Origin::RuntimeThread);
        let key = SiteKey { kind: Kind::Device, device: DeviceId::new(1), stack };
        Block {
            bytes,
            site: SiteTable::new(1).intern(key),
            device: DeviceId::new(1),
            kind: Kind::Device,
            since,
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
        assert_eq!(map.find(0x7000_0000_0000 + big as usize - 1).map(|(_, b)| b.since), Some(1));
        assert_eq!(map.remove(0x7000_0000_0000 + 8), None, "only its start frees a block");
        assert!(map.remove(0x7000_0000_0000).is_some());
        assert_eq!(map.to_vec().len(), 1);
    }

    #[test]
    fn an_address_holds_one_block() {
        let map = BlockMap::default();
        map.insert(0x10_0000, block(64, 0));
        assert_eq!(map.insert(0x10_0000, block(128, 1)).map(|b| b.since), Some(0));
        assert_eq!(map.to_vec().len(), 1);
    }

    #[test]
    fn an_empty_block_is_found_by_its_address() {
        let map = BlockMap::default();
        map.insert(0x1000, block(0, 0));
        assert!(map.find(0x1000).is_some());
        assert!(map.find(0x1001).is_none());
        assert!(map.remove(0x1000).is_some());
    }

    #[test]
    fn a_crowded_shard_keeps_its_blocks() {
        let map = BlockMap::default();
        for n in 0..3 * FEW {
            map.insert(0x10_0000 + n * 64, block(64, n as u64));
        }
        assert_eq!(map.find(0x10_0000 + 100 * 64 + 9).map(|(_, b)| b.since), Some(100));
        for n in 0..3 * FEW {
            assert_eq!(map.remove(0x10_0000 + n * 64).map(|b| b.since), Some(n as u64));
        }
        assert!(map.to_vec().is_empty());
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
                    prop_assert_eq!(map.remove(base).map(|b| (b.bytes, b.since)), expected);
                    prop_assert_eq!(map.find(base), None);
                }
            }
            for (&base, &(bytes, sequence)) in &model {
                for inside in [0, bytes / 2, bytes.saturating_sub(1)] {
                    let found = map.find(base + inside as usize).map(|(start, b)| (start, b.since));
                    prop_assert_eq!(found, Some((base, sequence)));
                }
                prop_assert_eq!(map.find(base + bytes as usize + 1), None);
            }
            prop_assert_eq!(map.to_vec().len(), model.len());
        }
    }
}
