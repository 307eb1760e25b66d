//! Replays an allocation log against every policy of the pool, without any device.
//!
//!     cargo run --release -p dpmem-core --example replay -- LOG
//!
//! A log has a line for each event: `+BYTES KIND` for an allocation, `-N` for the free of the N-th allocation. The answer
//! is one line of JSON for each policy: hits, misses, the peaks, and nanoseconds of a request and its free. Upstream is a
//! counter: what it would cost is not part of the time.

#![allow(clippy::print_stdout, reason = "a program of its own, whose result this is")]

use std::cell::Cell;
use std::time::Instant;

use dpmem_core::pool::{Place, Policy, Pool, Upstream};
use dpmem_core::{DeviceId, Kind};

/// Hands out addresses and takes everything back.
#[derive(Default)]
struct Counter(Cell<usize>);

impl Upstream for Counter {
    type Fence = ();
    type Refusal = ();

    fn take(&self, _: &Place, bytes: u64) -> Result<usize, ()> {
        let address = self.0.get() + 0x1000;
        self.0.set(address + bytes as usize);
        Ok(address)
    }

    fn give(&self, _: &Place, _: usize) -> Result<(), ()> {
        Ok(())
    }

    fn fence(&self, _: &Place, _: u64) -> Option<()> {
        None
    }

    fn passed(&self, (): &()) -> bool {
        true
    }

    fn wait(&self, (): &()) -> bool {
        true
    }

    fn retain(&self, _: usize) {}

    fn release(&self, _: usize) {}

    fn is_abandoned(&self, _: usize, _: usize) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
enum Event {
    Allocate(u64, Kind),
    Free(usize),
}

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("expected the path of an allocation log")?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    let events = text.lines().map(parsed).collect::<Result<Vec<_>, _>>()?;
    for policy in Policy::ALL {
        println!("{}", replayed(policy, &events)?);
    }
    Ok(())
}

fn parsed(line: &str) -> Result<Event, String> {
    let refused = || format!("expected `+BYTES KIND` or `-N`, got `{line}`");
    if let Some(number) = line.strip_prefix('-') {
        return number.parse().map(Event::Free).map_err(|_| refused());
    }
    let (bytes, kind) = line.strip_prefix('+').and_then(|rest| rest.split_once(' ')).ok_or_else(refused)?;
    let kind = Kind::from_name(kind).ok_or_else(refused)?;
    Ok(Event::Allocate(bytes.parse().map_err(|_| refused())?, kind))
}

fn replayed(policy: Policy, events: &[Event]) -> Result<String, String> {
    let (upstream, pool) = (Counter::default(), Pool::new(policy));
    let mut addresses = Vec::with_capacity(events.len());
    let begun = Instant::now();
    for event in events {
        match *event {
            Event::Allocate(bytes, kind) => {
                let place = Place { owner: 1, handle: 1, device: DeviceId::new(1), kind, align: 0 };
                let address = pool.allocate(&upstream, place, bytes);
                addresses.push(address.map_err(|refused| format!("refused {bytes} bytes: {refused:?}"))?);
            }
            Event::Free(number) => {
                let address = *addresses.get(number).ok_or("a free of what was never allocated")?;
                pool.free(&upstream, address);
            }
        }
    }
    let each = begun.elapsed().as_nanos() as f64 / addresses.len().max(1) as f64;
    let total = pool.total();
    Ok(format!(
        "{{\"policy\": \"{policy:?}\", \"hits\": {}, \"misses\": {}, \"trims\": {}, \"peak_reserved_bytes\": {}, \
         \"peak_in_use_bytes\": {}, \"ns_per_pair\": {each:.1}}}",
        total.hits, total.misses, total.trims, total.peak_reserved_bytes, total.peak_in_use_bytes
    ))
}
