//! The synchronisation primitives, so that loom can stand in for them in model tests (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
pub(crate) use portable_atomic::AtomicU128;
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, atomic::AtomicU64};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic::AtomicU64};

/// A model of the 128-bit atomic: loom has none, so one lock makes each operation a single step.
#[cfg(loom)]
pub(crate) struct AtomicU128(loom::sync::Mutex<u128>);

#[cfg(loom)]
impl AtomicU128 {
    pub(crate) fn new(value: u128) -> Self {
        AtomicU128(loom::sync::Mutex::new(value))
    }

    pub(crate) fn load(&self, _order: std::sync::atomic::Ordering) -> u128 {
        *lock(&self.0)
    }

    pub(crate) fn compare_exchange_weak(
        &self,
        current: u128,
        new: u128,
        _success: std::sync::atomic::Ordering,
        _failure: std::sync::atomic::Ordering,
    ) -> Result<u128, u128> {
        let mut value = lock(&self.0);
        if *value == current {
            *value = new;
            Ok(current)
        } else {
            Err(*value)
        }
    }
}

/// The same for the locks that the model leaves out.
pub(crate) fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks, also after a panic elsewhere: every guarded value is plain counters that stay usable.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
