//! What only a pool that keeps blocks does: reuse, bounds, owners, and switching it on and off.

use super::*;

/// A pool with a block of 8 MiB in flight, of a class that the next 8 MiB are of or not.
fn in_flight(class: u64) -> (std::sync::Arc<Fake>, std::sync::Arc<Pool<Fake>>) {
    let (upstream, pool) = (std::sync::Arc::new(Fake::default()), Pool::<Fake>::new(Policy::Caching));
    let block = pool.allocate(&upstream, place(1), class).expect("room");
    upstream.queue_work();
    assert_eq!(pool.free(&upstream, block), Freed::Done);
    (upstream, std::sync::Arc::new(pool))
}

#[test]
fn a_block_whose_fence_is_of_an_earlier_time_of_caching_is_not_kept() {
    let (upstream, pool) = (Fake::default(), std::sync::Arc::new(Pool::new(Policy::Caching)));
    let address = pool.allocate(&upstream, place(1), MIB).expect("room");
    let elsewhere = pool.clone();
    *upstream.meanwhile.lock().expect("no panic") = Some(Box::new(move || {
        elsewhere.set_policy(&Fake::default(), Policy::Direct);
        elsewhere.set_policy(&Fake::default(), Policy::Caching);
    }));
    assert_eq!(pool.free(&upstream, address), Freed::Done);
    assert_eq!((upstream.count(), pool.total().reserved_bytes), (0, 0));
}

#[test]
fn a_block_that_was_looked_at_while_caching_ended_goes_back() {
    for class in [8 * MIB, 7 * MIB] {
        for is_trim in [true, false] {
            let (upstream, pool) = in_flight(class);
            let elsewhere = (upstream.clone(), pool.clone());
            let end_caching = Box::new(move || elsewhere.1.set_policy(&elsewhere.0, Policy::Direct));
            if is_trim {
                *upstream.while_looked_at.lock().expect("no panic") = Some(end_caching);
                pool.trim(&upstream, None, 1, Trim::Rested);
            } else {
                *upstream.in_vain.lock().expect("no panic") = Some(end_caching);
                let block = pool.allocate(&upstream, place(1), 8 * MIB).expect("room");
                pool.free(&upstream, block);
            }
            assert_eq!((upstream.count(), pool.total().cached_bytes), (0, 0), "{class} {is_trim}");
        }
    }
}

#[test]
fn an_owner_outlives_a_block_that_is_being_looked_at() {
    let (upstream, pool) = in_flight(8 * MIB);
    lock(&upstream.state).abandoned.push(1);
    let elsewhere = (upstream.clone(), pool.clone());
    *upstream.while_looked_at.lock().expect("no panic") = Some(Box::new(move || {
        let (upstream, pool) = elsewhere;
        pool.owner_released(&upstream, 1);
        assert_eq!(upstream.retained(), 1, "its block is in somebody's hands");
    }));
    assert_eq!(pool.trim(&upstream, None, 1, Trim::Rested), 8 * MIB);
    assert_eq!((upstream.retained(), upstream.count()), (0, 0));
}

#[test]
fn a_block_of_an_owner_that_was_let_go_of_is_not_kept() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let block = pool.allocate(&upstream, place(1), MIB).expect("room");
    lock(&upstream.state).abandoned.push(1);
    pool.owner_released(&upstream, 1);
    assert_eq!(pool.free(&upstream, block), Freed::Done);
    assert_eq!((upstream.count(), pool.total().reserved_bytes), (0, 0));
}

#[test]
fn a_block_in_flight_is_not_rested_before_its_work_is_done() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let first = pool.allocate(&upstream, place(1), 1000).expect("room");
    upstream.queue_work();
    pool.free(&upstream, first);
    let second = pool.allocate(&upstream, place(1), 1000).expect("room");
    assert_ne!(first, second);
    assert!(lock(&upstream.state).rested.is_empty());
    upstream.finish_work();
    assert_eq!(pool.allocate(&upstream, place(1), 999), Ok(first), "done, so it is");
    assert_eq!(lock(&upstream.state).rested, [first]);
    assert_eq!((pool.total().hits, pool.total().misses), (1, 2));
}

