//! The OpenCL layer: one more platform, whose devices forward to the CPU runtime.
//!
//! Contexts, queues, programs, kernels and events of a simulated device are the CPU runtime's own objects, so that all
//! calls which name no device pass by. Where a call names one, the CPU device takes its place ([`platform`],
//! [`context`], [`program`]); where an answer names one, the simulated device does. Memory is counted in [`usm`].
//!
//! A layer sees all platforms: what belongs to others is passed on as it is.

pub mod context;
pub mod platform;
pub mod program;
pub mod target;
pub mod usm;

use std::ffi::c_void;
use std::sync::OnceLock;

use target::{Slot, Target};

use crate::foreign::given;

/// Any OpenCL object.
pub type Handle = usize;
/// `CL_SUCCESS`, or an error below 0.
pub type Status = i32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const DEVICE_NOT_FOUND: Status = -1;
pub(crate) const OUT_OF_RESOURCES: Status = -5;
pub(crate) const OUT_OF_HOST_MEMORY: Status = -6;
pub(crate) const DEVICE_PARTITION_FAILED: Status = -18;
pub(crate) const INVALID_VALUE: Status = -30;
pub(crate) const INVALID_BUFFER_SIZE: Status = -61;

struct Layer {
    target: Target,
    table: Vec<usize>,
}

static LAYER: OnceLock<Layer> = OnceLock::new();

/// What comes below the layer. The loader calls no function of the layer before it has begun.
fn target() -> &'static Target {
    match LAYER.get() {
        Some(layer) => &layer.target,
        None => unreachable!("the loader calls `clInitLayer` first"),
    }
}

fn begin(count: u32, below: *const usize, entries: &mut u32, table: &mut *const usize) -> Status {
    let layer = LAYER.get_or_init(|| {
        let below = given(below, count as usize).to_vec();
        let mut table = vec![0; below.len()];
        let parts = [platform::FUNCTIONS, context::FUNCTIONS, program::FUNCTIONS, usm::FUNCTIONS];
        for &(Slot(index, _), function) in parts.into_iter().flatten() {
            if let Some(entry) = table.get_mut(index) {
                *entry = function.addr();
            }
        }
        Layer { target: Target::new(below), table }
    });
    *entries = layer.table.len() as u32;
    *table = layer.table.as_ptr();
    SUCCESS
}

/// Where the loader learns what this is.
#[unsafe(no_mangle)]
pub extern "C" fn clGetLayerInfo(
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const API_VERSION: u32 = 0x4240;
    const NAME: u32 = 0x4241;
    match what {
        API_VERSION => answer(size, into, needed, &100u32.to_ne_bytes()),
        NAME => answer(size, into, needed, b"simulated-devices\0"),
        _ => INVALID_VALUE,
    }
}

/// Where the loader puts the layer above what it has.
#[unsafe(no_mangle)]
pub extern "C" fn clInitLayer(
    count: u32,
    below: *const usize,
    entries: &mut u32,
    table: &mut *const usize,
) -> Status {
    begin(count, below, entries, table)
}

/// The same for newer loaders.
#[unsafe(no_mangle)]
pub extern "C" fn clInitLayerWithProperties(
    count: u32,
    below: *const usize,
    entries: &mut u32,
    table: &mut *const usize,
    _properties: *const c_void,
) -> Status {
    begin(count, below, entries, table)
}

/// Newer loaders say when they go.
#[unsafe(no_mangle)]
pub extern "C" fn clDeinitLayer() -> Status {
    SUCCESS
}

/// Answers a question in OpenCL's manner: what fits, and how much it is.
fn answer(size: usize, into: *mut u8, needed: Option<&mut usize>, data: &[u8]) -> Status {
    if let Some(needed) = needed {
        *needed = data.len();
    }
    if !into.is_null() {
        if size < data.len() {
            return INVALID_VALUE;
        }
        // SAFETY: the caller's promise: `into` has room for `size` bytes, which is enough.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), into, data.len()) };
    }
    SUCCESS
}

/// Answers with several handles.
fn answer_handles(size: usize, into: *mut u8, needed: Option<&mut usize>, handles: &[Handle]) -> Status {
    let bytes: Vec<u8> = handles.iter().flat_map(|handle| handle.to_ne_bytes()).collect();
    answer(size, into, needed, &bytes)
}

/// Fills a list in OpenCL's manner: as many as there is room for, and how many there are.
fn list(all: &[Handle], room: u32, into: *mut Handle, found: Option<&mut u32>) {
    if let Some(found) = found {
        *found = all.len() as u32;
    }
    if !into.is_null() {
        for (index, handle) in all.iter().take(room as usize).enumerate() {
            // SAFETY: the caller's promise: `into` has room for `room` handles.
            unsafe { into.add(index).write(*handle) };
        }
    }
}
