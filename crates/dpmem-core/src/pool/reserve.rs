//! What is held from upstream for one device, and the limit on it, in a form that other processes may read.

use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::sync::AtomicU64;

/// What is reserved on one device. All zero is nothing, and no limit; the layout is fixed because other processes may
/// read it ([`crate::UsageMap`]).
#[repr(C)]
pub struct ReserveRow {
    reserved: AtomicU64,
    peak: AtomicU64,
    /// The limit plus one; 0 for none.
    limit: AtomicU64,
}

/// A [`ReserveRow`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Held from upstream.
    pub bytes: u64,
    /// The most ever held.
    pub peak_bytes: u64,
    /// The limit, if there is one.
    pub limit_bytes: Option<u64>,
}

impl ReserveRow {
    pub(crate) fn new() -> Self {
        ReserveRow { reserved: AtomicU64::new(0), peak: AtomicU64::new(0), limit: AtomicU64::new(0) }
    }

    pub(super) fn add(&self, bytes: u64) {
        let reserved = self.reserved.fetch_add(bytes, Relaxed) + bytes;
        super::account::raise(&self.peak, reserved);
    }

    pub(super) fn sub(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.reserved.load(Relaxed)
    }

    pub(super) fn start_peak_anew(&self) {
        self.peak.store(self.bytes(), Relaxed);
        // Of what another thread has reserved since that was read.
        super::account::raise(&self.peak, self.bytes());
    }

    /// The limit; the largest number there is for none.
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Relaxed).wrapping_sub(1)
    }

    /// Sets the limit; the largest number there is for none.
    pub(super) fn set_limit(&self, limit: u64) {
        self.limit.store(limit.wrapping_add(1), Release);
    }

    pub(super) fn reading(&self) -> Reserve {
        let words = [&self.reserved, &self.peak, &self.limit];
        Reserve::of(words.map(|word| word.load(Relaxed)))
    }

    /// Gives each word with its place.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn put(&self, mut put: impl FnMut(usize, u64)) {
        put(std::mem::offset_of!(ReserveRow, reserved), self.reserved.load(Relaxed));
        put(std::mem::offset_of!(ReserveRow, peak), self.peak.load(Relaxed));
        put(std::mem::offset_of!(ReserveRow, limit), self.limit.load(Relaxed));
    }

    /// What is reserved, as another process sees it: from a copy of the bytes of a `ReserveRow`. `None` if there are too
    /// few.
    #[cfg(not(loom))]
    pub(crate) fn decoded(copy: &[u8]) -> Option<Reserve> {
        use std::mem::offset_of;

        let places =
            [offset_of!(ReserveRow, reserved), offset_of!(ReserveRow, peak), offset_of!(ReserveRow, limit)];
        let mut words = [0; 3];
        for (word, at) in words.iter_mut().zip(places) {
            *word = u64::from_le_bytes(copy.get(at..at + 8)?.try_into().ok()?);
        }
        Some(Reserve::of(words))
    }
}

impl Reserve {
    fn of([bytes, peak_bytes, limit]: [u64; 3]) -> Self {
        Reserve { bytes, peak_bytes, limit_bytes: limit.checked_sub(1) }
    }
}