#[test]
fn what_goes_beyond_requests_is_that_of_a_recording() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let use_one = || {
        let block = pool.allocate(&upstream, place(1), MIB).expect("room");
        assert_eq!(pool.free(&upstream, block), Freed::Done);
        pool.reading(DeviceId::new(1)).beyond
    };
    let beyond = |taken_bytes, given_bytes| Beyond { taken_bytes, given_bytes };
    assert_eq!(use_one(), beyond(0, -(MIB as i64)), "upstream gave one and has taken none back");
    assert_eq!(use_one(), beyond(-(MIB as i64), -2 * MIB as i64));
    pool.recording_ends();
    assert_eq!(use_one(), beyond(-(MIB as i64), -2 * MIB as i64), "nobody records these requests");
    pool.recording_begins();
    assert_eq!(use_one(), beyond(-(MIB as i64), -(MIB as i64)), "the cache served");
    pool.empty(&upstream);
    assert_eq!(pool.total().beyond, beyond(-(MIB as i64), 0));
    let adopted = upstream.take(&place(1), MIB).expect("room");
    pool.adopt(place(1), adopted, MIB);
    assert_eq!(pool.total().beyond, beyond(-(MIB as i64), 0));
}

#[test]
fn emptying_is_no_trimming() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    for trim in [false, true] {
        let block = pool.allocate(&upstream, place(1), MIB).expect("room");
        assert_eq!(pool.free(&upstream, block), Freed::Done);
        match trim {
            true => pool.trim(&upstream, None, 1, Trim::All),
            false => pool.empty(&upstream),
        };
        assert_eq!((pool.total().trims, pool.reading(DeviceId::new(1)).trims), (trim.into(), trim.into()));
    }
}

#[test]
fn blocks_serve_only_their_place_and_class() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let address = pool.allocate(&upstream, place(1), 1000).expect("room");
    pool.free(&upstream, address);
    let others = [
        (place(2), 1000),
        (Place { kind: Kind::Shared, ..place(1) }, 1000),
        (Place { handle: 8, ..place(1) }, 1000),
        (Place { align: 64, ..place(1) }, 1000),
        (place(1), 2000),
    ];
    for (place, bytes) in others {
        assert_ne!(pool.allocate(&upstream, place, bytes), Ok(address));
    }
    assert_eq!(pool.allocate(&upstream, place(1), 1024), Ok(address));
}

#[test]
fn a_host_that_runs_ahead_does_not_blow_the_pool_up() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    for _ in 0..100 {
        let block = pool.allocate(&upstream, place(1), 8 * MIB).expect("room");
        upstream.queue_work();
        pool.free(&upstream, block);
    }
    let reading = pool.total();
    assert!(reading.peak_reserved_bytes <= reading.peak_in_use_bytes * 5 / 4, "{reading:?}");
    assert!(upstream.waits.load(SeqCst) > 90, "it had to wait");
}

#[test]
fn changing_sizes_do_not_blow_the_pool_up() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    for round in 0..200u64 {
        let block = pool.allocate(&upstream, place(1), (round % 40 + 1) * MIB).expect("room");
        if round % 3 == 0 {
            upstream.queue_work();
        }
        pool.free(&upstream, block);
    }
    let reading = pool.total();
    assert!(reading.peak_reserved_bytes <= 40 * MIB * 5 / 4, "{reading:?}");
    assert_eq!(reading.reserved_bytes, upstream.held());
}

