//! Recordings for the tests of rules.

use super::facts::{BlockState, HeldBlock, HolderKind, HolderRecord};
use crate::kind::{DeviceId, Kind};
use crate::ledger::{Allocation, Ledger};
use crate::site::{FreedBy, SiteCache, SiteId};
use crate::stack::{Frame, Origin, RawFrame};

/// Library functions, innermost first, below line `line` of the user's file.
pub(super) fn stack(library: &[&str], line: u32) -> Vec<Frame> {
    let inner = library.iter().map(|&function| Frame {
        file: "/lib/dpnp/x.py".into(),
        line: 1,
        function: function.into(),
        library: true,
    });
    let user = Frame { file: "a.py".into(), line, function: "main".into(), library: false };
    inner.chain([user]).collect()
}

/// A recording in the making; time goes on by itself.
pub(super) struct Run {
    pub(super) ledger: Ledger,
    now: u64,
    next: usize,
}

impl Run {
    pub(super) fn new() -> Self {
        Run { ledger: Ledger::new(0, 10), now: 1000, next: 0x10_0000 }
    }

    /// A site at `line`, at the given instruction, below the library's functions.
    pub(super) fn site(&self, library: &[&str], line: u32, instruction: u32, kind: Kind) -> SiteId {
        let frames = stack(library, line);
        let code = |n: usize| library.iter().map(|name| name.len()).sum::<usize>() * 1000 + n + 1;
        let raw: Vec<RawFrame> = (0..frames.len())
            .map(|n| RawFrame {
                code: code(n),
                instruction: instruction * 100 + n as u32 + line * 10_000,
                ..RawFrame::default()
            })
            .collect();
        let resolve = |raw: &RawFrame| frames[(raw.instruction % 100) as usize].clone();
        self.ledger.site(&mut SiteCache::new(), &raw, Origin::NotRecorded, (kind, DeviceId::new(1)), resolve)
    }

    pub(super) fn wait(&mut self, ticks: u64) {
        self.now += ticks;
    }

    pub(super) fn allocate(&mut self, site: SiteId, bytes: u64) -> usize {
        self.now += 10;
        self.next += bytes.next_multiple_of(64) as usize;
        let key = (Kind::Device, DeviceId::new(1));
        let allocation = Allocation {
            address: self.next,
            bytes,
            kind: key.0,
            device: key.1,
            site,
            now: self.now,
            runtime_ticks: 3,
        };
        self.ledger.allocated(allocation);
        self.next
    }

    pub(super) fn allocate_all(&mut self, site: SiteId, bytes: u64, count: usize) -> Vec<usize> {
        (0..count).map(|_| self.allocate(site, bytes)).collect()
    }

    pub(super) fn free(&mut self, address: usize, by: FreedBy) {
        self.now += 10;
        let (block, left) = self.ledger.freeing(address, |_| by).expect("it is live");
        self.ledger.freed(&block, left, self.now, 2);
    }

    pub(super) fn copy(
        &mut self,
        library: &[&str],
        line: u32,
        direction: crate::Direction,
        data: &[u8],
    ) -> crate::TransferId {
        self.now += 10;
        let frames = stack(library, line);
        let raw: Vec<RawFrame> = (0..frames.len())
            .map(|n| RawFrame { code: n + 1, instruction: n as u32 + line * 100, ..RawFrame::default() })
            .collect();
        let resolve = |raw: &RawFrame| frames[(raw.instruction % 100) as usize].clone();
        let transfer = self.ledger.transfer(&raw, Origin::NotRecorded, direction, resolve);
        self.ledger.transferred(transfer, data.len() as u64, self.now);
        self.ledger.compare_content(transfer, &Bytes(data));
        transfer
    }

    pub(super) fn launch(&mut self, line: u32, count: u64) {
        self.now += 10;
        let frames = stack(&["call"], line);
        let raw: Vec<RawFrame> = (0..frames.len())
            .map(|n| RawFrame { code: n + 77, instruction: n as u32 + line * 100, ..RawFrame::default() })
            .collect();
        let resolve = |raw: &RawFrame| frames[(raw.instruction % 100) as usize].clone();
        self.ledger.launched(&raw, Origin::NotRecorded, (count, self.now), resolve);
    }

    pub(super) fn snapshot(&self) -> crate::Snapshot {
        self.ledger.snapshot(self.now)
    }
}

pub(super) fn held(site: SiteId, bytes: u64, covered: u64, holders: &[(HolderKind, &str)]) -> HeldBlock {
    let holders = holders.iter().map(|&(kind, path)| HolderRecord {
        kind,
        path: path.to_string(),
        notebook: kind == HolderKind::Notebook || path.starts_with("the last traceback"),
        owner: path.split_once('[').map(|(owner, _)| owner.to_string()),
        cache: None,
    });
    HeldBlock {
        site,
        device: DeviceId::new(1),
        bytes,
        state: BlockState::Referenced,
        covered_bytes: Some(covered),
        holders: holders.collect(),
    }
}

/// Data for [`Run::copy`].
struct Bytes<'a>(&'a [u8]);

impl crate::Data for Bytes<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn words(&self, offsets: &[usize], words: &mut [u64]) -> bool {
        let word = |at: usize| self.0[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        offsets.iter().zip(words).for_each(|(&at, to)| *to = word(at));
        true
    }

    fn bytes(&self, offset: usize, into: &mut [u8]) -> bool {
        into.copy_from_slice(&self.0[offset..offset + into.len()]);
        true
    }
}
