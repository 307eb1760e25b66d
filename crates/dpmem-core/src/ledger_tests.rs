//! Tests of the ledger against a naive model.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn resolve(raw: &RawFrame) -> Frame {
    Frame { file: "a.py".into(), line: raw.instruction, function: "f".into(), library: false }
}

fn line(ledger: &Ledger, cache: &mut SiteCache, line: u32, kind: Kind) -> SiteId {
    let raw = [RawFrame { code: 1, instruction: line, ..RawFrame::default() }];
    ledger.site(cache, &raw, Origin::NotRecorded, (kind, DeviceId::new(1)), resolve)
}

fn allocation(address: usize, bytes: u64, kind: Kind, site: SiteId) -> Allocation {
    Allocation { address, bytes, kind, device: DeviceId::new(1), site, now: 0, runtime_ticks: 1 }
}

#[test]
fn the_walk_of_one_allocation() {
    let ledger = Ledger::new(0, 4);
    let mut cache = SiteCache::new();
    let site = line(&ledger, &mut cache, 7, Kind::Device);
    ledger.allocated(allocation(0x1000, 64, Kind::Device, site));
    let (block, left) = ledger.freeing(0x1000, |_| FreedBy::Program).expect("it is known");
    assert_eq!(left, 0);
    ledger.freed(&block, left, 9, 4);
    ledger.failed(site, false);
    ledger.failed(site, true);
    let seen = ledger.snapshot(10);
    let row = &seen.rows[0];
    assert_eq!((row.totals.alloc_count, row.totals.free_count), (1, 1));
    assert_eq!((row.totals.failed_count, row.totals.out_of_memory_count), (2, 1));
    assert_eq!((row.in_use.peak.bytes, row.in_use.current.bytes), (64, 0));
    let site = &seen.sites[0];
    assert_eq!((site.alloc_count, site.live_bytes, site.peak_bytes, site.runtime_ticks), (1, 0, 64, 5));
    assert_eq!(site.frames[0].line, 7);
    assert_eq!(seen.peak.sites.as_deref(), Some(&[(site.id, 64, 1)][..]));
    assert_eq!(seen.events, 4);
}

#[test]
fn an_unknown_free_is_counted_and_not_subtracted() {
    let ledger = Ledger::new(0, 4);
    assert!(ledger.freeing(0x5000, |_| FreedBy::Program).is_none());
    let seen = ledger.snapshot(0);
    assert_eq!((seen.unknown_frees, seen.current_bytes, seen.rows.len()), (1, 0, 0));
}

#[test]
fn an_address_handed_out_twice_was_freed_unseen() {
    let ledger = Ledger::new(0, 4);
    let site = line(&ledger, &mut SiteCache::new(), 1, Kind::Device);
    ledger.allocated(allocation(0x1000, 64, Kind::Device, site));
    ledger.allocated(allocation(0x1000, 32, Kind::Device, site));
    let seen = ledger.snapshot(0);
    assert_eq!((seen.missed_frees, seen.current_bytes, seen.live.len()), (1, 32, 1));
}

#[test]
fn adopted_blocks_are_live_but_not_allocated() {
    let ledger = Ledger::new(0, 4);
    let mut cache = SiteCache::new();
    let place = (Kind::Device, DeviceId::new(1));
    let before = ledger.site(&mut cache, &[], Origin::BeforeStart, place, resolve);
    ledger.adopt(allocation(0x1000, 64, Kind::Device, before));
    ledger.adopt(allocation(0x1000, 64, Kind::Device, before));
    let seen = ledger.snapshot(0);
    assert_eq!((seen.rows[0].in_use.current.bytes, seen.rows[0].totals.alloc_count), (64, 0));
    assert_eq!(seen.sites[0].origin, Some(Origin::BeforeStart));
    assert!(ledger.freeing(0x1000, |_| FreedBy::Program).is_some());
    assert_eq!(ledger.current_bytes(), 0);
}

#[test]
fn a_refused_free_leaves_the_block() {
    let ledger = Ledger::new(0, 4);
    let site = line(&ledger, &mut SiteCache::new(), 1, Kind::Shared);
    ledger.allocated(allocation(0x1000, 64, Kind::Shared, site));
    let (block, _) = ledger.freeing(0x1000, |_| FreedBy::Program).expect("it is known");
    ledger.free_refused(0x1000, block);
    let seen = ledger.snapshot(0);
    assert_eq!((seen.current_bytes, seen.sites[0].live_count, seen.rows[0].totals.free_count), (64, 1, 0));
}

#[test]
fn a_restarted_peak_is_made_of_what_is_in_use_from_then_on() {
    let ledger = Ledger::new(0, 4);
    let mut cache = SiteCache::new();
    let sites: Vec<_> = (0..3).map(|n| line(&ledger, &mut cache, n, Kind::Device)).collect();
    ledger.allocated(allocation(0x1000, 64, Kind::Device, sites[0]));
    ledger.allocated(allocation(0x2000, 500, Kind::Device, sites[1]));
    ledger.freeing(0x2000, |_| FreedBy::Program);
    ledger.restart_peak(7);
    let seen = ledger.snapshot(8);
    assert_eq!((seen.peak.bytes, seen.peak.at_ticks), (64, 7));
    assert_eq!(seen.peak.sites.as_deref(), Some(&[(sites[0], 64, 1)][..]));
    ledger.allocated(allocation(0x3000, 32, Kind::Device, sites[2]));
    ledger.freeing(0x1000, |_| FreedBy::Program);
    let seen = ledger.snapshot(9);
    assert_eq!(seen.peak.bytes, 96);
    assert_eq!(seen.peak.sites.as_deref(), Some(&[(sites[0], 64, 1), (sites[2], 32, 1)][..]));
}

