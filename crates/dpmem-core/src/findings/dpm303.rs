//! DPM303: thousands of tiny arrays.

use super::facts::Facts;
use super::place::{Place, sites_by_place};
use super::{Finding, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::kind::Kind;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM303",
    name: "tiny-arrays",
    severity: Severity::Warning,
    what: "Fires for a line of which 1,000 blocks or more of 256 bytes or less were in use together. Blocks that merely
waited for queued work are left alone.",
    explanation: None,
};

const COUNT_AT_LEAST: u64 = 1000;
const BYTES_AT_MOST: u64 = 256;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = sites_by_place(facts.snapshot, is_tiny);
    let kept = |sites: &Vec<&SiteSnapshot>| sites.iter().map(|site| site.pattern.most_count).sum::<u64>();
    let many = places.into_iter().map(|(place, sites)| (kept(&sites), place, sites));
    many.filter(|&(count, ..)| count >= COUNT_AT_LEAST)
        .map(|(count, place, sites)| finding(place, &sites, count))
        .collect()
}

fn is_tiny(site: &SiteSnapshot) -> bool {
    site.kind != Kind::Host
        && site.pattern.most_count >= COUNT_AT_LEAST / 4
        && site.allocated_bytes <= BYTES_AT_MOST * site.alloc_count
        && site.pattern.late_free_count * 2 < site.alloc_count
}

fn finding(place: Place, sites: &[&SiteSnapshot], count: u64) -> Finding {
    let each = sites[0].pattern.last_bytes;
    Finding {
        rule: &DOC,
        place: Some(place),
        device: sites[0].device,
        message: format!("{count} arrays of {} each were kept, every one a block of its own", size(each)),
        advice:
            "keep numbers as numbers (`float(value)`, once in a while), or write them into one array made \
                 beforehand: `history[step] = value`"
                .to_string(),
        evidence: vec![
            ("most_count", Value::Whole(count)),
            ("live_count", Value::Whole(sites.iter().map(|site| site.live_count).sum())),
            ("block_bytes", Value::Whole(each)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::site::FreedBy;

    fn found(count: usize, bytes: u64, by: Option<FreedBy>) -> usize {
        let mut run = Run::new();
        let site = run.site(&["empty", "_reduction_over_axis", "sum"], 8, 1, Kind::Device);
        let blocks: Vec<_> = (0..count).map(|_| run.allocate(site, bytes)).collect();
        if let Some(by) = by {
            blocks.into_iter().for_each(|block| run.free(block, by));
        }
        check(&Facts::of(&run.snapshot())).len()
    }

    #[test]
    fn a_scalar_of_every_step() {
        assert_eq!(found(3000, 8, None), 1);
        assert_eq!(found(3000, 8, Some(FreedBy::Program)), 1, "kept in a function that has returned");
    }

    #[test]
    fn hundreds_larger_ones_and_a_queue_are_innocent() {
        assert_eq!(found(900, 8, None), 0);
        assert_eq!(found(3000, 8000, None), 0);
        assert_eq!(found(3000, 8, Some(FreedBy::Runtime)), 0);
    }
}
