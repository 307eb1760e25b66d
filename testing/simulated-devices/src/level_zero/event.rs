//! Events and fences: something that is signalled once, can be waited for, and knows when it happened.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::abi::{ze_kernel_timestamp_data_t, ze_kernel_timestamp_result_t};
use super::device::{now_ns, ticks};
use super::{NOT_READY, Outcome, SUCCESS, created, destroyed};

/// A pool of events; each event is a box of its own.
pub struct Pool(#[allow(dead_code)] usize);

#[derive(Clone, Copy, Default)]
struct State {
    signalled: bool,
    begun_ns: u64,
    ended_ns: u64,
}

/// An event or a fence.
pub struct Event {
    pool: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Event {
    fn new(pool: usize) -> Self {
        Self { pool, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The work that will signal it begins.
    pub fn begin(&self) {
        self.lock().begun_ns = now_ns();
    }

    pub fn signal(&self) {
        let mut state = self.lock();
        state.ended_ns = now_ns();
        if state.begun_ns == 0 {
            state.begun_ns = state.ended_ns;
        }
        state.signalled = true;
        self.changed.notify_all();
    }

    pub fn reset(&self) {
        *self.lock() = State::default();
    }

    /// Waits at most so long; whether it is signalled.
    pub fn wait(&self, timeout_ns: u64) -> bool {
        /// Longer than any test runs; the clock can't add the longest wait that can be asked for.
        const FOREVER: Duration = Duration::from_secs(24 * 3600);
        let deadline = Instant::now() + Duration::from_nanos(timeout_ns).min(FOREVER);
        let mut state = self.lock();
        while !state.signalled {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// When its work began and ended.
    pub fn times(&self) -> ze_kernel_timestamp_result_t {
        let state = *self.lock();
        let begun = ticks(state.begun_ns);
        // A profile in which nothing takes any time looks as if there were none.
        let span = ze_kernel_timestamp_data_t {
            kernelStart: begun,
            kernelEnd: ticks(state.ended_ns).max(begun + 1),
        };
        ze_kernel_timestamp_result_t { global: span, context: span }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventPoolCreate(
    context: usize,
    _desc: *const c_void,
    _count: u32,
    _devices: *const c_void,
    into: &mut *mut Pool,
) -> Outcome {
    created(into, Pool(context))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventPoolDestroy(pool: *mut Pool) -> Outcome {
    destroyed(pool)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventCreate(pool: usize, _desc: *const c_void, into: &mut *mut Event) -> Outcome {
    created(into, Event::new(pool))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventDestroy(event: *mut Event) -> Outcome {
    destroyed(event)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventGetEventPool(event: &Event, pool: &mut usize) -> Outcome {
    *pool = event.pool;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventHostSignal(event: &Event) -> Outcome {
    event.signal();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventHostReset(event: &Event) -> Outcome {
    event.reset();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventHostSynchronize(event: &Event, timeout_ns: u64) -> Outcome {
    if event.wait(timeout_ns) { SUCCESS } else { NOT_READY }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventQueryStatus(event: &Event) -> Outcome {
    zeEventHostSynchronize(event, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeEventQueryKernelTimestamp(
    event: &Event,
    it: &mut ze_kernel_timestamp_result_t,
) -> Outcome {
    *it = event.times();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeFenceCreate(_queue: usize, _desc: *const c_void, into: &mut *mut Event) -> Outcome {
    created(into, Event::new(0))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeFenceDestroy(fence: *mut Event) -> Outcome {
    destroyed(fence)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeFenceHostSynchronize(fence: &Event, timeout_ns: u64) -> Outcome {
    zeEventHostSynchronize(fence, timeout_ns)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeFenceQueryStatus(fence: &Event) -> Outcome {
    zeEventHostSynchronize(fence, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeFenceReset(fence: &Event) -> Outcome {
    zeEventHostReset(fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wakes_whoever_waits() {
        let event = Event::new(0);
        assert!(!event.wait(0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| event.wait(u64::MAX));
            event.signal();
            assert!(waiting.join().expect("no panic"));
        });
        let span = event.times().global;
        assert!(span.kernelStart < span.kernelEnd);
        event.reset();
        assert!(!event.wait(1000));
    }
}
