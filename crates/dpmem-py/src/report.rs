//! Builds the report of a run from the ledger's snapshot and from what Python knows: devices, and which addresses still
//! belong to a Python object.

use std::collections::HashMap;

use dpmem_core::{Direction, Frame, Kind, SiteId, Snapshot};
use dpmem_hook::{Recording, Status};
use dpmem_report as report;
use pyo3::prelude::*;

use crate::accounting::newest;
use crate::findings::PromotionFacts;
use crate::holders::Held;
use crate::live;
use crate::surroundings::SurroundingsFacts;

/// Registers this module's classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Finished>()?;
    module.add_function(wrap_pyfunction!(recording_gap, module)?)?;
    module.add_function(wrap_pyfunction!(report_build, module)?)
}

/// A report that has been taken.
#[pyclass(module = "dpmem._native", frozen)]
struct Finished {
    report: report::Report,
    unjudged: Option<String>,
    /// How many of the report's notes have been said already.
    said: usize,
    /// The report as one line of JSON.
    #[pyo3(get)]
    json: String,
}

#[pymethods]
impl Finished {
    /// The report as a screen of text, `width` columns wide.
    fn render(&self, py: Python<'_>, width: usize, colour: bool) -> String {
        py.detach(|| {
            let mut report = self.report.clone();
            report.recording.notes.drain(..self.said);
            let cwd = std::env::current_dir().ok();
            report::render(&report, &report::Screen { width, colour, cwd, sources: &report::FileSources })
        })
    }

    /// Codes of the findings, one for each.
    #[getter]
    fn findings(&self) -> Vec<String> {
        self.report.findings.iter().map(|finding| finding.code.clone()).collect()
    }

    /// Why findings may be missing: what they are judged by is not known.
    #[getter]
    fn unjudged(&self) -> Option<String> {
        self.unjudged.clone()
    }

    /// Whether everything was recorded.
    #[getter]
    fn complete(&self) -> bool {
        self.report.recording.complete
    }

    /// Why not, if not.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.report.recording.reason.clone()
    }
}

/// A device as dpctl tells it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct DeviceFacts {
    filter: String,
    name: String,
    backend: String,
    r#type: String,
    integrated: Option<bool>,
    default: bool,
    score: Option<i64>,
    capacity_bytes: Option<u64>,
    max_alloc_bytes: Option<u64>,
    free_bytes: Option<u64>,
    free_source: String,
    free_trust: String,
}

/// What Python knows about the run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunFacts {
    command: Vec<String>,
    python: String,
    exit_code: i32,
    started: String,
    duration_s: f64,
    /// Facts that the user should know; the first have been said on stderr when they arose.
    said: Vec<String>,
    notes: Vec<String>,
    devices: Vec<DeviceFacts>,
    /// What the search for holders found; none if it failed.
    pub(crate) held: Option<Py<Held>>,
    /// Addresses that Python objects hold, where that search is missing or did not end in time.
    pub(crate) referenced: Vec<usize>,
    /// Whether all queued work was waited for.
    pub(crate) drained: bool,
    /// Operations whose operands were looked at.
    pub(crate) promotions: Vec<PromotionFacts>,
    /// Names of functions that were looked at, with file and line.
    pub(crate) operations: Vec<(String, u32, String)>,
    /// Devices, variables and the program's end, if it used SYCL.
    pub(crate) surroundings: Option<SurroundingsFacts>,
    /// Allocations that failed.
    pub(crate) failures: Vec<crate::findings::FailureFacts>,
    /// Lines of files that can't be read, by name: a notebook's cells.
    pub(crate) sources: HashMap<String, Vec<String>>,
    /// Why stacks could not be read, if so.
    no_stacks: Option<String>,
    /// For tests: write the line that marks this moment in the runtime's trace, and list all events.
    mark: bool,
    reference: bool,
}

/// Takes the snapshot and builds the report.
#[pyfunction]
fn report_build(py: Python<'_>, facts: RunFacts) -> PyResult<Finished> {
    let recording = newest()?;
    Ok(py.detach(|| {
        if facts.mark {
            dpmem_hook::write_mark("report");
        }
        let snapshot = recording.ledger.snapshot(dpmem_hook::ticks());
        let events = facts.reference.then(dpmem_hook::reference_events).flatten();
        let built = build(&facts, &recording, &snapshot, &dpmem_hook::status());
        let mut json = built.to_json();
        if let Some(events) = events {
            json.pop();
            json += &format!(",\"reference\":{{\"events\":[{}]}}}}", listed(&events));
        }
        let unjudged = why_unjudged(&facts, &built.recording, &snapshot);
        Finished { report: built, unjudged, said: facts.said.len(), json }
    }))
}