#[test]
fn stacks_beyond_the_table_are_counted_together() {
    let ledger = Ledger::with_capacity(0, 4, 2);
    let mut cache = SiteCache::new();
    for n in 0..10u32 {
        let site = line(&ledger, &mut cache, n, Kind::Device);
        ledger.allocated(allocation(0x1000 * (n as usize + 1), 8, Kind::Device, site));
    }
    let seen = ledger.snapshot(0);
    assert_eq!(seen.sites.iter().map(|s| s.live_bytes).sum::<u64>(), 80);
    assert!(seen.sites.iter().any(|s| s.origin == Some(Origin::OtherStacks) && s.alloc_count >= 7));
}

#[test]
fn a_cache_of_another_ledger_is_not_believed() {
    let (first, second) = (Ledger::new(0, 4), Ledger::new(0, 4));
    let mut cache = SiteCache::new();
    for n in 0..5 {
        line(&first, &mut cache, n, Kind::Device);
    }
    let site = line(&second, &mut cache, 4, Kind::Device);
    second.allocated(allocation(0x1000, 8, Kind::Device, site));
    assert_eq!(second.snapshot(0).sites[0].frames[0].line, 4);
}

#[test]
fn threads_agree_with_the_sum_of_their_work() {
    let ledger = Ledger::new(0, 4);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let ledger = &ledger;
            scope.spawn(move || {
                let mut cache = SiteCache::new();
                for n in 0..2_000usize {
                    let site = line(ledger, &mut cache, (n % 7) as u32, Kind::Device);
                    let address = (thread << 30) + n * 4096;
                    ledger.allocated(allocation(address, 1 + n as u64 % 100, Kind::Device, site));
                    if n % 3 != 0 {
                        ledger.freeing(address, |_| FreedBy::Program);
                    }
                }
            });
        }
    });
    let seen = ledger.snapshot(0);
    let in_use = seen.rows[0].in_use.current;
    assert_eq!(seen.rows[0].totals.alloc_count, 8_000);
    assert_eq!(in_use.bytes, seen.live.iter().map(|b| b.bytes).sum::<u64>());
    assert_eq!(in_use.bytes, seen.sites.iter().map(|s| s.live_bytes).sum::<u64>());
    let parts = seen.peak.sites.expect("nobody allocates any more");
    assert_eq!(parts.iter().map(|&(_, bytes, _)| bytes).sum::<u64>(), seen.peak.bytes);
}

#[test]
fn ten_million_events_of_a_hundred_sites_stay_small() {
    let ledger = Ledger::new(0, 4);
    let mut cache = SiteCache::new();
    let sites: Vec<_> = (0..100).map(|n| line(&ledger, &mut cache, n, Kind::Device)).collect();
    for n in 0..100_000usize {
        ledger
            .allocated(Allocation { now: n as u64, ..allocation(0x1000, 64, Kind::Device, sites[n % 100]) });
        ledger.freeing(0x1000, |_| FreedBy::Program);
    }
    let seen = ledger.snapshot(100_000);
    assert_eq!((seen.sites.len(), seen.live.len(), seen.events), (100, 0, 200_000));
    assert!(seen.history.len() <= 1024, "the history is bounded by its slots, not by events");
}

proptest! {
    #[test]
    fn agrees_with_a_naive_ledger(
        events in prop::collection::vec((any::<bool>(), 0u32..6, 1u64..5_000, 0usize..3), 1..150)
    ) {
        let ledger = Ledger::new(0, 4);
        let mut cache = SiteCache::new();
        let mut live: Vec<(usize, u64, u32, Kind)> = Vec::new();
        let (mut current, mut peak) = (0u64, 0u64);
        let mut at_peak: HashMap<(u32, Kind), u64> = HashMap::new();
        for (n, (allocate, at, bytes, kind)) in events.into_iter().enumerate() {
            if allocate || live.is_empty() {
                let kind = Kind::ALL[kind];
                let site = line(&ledger, &mut cache, at, kind);
                let address = 0x1_0000 * (n + 1);
                ledger.allocated(allocation(address, bytes, kind, site));
                live.push((address, bytes, at, kind));
                current += bytes;
            } else {
                let (address, bytes, ..) = live.remove(bytes as usize % live.len());
                prop_assert_eq!(ledger.freeing(address, |_| FreedBy::Program).map(|(b, _)| b.bytes), Some(bytes));
                current -= bytes;
            }
            if current > peak {
                peak = current;
                at_peak.clear();
                for &(_, bytes, at, kind) in &live {
                    *at_peak.entry((at, kind)).or_default() += bytes;
                }
            }
        }
        let seen = ledger.snapshot(0);
        prop_assert_eq!((seen.current_bytes, seen.peak.bytes), (current, peak));
        let sites: HashMap<_, _> = seen.sites.iter().map(|s| (s.id, s)).collect();
        let parts: HashMap<(u32, Kind), u64> = seen.peak.sites.expect("one thread").into_iter()
            .map(|(id, bytes, _)| ((sites[&id].frames[0].line, sites[&id].kind), bytes)).collect();
        prop_assert_eq!(parts, at_peak);
        prop_assert_eq!(seen.live.len(), live.len());
    }
}
