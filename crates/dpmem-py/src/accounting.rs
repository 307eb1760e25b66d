//! The numbers of the newest recording, running or ended.

use std::collections::HashMap;
use std::sync::Arc;

use dpmem_core::{Frame, InUse, Kind, Region, SiteId, Totals};
use dpmem_hook::Recording;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<OpenRegion>()?;
    module.add_function(wrap_pyfunction!(row_in_use, module)?)?;
    module.add_function(wrap_pyfunction!(row_totals, module)?)?;
    module.add_function(wrap_pyfunction!(row_reset_peak, module)?)?;
    module.add_function(wrap_pyfunction!(recording_id, module)?)?;
    module.add_function(wrap_pyfunction!(live_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(live_sizes, module)?)?;
    module.add_function(wrap_pyfunction!(ticks, module)?)?;
    module.add_function(wrap_pyfunction!(live_births, module)?)?;
    module.add_function(wrap_pyfunction!(peak_parts, module)?)?;
    module.add_function(wrap_pyfunction!(peak_restart, module)?)?;
    module.add_function(wrap_pyfunction!(fills, module)?)?;
    module.add_function(wrap_pyfunction!(human_size, module)?)?;
    module.add_function(wrap_pyfunction!(human_duration, module)?)?;
    module.add_function(wrap_pyfunction!(human_count, module)?)
}

/// The newest recording.
pub(crate) fn newest() -> PyResult<Arc<Recording>> {
    dpmem_hook::recording().ok_or_else(|| {
        PyRuntimeError::new_err(if dpmem_hook::is_forked_child() {
            dpmem_hook::Error::Forked.to_string()
        } else {
            "dpmem has recorded nothing in this process: call dpmem.start() first, or use `dpmem run`"
                .to_string()
        })
    })
}

/// What is in use on a device, of one kind or of "total", device and shared memory together: bytes and blocks now, at
/// the peak since it was reset, and at the peak of the whole recording.
#[pyfunction]
fn row_in_use(device: &str, kind: &str) -> PyResult<[u64; 6]> {
    let recording = newest()?;
    let Some(device) = dpmem_hook::devices().named(device) else { return Ok([0; 6]) };
    let in_use = match kind {
        "total" => recording.ledger.rows(device).reading_on_device(),
        _ => recording.ledger.rows(device).reading(parse_kind(kind)?),
    };
    let InUse { current, peak, resettable_peak } = in_use;
    Ok([current.bytes, current.count, resettable_peak.bytes, resettable_peak.count, peak.bytes, peak.count])
}

/// What has been done on a device, in one kind or in "total": bytes and number of allocations, bytes and number of
/// frees, allocations refused, those for lack of memory.
#[pyfunction]
fn row_totals(py: Python<'_>, device: &str, kind: &str) -> PyResult<[u64; 6]> {
    let recording = newest()?;
    let Some(device) = dpmem_hook::devices().named(device) else { return Ok([0; 6]) };
    let wanted = if kind == "total" { None } else { Some(parse_kind(kind)?) };
    let of_kind = |kind: Kind| wanted.map_or(kind.on_device(), |wanted| wanted == kind);
    let totals = py.detach(|| recording.ledger.totals(|kind, at| at == device && of_kind(kind)));
    let Totals { allocated_bytes, alloc_count, freed_bytes, free_count, failed_count, out_of_memory_count } =
        totals;
    Ok([allocated_bytes, alloc_count, freed_bytes, free_count, failed_count, out_of_memory_count])
}

/// Starts the peaks of a device anew, of all kinds.
#[pyfunction]
fn row_reset_peak(device: &str) -> PyResult<()> {
    let recording = newest()?;
    if let Some(device) = dpmem_hook::devices().named(device) {
        recording.ledger.rows(device).reset_peaks();
    }
    Ok(())
}

fn parse_kind(kind: &str) -> PyResult<Kind> {
    Kind::from_name(kind).ok_or_else(|| PyValueError::new_err(format!("expected a USM kind, got `{kind}`")))
}

/// A number for the newest recording: another one has another.
#[pyfunction]
fn recording_id() -> PyResult<u64> {
    Ok(newest()?.ledger.id())
}