fn build(facts: &RunFacts, recording: &Recording, snapshot: &Snapshot, status: &Status) -> report::Report {
    let seconds = recording.clock.seconds_per_tick();
    let live = live::Live::of(facts, recording, snapshot);
    report::Report {
        schema: report::Report::SCHEMA,
        dpmem: env!("CARGO_PKG_VERSION").to_string(),
        command: facts.command.clone(),
        python: facts.python.clone(),
        pid: std::process::id(),
        exit_code: Some(facts.exit_code),
        started: facts.started.clone(),
        duration_s: facts.duration_s,
        recording: completeness(facts, recording, snapshot, status),
        devices: facts.devices.iter().map(device).collect(),
        usm: snapshot.rows.iter().map(usm).collect(),
        peak: report::Peak {
            bytes: snapshot.peak.bytes,
            at_s: (snapshot.peak.bytes > 0).then_some(snapshot.peak.at_ticks as f64 * seconds),
            sites: peak_sites(snapshot),
        },
        sites: snapshot.sites.iter().map(|site| self::site(site, seconds)).collect(),
        transfers: snapshot.transfers.iter().map(transfer).collect(),
        live: live.rows(),
        history: report::History {
            interval_s: snapshot.history_interval_ticks as f64 * seconds,
            current_bytes: snapshot.history.iter().map(|sample| sample.largest_bytes).collect(),
        },
        pool: pool(),
        findings: crate::findings::found(facts, recording, snapshot, &live.records()),
    }
}

fn pool() -> Option<report::Pool> {
    let (reading, host) = dpmem_hook::pool_status().on.then(dpmem_hook::pool_readings)?;
    let [trim, wait, collect, callback] = reading.rescues;
    Some(report::Pool {
        limit_bytes: reading.limit_bytes,
        reserved_bytes: reading.reserved_bytes,
        cached_bytes: reading.cached_bytes,
        peak_reserved_bytes: reading.peak_reserved_bytes,
        hits: reading.hits,
        misses: reading.misses,
        trims: reading.trims,
        rescues: reading.rescues.iter().sum(),
        rescued_by: report::RescuedBy { trim, wait, collect, callback },
        host: report::HostPool {
            reserved_bytes: host.reserved_bytes,
            cached_bytes: host.cached_bytes,
            peak_reserved_bytes: host.peak_reserved_bytes,
        },
    })
}

/// Why findings may be missing, if they may.
fn why_unjudged(facts: &RunFacts, recording: &report::Recording, snapshot: &Snapshot) -> Option<String> {
    if let Some(reason) = &recording.reason {
        return Some(reason.clone());
    }
    if let Some(no_stacks) = &facts.no_stacks {
        return Some(format!("no Python lines: {no_stacks}"));
    }
    match &facts.held {
        Some(held) if !held.get().complete => Some("the search for holders ran out of time".to_string()),
        None if !snapshot.live.is_empty() => Some("holders could not be searched for".to_string()),
        _ => None,
    }
}

fn completeness(
    facts: &RunFacts,
    recording: &Recording,
    snapshot: &Snapshot,
    status: &Status,
) -> report::Recording {
    let reason = why_incomplete(recording, snapshot, status);
    let mut notes = [facts.said.clone(), facts.notes.clone()].concat();
    if let Some(no_stacks) = &facts.no_stacks {
        notes.push(format!("no Python lines: {no_stacks}"));
    }
    if facts.held.as_ref().is_some_and(|held| !held.get().complete) {
        notes.push("the search for holders ran out of time: there may be more than are listed".to_string());
    }
    if !facts.drained {
        notes.push("queued work did not end in time; what it pins is shown as in flight".to_string());
    }
    report::Recording {
        complete: reason.is_none(),
        reason,
        mechanism: status.mechanism.clone(),
        events: snapshot.events,
        unattributed_events: snapshot.unattributed_events,
        notes,
        unknown_frees: snapshot.unknown_frees,
        failed_events: status.faults,
    }
}

