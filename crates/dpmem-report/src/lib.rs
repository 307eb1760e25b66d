//! What a recording looks like to people and to programs.
//!
//! Owns the report as plain data ([`Report`], whose JSON form is dpmem's contract), the one-screen text summary
//! ([`render`]); how quantities are written is [`bytes`].
//!
//! Must not: measure, decide what is a finding, print, ask a terminal anything, or read any file other than the
//! source lines that it shows, and those only through [`SourceLines`]. Nothing here fails: a number that nobody knows
//! is `None` in the data, and a source line that cannot be read is left out.

mod report;
mod screen;

pub use dpmem_core::bytes;
pub use report::{
    Device, Direction, Finding, Frame, FreeTrust, History, Holder, HolderKind, HostPool, Live, LiveState,
    Peak, PeakSite, Pool, Recording, Report, RescuedBy, Severity, Site, Transfer, Usm, UsmKind,
};
pub use screen::{FileSources, NoSources, Screen, SourceLines, render};