type Stack = Vec<(String, u32, String, bool)>;
type LiveBlock = (usize, u64, &'static str, Option<String>, usize, Stack, Option<&'static str>, u64);

fn stack(frames: &[Frame]) -> Stack {
    frames.iter().map(|f| (f.file.to_string(), f.line, f.function.to_string(), f.library)).collect()
}

/// The blocks in use, oldest first: (address, bytes, kind, device, site, stack, why there is no stack, when it was
/// allocated, in ticks).
#[pyfunction]
fn live_blocks(py: Python<'_>) -> PyResult<Vec<LiveBlock>> {
    let recording = newest()?;
    Ok(py.detach(|| {
        let snapshot = recording.ledger.snapshot(dpmem_hook::ticks());
        let sites: HashMap<SiteId, _> = snapshot.sites.iter().map(|site| (site.id, site)).collect();
        let devices = dpmem_hook::devices();
        let blocks = snapshot.live.iter().map(|block| {
            let site = sites.get(&block.site);
            let origin = site.and_then(|site| site.origin).map(|origin| origin.name());
            let device = devices.name_of(block.device);
            (
                block.address,
                block.bytes,
                block.kind.name(),
                device,
                block.site.index(),
                site.map_or_else(Vec::new, |site| stack(&site.frames)),
                origin,
                block.since,
            )
        });
        blocks.collect()
    }))
}

/// Address and bytes of each block in use.
#[pyfunction]
fn live_sizes(py: Python<'_>) -> PyResult<Vec<(usize, u64)>> {
    let recording = newest()?;
    Ok(py.detach(|| {
        let snapshot = recording.ledger.snapshot(dpmem_hook::ticks());
        snapshot.live.iter().map(|block| (block.address, block.bytes)).collect()
    }))
}

/// The time now, as `live_blocks` and `live_births` tell it.
#[pyfunction]
fn ticks() -> u64 {
    dpmem_hook::ticks()
}

/// Address, bytes, moment of allocation and device.
type Birth = (usize, u64, u64, Option<String>);

/// Each block in use with the moment of its allocation, in ticks; cheaper than `live_blocks`.
#[pyfunction]
fn live_births(py: Python<'_>) -> PyResult<Vec<Birth>> {
    let recording = newest()?;
    Ok(py.detach(|| {
        let devices = dpmem_hook::devices();
        let blocks = recording.ledger.blocks().to_vec().into_iter();
        blocks.map(|(at, block)| (at, block.bytes, block.since, devices.name_of(block.device))).collect()
    }))
}

/// Starts the ledger's peak anew from what is in use.
#[pyfunction]
fn peak_restart() -> PyResult<()> {
    newest()?.ledger.restart_peak(dpmem_hook::ticks());
    Ok(())
}

/// Stack, why there is none, kind, device, blocks, bytes.
type PeakPart = (Stack, Option<&'static str>, &'static str, Option<String>, u64, u64);

/// Bytes of the ledger's peak, and what filled it, largest first; None if other threads kept setting new peaks.
#[pyfunction]
fn peak_parts(py: Python<'_>) -> PyResult<(u64, Option<Vec<PeakPart>>)> {
    let recording = newest()?;
    Ok(py.detach(|| {
        let snapshot = recording.ledger.snapshot(dpmem_hook::ticks());
        let sites: HashMap<SiteId, _> = snapshot.sites.iter().map(|site| (site.id, site)).collect();
        let devices = dpmem_hook::devices();
        let part = |&(id, bytes, count): &(SiteId, u64, u64)| -> Option<PeakPart> {
            let site = sites.get(&id)?;
            let origin = site.origin.map(|origin| origin.name());
            Some((stack(&site.frames), origin, site.kind.name(), devices.name_of(site.device), count, bytes))
        };
        let parts = snapshot.peak.sites.map(|held| {
            let mut parts: Vec<_> = held.iter().filter_map(part).collect();
            parts.sort_by_key(|part| std::cmp::Reverse(part.5));
            parts
        });
        (snapshot.peak.bytes, parts)
    }))
}

