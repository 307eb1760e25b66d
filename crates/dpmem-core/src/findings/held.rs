//! Blocks in use at the end, gathered by the line that allocated them.

use std::collections::BTreeMap;

use super::facts::{Facts, HeldBlock, HolderKind, HolderRecord};
use super::place::{Place, site};
use super::{Finding, RuleDoc, Value};
use crate::bytes::{count, size};
use crate::kind::DeviceId;

/// The blocks of one line that a rule is about.
#[derive(Default)]
pub(super) struct Held<'a> {
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) device: Option<DeviceId>,
    /// A holder of each.
    pub(super) holders: Vec<&'a HolderRecord>,
}

impl Held<'_> {
    /// The paths of the first few holders, different ones only, in words.
    pub(super) fn paths(&self) -> String {
        const SHOWN: usize = 3;
        let mut paths: Vec<&str> = Vec::new();
        for holder in &self.holders {
            if !paths.contains(&holder.path.as_str()) {
                paths.push(&holder.path);
            }
        }
        let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| format!("`{path}`")).collect();
        let others = paths.len().saturating_sub(SHOWN);
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        shown.join(", ") + &more
    }

    /// `3 blocks, 96.0 MiB`.
    pub(super) fn amount(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        format!("{} block{plural}, {}", count(self.count), size(self.bytes))
    }

    pub(super) fn finding(
        &self,
        rule: &'static RuleDoc,
        place: Place,
        message: String,
        advice: String,
    ) -> Finding {
        Finding {
            rule,
            place: Some(place),
            device: self.device.unwrap_or(DeviceId::NONE),
            message,
            advice,
            evidence: vec![
                ("blocks", Value::Whole(self.count)),
                ("held_bytes", Value::Whole(self.bytes)),
                (
                    "holder",
                    Value::Text(self.holders.first().map_or(String::new(), |holder| holder.path.clone())),
                ),
            ],
        }
    }
}

/// The blocks for which `blamed` names a holder, by the user's line that allocated them.
pub(super) fn by_place<'a>(
    facts: &Facts<'a>,
    blamed: impl Fn(&'a HeldBlock) -> Option<&'a HolderRecord>,
) -> BTreeMap<Place, Held<'a>> {
    let mut places: BTreeMap<Place, Held<'_>> = BTreeMap::new();
    for block in facts.held {
        let Some(holder) = blamed(block) else { continue };
        let Some(place) = site(facts.snapshot, block.site).and_then(|site| Place::of(&site.frames)) else {
            continue;
        };
        let held = places.entry(place).or_default();
        held.bytes += block.bytes;
        held.count += 1;
        held.device = held.device.or(Some(block.device));
        held.holders.push(holder);
    }
    places
}

/// A holder of `kind`, if nothing of another kind holds the block: letting go of these holders would free it.
pub(super) fn only_held_by(block: &HeldBlock, kind: HolderKind) -> Option<&HolderRecord> {
    let first = block.holders.first()?;
    block.holders.iter().all(|holder| holder.kind == kind).then_some(first)
}
