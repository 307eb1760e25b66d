//! DPM205: a cache, a default argument or a module-level container keeps arrays.

use std::collections::HashMap;

use super::activity::Activity;
use super::facts::{CacheUse, Facts, HeldBlock, HolderKind, HolderRecord};
use super::held::{Held, by_place};
use super::place::{is_comprehension, site};
use super::{Finding, LEAST_REPEATS, MIB, RuleDoc, Severity};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM205",
    name: "held-by-cache",
    severity: Severity::Warning,
    what: "Fires for blocks in use at the end, 1 MiB or more a line, that are held by a `functools.lru_cache` which has
three of them or more and is neither small (32 entries) nor has ever put one out; by a default argument; or by a
module-level container to which one line added 20 arrays or more without ever freeing one, up to the end.",
    explanation: None,
};

const BYTES_AT_LEAST: u64 = MIB;
/// Entries of a cache below which it is a constant that is made once.
const ENTRIES_AT_LEAST: u64 = 3;
/// Largest `maxsize` that is taken for a bound chosen with memory in mind.
const SMALL_CACHE: u64 = 32;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let growing = growing_containers(facts);
    let places = by_place(facts, |block| {
        // What a name keeps as well would stay without the default.
        let by_default = block.holders.iter().all(|holder| holder.kind == HolderKind::Default);
        let blamed = |holder: &&HolderRecord| {
            keeps(holder, &growing) && (by_default || holder.kind != HolderKind::Default)
        };
        block.holders.iter().find(blamed)
    });
    let enough = |held: &Held<'_>| {
        held.bytes >= BYTES_AT_LEAST
            && (held.count >= ENTRIES_AT_LEAST || held.holders[0].kind == HolderKind::Default)
    };
    let findings = places.into_iter().filter(|(_, held)| enough(held)).map(|(place, held)| {
        let holder = held.holders[0];
        let owner = holder.owner.as_deref().unwrap_or(&holder.path);
        let (what, advice) = match holder.kind {
            HolderKind::Cache => (
                "a cache keeps every array that it has returned",
                "give it a small bound, `functools.lru_cache(maxsize=4)`, or empty it with `cache_clear()`",
            ),
            HolderKind::Default => (
                "a default argument keeps arrays for as long as the function lives",
                "use `None` as the default and make or fetch the array inside the function",
            ),
            _ => (
                "a module-level container only ever grows and keeps every array",
                "take entries out again (`clear()`, `pop()`), bound it (`collections.deque(maxlen=...)`), or keep it \
                 local to the function that needs it",
            ),
        };
        let message = format!("{what} ({}): `{owner}`", held.amount());
        held.finding(&DOC, place, message, advice.to_string())
    });
    findings.collect()
}

fn keeps(holder: &HolderRecord, growing: &HashMap<&str, u64>) -> bool {
    match holder.kind {
        HolderKind::Cache => holder.cache.is_some_and(is_unbounded),
        HolderKind::Default => true,
        HolderKind::Container | HolderKind::View | HolderKind::Global => {
            holder.owner.as_deref().is_some_and(|owner| growing.contains_key(owner))
        }
        _ => false,
    }
}

fn is_unbounded(cache: CacheUse) -> bool {
    cache.max_entries.is_none_or(|most| most > SMALL_CACHE && cache.misses <= most)
}

/// Module-level containers that hold 20 blocks or more of one site that has never freed one and was still allocating in
/// the last third of the run.
fn growing_containers<'a>(facts: &Facts<'a>) -> HashMap<&'a str, u64> {
    let activity = Activity::of(facts.snapshot);
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let kept = |block: &&HeldBlock| {
        site(facts.snapshot, block.site).is_some_and(|site| {
            site.free_count == 0
                && site.alloc_count >= LEAST_REPEATS
                && activity.share(site.pattern.last_ticks) >= 2.0 / 3.0
                && !is_comprehension(&site.frames, facts.source)
        })
    };
    for block in facts.held.iter().filter(kept) {
        for holder in block.holders.iter().filter(|holder| is_module_level(holder)) {
            if let Some(owner) = &holder.owner {
                *counts.entry(owner).or_default() += 1;
            }
        }
    }
    counts.retain(|_, count| *count >= LEAST_REPEATS);
    counts
}

/// A path that starts at a module, and not in a frame.
fn is_module_level(holder: &HolderRecord) -> bool {
    matches!(holder.kind, HolderKind::Container | HolderKind::View | HolderKind::Global)
        && !holder.owner.as_deref().is_some_and(|owner| owner.contains("():"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;
    use crate::site::FreedBy;

    fn cached(count: usize, cache: Option<CacheUse>) -> usize {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        run.allocate_all(site, MIB, count);
        let mut block = held(site, MIB, MIB, &[(HolderKind::Cache, "__main__.kernel cache")]);
        block.holders[0].cache = cache;
        let snapshot = run.snapshot();
        check(&Facts { held: &vec![block; count], ..Facts::of(&snapshot) }).len()
    }

    #[test]
    fn a_cache_without_a_bound_is_found_and_one_with_a_bound_is_not() {
        let using = |max_entries, entries, misses| Some(CacheUse { max_entries, entries, misses });
        assert_eq!(cached(5, using(None, 5, 5)), 1);
        assert_eq!(cached(5, using(Some(128), 5, 5)), 1);
        assert_eq!(cached(5, using(Some(8), 5, 5)), 0);
        assert_eq!(cached(128, using(Some(128), 128, 300)), 0);
        assert_eq!(cached(1, using(None, 1, 1)), 0, "a constant that is made once");
    }

    fn collected(count: usize, frees: bool) -> usize {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        let blocks = run.allocate_all(site, MIB, count);
        if frees {
            run.free(blocks[0], FreedBy::Program);
        }
        let snapshot = run.snapshot();
        let block =
            |n: usize| held(site, MIB, MIB, &[(HolderKind::Container, &format!("__main__.seen[{n}]"))]);
        check(&Facts { held: &(0..count).map(block).collect::<Vec<_>>(), ..Facts::of(&snapshot) }).len()
    }

    #[test]
    fn a_module_level_container_that_only_grows() {
        assert_eq!(collected(25, false), 1);
        assert_eq!(collected(25, true), 0);
        assert_eq!(collected(10, false), 0);
    }

    #[test]
    fn a_default_argument_is_found_even_alone() {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        run.allocate(site, MIB);
        let snapshot = run.snapshot();
        let default = (HolderKind::Default, "default of __main__.f(table)");
        let found = |holders: &[_]| {
            check(&Facts { held: &[held(site, MIB, MIB, holders)], ..Facts::of(&snapshot) }).len()
        };
        assert_eq!(found(&[default]), 1);
        assert_eq!(found(&[default, (HolderKind::Global, "__main__.TABLE")]), 0);
    }
}