/// Number of fills and their bytes.
#[pyfunction]
fn fills() -> PyResult<(u64, u64)> {
    Ok(newest()?.ledger.fills())
}

/// `1.5 MiB`.
#[pyfunction]
fn human_size(bytes: u64) -> String {
    dpmem_report::bytes::size(bytes)
}

/// `3.2 s`.
#[pyfunction]
fn human_duration(seconds: f64) -> String {
    dpmem_report::bytes::duration(seconds)
}

/// `12,345`.
#[pyfunction]
fn human_count(count: u64) -> String {
    dpmem_report::bytes::count(count)
}

/// A part of a program whose peak is followed: what it had found, and what it has done since.
#[pyclass(module = "dpmem._native")]
struct OpenRegion {
    recording: Arc<Recording>,
    region: Option<Region>,
    allocated_bytes: u64,
    alloc_count: u64,
    begun: u64,
    sites: HashMap<SiteId, (u64, u64)>,
}

/// Stack, number and bytes.
type Place = (Stack, Option<&'static str>, u64, u64);

/// What [`OpenRegion::close`] answers.
type Closed = (bool, Option<u64>, u64, u64, u64, u64, Vec<Place>, Vec<Place>);

#[pymethods]
impl OpenRegion {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let recording = newest()?;
        Ok(py.detach(|| {
            let ledger = &recording.ledger;
            let region = ledger.regions.open(ledger.current_bytes());
            let (allocated_bytes, alloc_count) = totals(&recording);
            let snapshot = ledger.snapshot(dpmem_hook::ticks());
            let sites = snapshot.sites.iter().map(|s| (s.id, (s.alloc_count, s.allocated_bytes))).collect();
            let begun = dpmem_hook::ticks();
            OpenRegion { region, allocated_bytes, alloc_count, begun, sites, recording: recording.clone() }
        }))
    }

    /// Ends it: (whether its recording is still the newest, peak bytes or None if too many regions were open, bytes allocated, allocations, bytes left, blocks left,
    /// what allocated, what left): the last two largest first. "Left" are blocks of its own that are still in use.
    fn close(&mut self, py: Python<'_>) -> Closed {
        py.detach(|| {
            let ledger = &self.recording.ledger;
            let peak = self.region.take().map(|region| ledger.regions.close(region));
            let (allocated, count) = totals(&self.recording);
            let snapshot = ledger.snapshot(dpmem_hook::ticks());
            let mut left: HashMap<SiteId, (u64, u64)> = HashMap::new();
            for block in snapshot.live.iter().filter(|block| block.since >= self.begun) {
                let entry = left.entry(block.site).or_default();
                *entry = (entry.0 + 1, entry.1 + block.bytes);
            }
            let (mut allocating, mut leaving) = (Vec::new(), Vec::new());
            for site in &snapshot.sites {
                let origin = site.origin.map(|origin| origin.name());
                let before = self.sites.get(&site.id).copied().unwrap_or_default();
                let (count, bytes) = (site.alloc_count - before.0, site.allocated_bytes - before.1);
                if count > 0 {
                    allocating.push((stack(&site.frames), origin, count, bytes));
                }
                if let Some(&(count, bytes)) = left.get(&site.id) {
                    leaving.push((stack(&site.frames), origin, count, bytes));
                }
            }
            allocating.sort_by_key(|place: &Place| std::cmp::Reverse(place.3));
            leaving.sort_by_key(|place: &Place| std::cmp::Reverse(place.3));
            let (left_count, left_bytes) =
                left.values().fold((0, 0), |sum, &(count, bytes)| (sum.0 + count, sum.1 + bytes));
            let (allocated, count) = (allocated - self.allocated_bytes, count - self.alloc_count);
            let newest = dpmem_hook::recording().is_some_and(|newest| newest.ledger.id() == ledger.id());
            (newest, peak, allocated, count, left_bytes, left_count, allocating, leaving)
        })
    }
}

/// Bytes and number of all allocations over all devices and kinds.
fn totals(recording: &Recording) -> (u64, u64) {
    let totals = recording.ledger.totals(|_, _| true);
    (totals.allocated_bytes, totals.alloc_count)
}
