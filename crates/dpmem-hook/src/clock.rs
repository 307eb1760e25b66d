//! Time on the hook path.
//!
//! The processor's time-stamp counter is read where it runs at a constant rate; its frequency is never measured:
//! [`Clock`] keeps a pair of readings from its start, and a second pair at the time of asking gives the rate exactly.

use std::arch::x86_64::{__cpuid, _rdtsc};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

/// The time in ticks: of the time-stamp counter, or nanoseconds where that counter is of no use.
#[inline]
pub fn ticks() -> u64 {
    if has_constant_counter() {
        // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
        unsafe { _rdtsc() }
    } else {
        nanoseconds()
    }
}

#[inline]
fn has_constant_counter() -> bool {
    static CONSTANT: OnceLock<bool> = OnceLock::new();
    *CONSTANT.get_or_init(|| {
        const ADVANCED_POWER: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        __cpuid(0x8000_0000).eax >= ADVANCED_POWER && __cpuid(ADVANCED_POWER).edx & INVARIANT_TSC != 0
    })
}

fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

thread_local! {
    /// Ticks that this thread has spent in waits of ours, inside calls of the program's. It only grows.
    static WAITED: Cell<u64> = const { Cell::new(0) };
}

#[inline]
fn waited() -> u64 {
    WAITED.try_with(Cell::get).unwrap_or(0)
}

/// The beginning of a call of the runtime's.
#[derive(Clone, Copy)]
pub(crate) struct Begin {
    ticks: u64,
    waited: u64,
}

impl Begin {
    #[inline]
    pub(crate) fn now() -> Self {
        Begin { ticks: ticks(), waited: waited() }
    }

    /// When it began, as much later as waits of ours have taken since: those are none of the runtime's time.
    #[inline]
    pub(crate) fn without_waits(self) -> u64 {
        self.ticks + waited().saturating_sub(self.waited)
    }
}

/// A wait of ours. What others inside it count for themselves is part of it.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    begun: u64,
    before: u64,
}

impl Wait {
    pub(crate) fn begin() -> Self {
        Wait { begun: ticks(), before: waited() }
    }

    /// It lasted until now. May be said again when it has lasted longer.
    pub(crate) fn until_now(self) {
        let lasted = ticks().saturating_sub(self.begun);
        let _ = WAITED.try_with(|waited| waited.set(self.before + lasted));
    }
}

/// A start in both times.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ticks: u64,
    instant: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Clock { ticks: ticks(), instant: Instant::now() }
    }

    /// The tick it started at.
    pub fn origin(&self) -> u64 {
        self.ticks
    }

    /// Seconds per tick, measured from the start to now.
    pub fn seconds_per_tick(&self) -> f64 {
        let elapsed = self.instant.elapsed().as_secs_f64();
        match ticks().saturating_sub(self.ticks) {
            0 => 0.0,
            ticks => elapsed / ticks as f64,
        }
    }

    /// Seconds since the start.
    pub fn elapsed_s(&self) -> f64 {
        self.instant.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_run_forward_at_the_rate_that_the_clock_finds() {
        let clock = Clock::start();
        let first = ticks();
        let end = Instant::now() + std::time::Duration::from_millis(5);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        let seconds = (ticks() - first) as f64 * clock.seconds_per_tick();
        assert!(seconds > 0.004, "{seconds}");
    }

    /// Until some ticks have passed.
    fn pass() {
        let begun = ticks();
        while ticks() < begun + 1000 {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn waits_of_ours_are_none_of_a_calls_time_and_count_once() {
        let begin = Begin::now();
        pass();
        assert_eq!(begin.without_waits(), begin.ticks, "nothing of ours has waited");
        let outer = Wait::begin();
        let inner = Wait::begin();
        pass();
        inner.until_now();
        let of_inner = begin.without_waits() - begin.ticks;
        assert!(of_inner >= 1000);
        pass();
        outer.until_now();
        let of_both = begin.without_waits() - begin.ticks;
        assert!(of_both >= of_inner + 1000);
        let passed = ticks() - outer.begun;
        assert!(of_both <= passed, "{of_both} of {passed}: the inner one is part of the outer one");
        pass();
        assert_eq!(begin.without_waits() - begin.ticks, of_both, "it is over");
        let next = Begin::now();
        assert_eq!(next.without_waits(), next.ticks, "another call has not waited");
    }
}
