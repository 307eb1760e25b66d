//! A table that only grows: an index stays valid, reading takes no lock, entries never move.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

const CHUNK: usize = 256;
const CHUNKS: usize = 256;

/// How many entries one table holds.
pub(crate) const CAPACITY: usize = CHUNK * CHUNKS;

/// Places for [`CHUNK`] entries.
type Chunk<T> = Box<[OnceLock<T>]>;

/// Entries in chunks that are allocated as they are needed.
pub(crate) struct AppendTable<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    len: AtomicUsize,
    append: Mutex<()>,
    capacity: usize,
}

impl<T> AppendTable<T> {
    /// An empty table for at most `capacity` entries.
    pub(crate) fn new(capacity: usize) -> Self {
        AppendTable {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            append: Mutex::new(()),
            capacity: capacity.min(CAPACITY),
        }
    }

    /// Adds an entry and returns its index, or gives it back when the table is full.
    pub(crate) fn push(&self, value: T) -> Result<usize, T> {
        let _appending = crate::sync::lock_std(&self.append);
        let index = self.len.load(Ordering::Relaxed);
        if index >= self.capacity {
            return Err(value);
        }
        let chunk = self.chunks[index / CHUNK].get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        chunk[index % CHUNK].set(value)?;
        self.len.store(index + 1, Ordering::Release);
        Ok(index)
    }

    /// Whether there is no room left.
    pub(crate) fn is_full(&self) -> bool {
        self.len.load(Ordering::Acquire) >= self.capacity
    }

    /// The entry at `index`, if it has been added.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get()?[index % CHUNK].get()
    }

    /// All entries, in the order they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        (0..self.len.load(Ordering::Acquire)).filter_map(|index| Some((index, self.get(index)?)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn indices_stay_valid_across_chunks() {
        let table = AppendTable::new(CHUNK * 2 + 1);
        for value in 0..CHUNK * 2 + 1 {
            assert_eq!(table.push(value), Ok(value));
        }
        assert!(table.is_full());
        assert_eq!(table.push(7), Err(7), "a full table gives the entry back");
        assert!(table.iter().all(|(index, &value)| index == value));
        assert_eq!(table.get(CHUNK * 2 + 1), None);
    }
}
