//! Every block that the pool has taken from upstream, by its address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rustc_hash::FxBuildHasher;

use super::shelf::Held;
use crate::sync::lock_std as lock;

const SHARDS: usize = 64;

type Shard<F> = Mutex<HashMap<usize, Arc<Held<F>>, FxBuildHasher>>;

pub(super) struct HeldMap<F> {
    shards: [Shard<F>; SHARDS],
}

impl<F> HeldMap<F> {
    pub(super) fn new() -> Self {
        HeldMap { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    /// The block that was there before, if there was one.
    pub(super) fn insert(&self, held: Arc<Held<F>>) -> Option<Arc<Held<F>>> {
        lock(self.shard(held.address)).insert(held.address, held)
    }

    pub(super) fn get(&self, address: usize) -> Option<Arc<Held<F>>> {
        lock(self.shard(address)).get(&address).cloned()
    }

    pub(super) fn remove(&self, address: usize) -> Option<Arc<Held<F>>> {
        lock(self.shard(address)).remove(&address)
    }

    /// Forgets all blocks.
    pub(super) fn drain(&self) -> Vec<Arc<Held<F>>> {
        self.shards.iter().flat_map(|shard| std::mem::take(&mut *lock(shard)).into_values()).collect()
    }

    fn shard(&self, address: usize) -> &Shard<F> {
        &self.shards[(address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) % SHARDS]
    }
}