#[test]
fn an_owner_lives_as_long_as_its_cached_blocks_and_no_longer() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    for owner in [1, 2] {
        let block = pool.allocate(&upstream, place(owner), MIB).expect("room");
        pool.free(&upstream, block);
    }
    assert_eq!(upstream.retained(), 2);
    pool.owner_released(&upstream, 1);
    assert_eq!(upstream.retained(), 2, "others keep it");
    lock(&upstream.state).abandoned.push(1);
    pool.owner_released(&upstream, 1);
    assert_eq!((upstream.retained(), upstream.count()), (1, 1));
    lock(&upstream.state).abandoned.push(2);
    pool.allocate(&upstream, place(3), MIB).expect("room");
    assert_eq!(lock(&upstream.state).retained[&2], 0, "found out at the next new place");
}

#[test]
fn switching_caching_off_gives_back_and_frees_go_upstream() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let kept = pool.allocate(&upstream, place(1), MIB).expect("room");
    let cached = pool.allocate(&upstream, place(1), MIB).expect("room");
    pool.free(&upstream, cached);
    pool.set_policy(&upstream, Policy::Direct);
    assert_eq!(upstream.count(), 1);
    pool.free(&upstream, kept);
    assert_eq!((upstream.count(), pool.total().reserved_bytes), (0, 0));
}

#[test]
fn blocks_from_before_caching_began_anew_go_upstream() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let kept = pool.allocate(&upstream, place(1), MIB).expect("room");
    pool.set_policy(&upstream, Policy::Direct);
    pool.set_policy(&upstream, Policy::Caching);
    pool.free(&upstream, kept);
    assert_eq!((upstream.count(), pool.total().cached_bytes), (0, 0), "nobody knows what still uses it");
    let new = pool.allocate(&upstream, place(1), MIB).expect("room");
    pool.set_policy(&upstream, Policy::Caching);
    pool.free(&upstream, new);
    assert_eq!(upstream.count(), 1, "caching had not ended");
}

#[test]
fn what_stops_is_kept_from_everybody_and_goes_back_when_asked_for() {
    let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
    let blocks = [1, 2].map(|_| pool.allocate(&upstream, place(1), MIB).expect("room"));
    pool.free(&upstream, blocks[0]);
    pool.stop_caching();
    pool.free(&upstream, blocks[1]);
    assert_eq!((upstream.count(), pool.total().cached_bytes), (1, MIB));
    assert_ne!(pool.allocate(&upstream, place(1), MIB), Ok(blocks[0]));
    assert_eq!(pool.empty(&upstream), MIB);
}

#[test]
fn threads_that_use_it_while_it_closes_leave_exact_accounts() {
    let upstream = Fake::default();
    for _ in 0..200 {
        let pool = Pool::new(Policy::Caching);
        let blocks: Vec<usize> =
            (0..8).map(|_| pool.allocate(&upstream, place(1), MIB).expect("room")).collect();
        let start = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            for half in blocks.chunks(4) {
                let (pool, upstream, start) = (&pool, &upstream, &start);
                scope.spawn(move || {
                    start.wait();
                    for &block in half {
                        if pool.free(upstream, block) == Freed::Unknown {
                            upstream.give(&place(1), block).expect("nobody else has given it back");
                        }
                    }
                });
            }
            start.wait();
            pool.close(&upstream);
        });
        let reading = pool.total();
        assert_eq!((reading.reserved_bytes, reading.cached_bytes, reading.in_use_bytes), (0, 0, 0));
        assert_eq!(upstream.count(), 0);
    }
}

#[test]
fn threads_that_find_an_owner_abandoned_let_go_of_it_once() {
    for _ in 0..200 {
        let (upstream, pool) = (Fake::default(), Pool::new(Policy::Caching));
        for owner in 1..=4 {
            let block = pool.allocate(&upstream, place(owner), MIB).expect("room");
            pool.free(&upstream, block);
            lock(&upstream.state).abandoned.push(owner);
        }
        std::thread::scope(|scope| {
            for owner in 1..=4 {
                let (pool, upstream) = (&pool, &upstream);
                scope.spawn(move || pool.owner_released(upstream, owner));
            }
        });
        assert_eq!((upstream.retained(), upstream.count()), (0, 0));
    }
}