/// Why something may be missing from a recording, if it may.
fn why_incomplete(recording: &Recording, snapshot: &Snapshot, status: &Status) -> Option<String> {
    let mut reasons = Vec::new();
    if let Some(reason) = &status.reason {
        reasons.push(reason.to_string());
    }
    if let Some(fault) = &status.fault {
        reasons.push(format!("dpmem itself failed and stopped recording: {fault}"));
    } else if status.faults > 0 {
        reasons.push(format!("{} events came while another was being entered", status.faults));
    }
    if status.unseen > 0 && status.reason.is_none() {
        reasons.push(format!("the first {} allocations went unseen", status.unseen));
    }
    reasons.extend(status.gap.map(str::to_string));
    if recording.late {
        reasons.push("recording started after the program had begun to use SYCL".to_string());
    }
    if snapshot.unknown_frees > 0 {
        reasons.push(format!("{} blocks were freed that were allocated unseen", snapshot.unknown_frees));
    }
    if snapshot.missed_frees > 0 {
        reasons.push(format!("{} blocks were freed unseen", snapshot.missed_frees));
    }
    if snapshot.peak.sites.is_none() {
        reasons.push("other threads kept allocating while the report was taken".to_string());
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Why something may be missing from the newest recording; None if nothing is.
#[pyfunction]
fn recording_gap(py: Python<'_>) -> PyResult<Option<String>> {
    let recording = newest()?;
    Ok(py.detach(|| {
        let snapshot = recording.ledger.snapshot(dpmem_hook::ticks());
        why_incomplete(&recording, &snapshot, &dpmem_hook::status())
    }))
}

fn device(facts: &DeviceFacts) -> report::Device {
    report::Device {
        filter: facts.filter.clone(),
        name: facts.name.clone(),
        backend: facts.backend.clone(),
        device_type: facts.r#type.clone(),
        integrated: facts.integrated,
        default: facts.default,
        score: facts.score,
        capacity_bytes: facts.capacity_bytes,
        max_alloc_bytes: facts.max_alloc_bytes,
        free_bytes: facts.free_bytes,
        free_source: Some(facts.free_source.clone()),
        free_trust: match facts.free_trust.as_str() {
            "exact" => report::FreeTrust::Exact,
            "estimate" => report::FreeTrust::Estimate,
            _ => report::FreeTrust::Unknown,
        },
    }
}

fn usm(row: &dpmem_core::RowSnapshot) -> report::Usm {
    report::Usm {
        device: device_name(row.device),
        kind: kind(row.kind),
        current_bytes: row.in_use.current.bytes,
        peak_bytes: row.in_use.peak.bytes,
        allocated_bytes: row.totals.allocated_bytes,
        freed_bytes: row.totals.freed_bytes,
        current_count: row.in_use.current.count,
        peak_count: row.in_use.peak.count,
        alloc_count: row.totals.alloc_count,
        free_count: row.totals.free_count,
        failed_count: row.totals.failed_count,
    }
}

fn peak_sites(snapshot: &Snapshot) -> Vec<report::PeakSite> {
    let parts = snapshot.peak.sites.iter().flatten();
    let mut sites: Vec<_> =
        parts.map(|&(id, bytes, count)| report::PeakSite { site: number(id), bytes, count }).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
    sites
}

fn site(site: &dpmem_core::SiteSnapshot, seconds: f64) -> report::Site {
    report::Site {
        id: number(site.id),
        kind: kind(site.kind),
        device: device_name(site.device),
        stack: stack(&site.frames),
        alloc_count: site.alloc_count,
        allocated_bytes: site.allocated_bytes,
        peak_bytes: site.peak_bytes,
        live_bytes: site.live_bytes,
        live_count: site.live_count,
        runtime_s: site.runtime_ticks as f64 * seconds,
        label: site.origin.map(|origin| origin.name().to_string()),
    }
}

fn transfer(transfer: &dpmem_core::TransferSnapshot) -> report::Transfer {
    report::Transfer {
        direction: match transfer.direction {
            Direction::HostToDevice => report::Direction::HostToDevice,
            Direction::DeviceToHost => report::Direction::DeviceToHost,
            Direction::DeviceToDevice => report::Direction::DeviceToDevice,
        },
        stack: stack(&transfer.frames),
        count: transfer.counts.count,
        bytes: transfer.counts.bytes,
    }
}

pub(crate) fn number(id: SiteId) -> u64 {
    id.index() as u64
}

fn device_name(device: dpmem_core::DeviceId) -> Option<String> {
    dpmem_hook::devices().name_of(device)
}

fn kind(kind: Kind) -> report::UsmKind {
    match kind {
        Kind::Device => report::UsmKind::Device,
        Kind::Host => report::UsmKind::Host,
        Kind::Shared => report::UsmKind::Shared,
    }
}

fn stack(frames: &[Frame]) -> Vec<report::Frame> {
    let frame = |f: &Frame| report::Frame {
        file: f.file.to_string(),
        line: f.line,
        function: f.function.to_string(),
        library: f.library,
    };
    frames.iter().map(frame).collect()
}

fn listed(events: &[dpmem_hook::ReferenceEvent]) -> String {
    let event = |e: &dpmem_hook::ReferenceEvent| {
        let op = if e.allocation { "alloc" } else { "free" };
        let device = device_name(e.device).map_or("null".to_string(), |name| format!("{name:?}"));
        let (kind, site) = (e.kind.name(), e.site.index());
        format!("[{op:?},{kind:?},{device},{},{site},{}]", e.bytes, e.address)
    };
    events.iter().map(event).collect::<Vec<_>>().join(",")
}
