//! Devices and the accounting per device and kind. Owns these rows of the report, computes nothing.

use serde::{Deserialize, Serialize};

/// One device that the runtime shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Filter string, such as `opencl:cpu:0`.
    pub filter: String,
    /// The name that the driver gives it.
    pub name: String,
    /// Backend, such as `opencl` or `level_zero`.
    pub backend: String,
    /// Type, such as `cpu`, `gpu` or `accelerator`.
    #[serde(rename = "type")]
    pub device_type: String,
    /// Whether it shares its memory with the host.
    pub integrated: Option<bool>,
    /// Whether the default selector takes it.
    pub default: bool,
    /// Score under the default selector.
    pub score: Option<i64>,
    /// Global memory.
    pub capacity_bytes: Option<u64>,
    /// Largest single allocation.
    pub max_alloc_bytes: Option<u64>,
    /// Free memory.
    pub free_bytes: Option<u64>,
    /// Where `free_bytes` was read, or why it is unknown.
    pub free_source: Option<String>,
    /// How far `free_bytes` can be trusted.
    pub free_trust: FreeTrust,
}

/// How far a reading of free memory can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeTrust {
    /// The driver counts it for the whole device.
    Exact,
    /// Derived from other numbers.
    Estimate,
    /// There is no reading.
    Unknown,
}

/// Accounting of one kind of USM on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usm {
    /// Filter string; `None` where the memory belongs to no single device.
    pub device: Option<String>,
    /// Kind of memory.
    pub kind: UsmKind,
    /// In use at the instant of the report.
    pub current_bytes: u64,
    /// The most in use of this device and kind, whenever that was.
    pub peak_bytes: u64,
    /// Sum of all allocations.
    pub allocated_bytes: u64,
    /// Sum of all frees.
    pub freed_bytes: u64,
    /// Blocks in use at the instant of the report.
    pub current_count: u64,
    /// The most blocks in use at once.
    pub peak_count: u64,
    /// Allocations that succeeded.
    pub alloc_count: u64,
    /// Frees of known blocks.
    pub free_count: u64,
    /// Allocations that failed.
    pub failed_count: u64,
}

/// Where USM lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsmKind {
    /// On the device.
    Device,
    /// On the host, visible to devices.
    Host,
    /// Migrating between the two.
    Shared,
}
