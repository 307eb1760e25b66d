//! Command lists and queues: copies, fills, barriers and signals. Kernels are appended in [`super::kernel`].

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::abi::{ze_copy_region_t, ze_kernel_timestamp_result_t};
use super::device::{now_ns, ticks};
use super::event::Event;
use super::{Outcome, SUCCESS, created, destroyed};
use crate::device::Device;
use crate::foreign::given;

/// Work, to be done as often as its list is executed.
type Work = Box<dyn Fn() -> Outcome + Send>;
/// The events to wait for; only `given` may look at it.
pub type Events = *const &'static Event;

/// A command list.
pub struct List {
    immediate: bool,
    context: usize,
    device: &'static Device,
    work: Mutex<Vec<Work>>,
}

/// A queue; lists that it is given have ended when the call returns.
pub struct Queue(#[allow(dead_code)] usize);

impl List {
    fn new(immediate: bool, context: usize, device: &'static Device) -> Self {
        Self { immediate, context, device, work: Mutex::default() }
    }

    /// Does it now, or when the list is executed: waits, works, signals.
    pub fn append(
        &self,
        signal: Option<&'static Event>,
        count: u32,
        waits: Events,
        work: impl Fn() -> Outcome + Send + 'static,
    ) -> Outcome {
        let waits = given(waits, count as usize).to_vec();
        let whole = move || {
            for event in &waits {
                event.wait(u64::MAX);
            }
            if let Some(event) = signal {
                event.begin();
            }
            let outcome = work();
            if let Some(event) = signal {
                event.signal();
            }
            outcome
        };
        if self.immediate {
            return whole();
        }
        self.work.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(whole));
        SUCCESS
    }

    fn execute(&self) -> Outcome {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.iter().map(|one| one()).find(|outcome| *outcome != SUCCESS).unwrap_or(SUCCESS)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListCreate(
    context: usize,
    device: &'static Device,
    _desc: *const c_void,
    into: &mut *mut List,
) -> Outcome {
    created(into, List::new(false, context, device))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListCreateImmediate(
    context: usize,
    device: &'static Device,
    _desc: *const c_void,
    into: &mut *mut List,
) -> Outcome {
    created(into, List::new(true, context, device))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListDestroy(list: *mut List) -> Outcome {
    destroyed(list)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListClose(_list: &List) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListReset(list: &List) -> Outcome {
    list.work.lock().unwrap_or_else(PoisonError::into_inner).clear();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListHostSynchronize(_list: &List, _timeout_ns: u64) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListGetDeviceHandle(list: &List, device: &mut &'static Device) -> Outcome {
    *device = list.device;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListGetContextHandle(list: &List, context: &mut usize) -> Outcome {
    *context = list.context;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListGetOrdinal(_list: &List, ordinal: &mut u32) -> Outcome {
    *ordinal = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListIsImmediate(list: &List, immediate: &mut u8) -> Outcome {
    *immediate = list.immediate.into();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListImmediateAppendCommandListsExp(
    list: &List,
    count: u32,
    lists: *const &'static List,
    signal: Option<&'static Event>,
    wait_count: u32,
    waits: Events,
) -> Outcome {
    let lists = given(lists, count as usize).to_vec();
    list.append(signal, wait_count, waits, move || {
        lists.iter().map(|one| one.execute()).find(|outcome| *outcome != SUCCESS).unwrap_or(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendBarrier(
    list: &List,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    list.append(signal, count, waits, || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemoryRangesBarrier(
    list: &List,
    _ranges: u32,
    _sizes: *const usize,
    _starts: *const usize,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    list.append(signal, count, waits, || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendSignalEvent(list: &List, event: &'static Event) -> Outcome {
    list.append(Some(event), 0, std::ptr::null(), || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendWaitOnEvents(list: &List, count: u32, waits: Events) -> Outcome {
    list.append(None, count, waits, || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendEventReset(list: &List, event: &'static Event) -> Outcome {
    list.append(None, 0, std::ptr::null(), || {
        event.reset();
        SUCCESS
    })
}

fn copy(into: usize, from: usize, bytes: usize) {
    // SAFETY: the caller's promise: both hold as many bytes and stay until the work has ended. They may overlap.
    unsafe { std::ptr::copy(from as *const u8, into as *mut u8, bytes) };
}

/// Writes a pattern over and over; what is there already is copied, so that a step is twice the step before.
fn fill(into: usize, pattern: &[u8], bytes: usize) {
    let mut done = pattern.len().min(bytes);
    copy(into, pattern.as_ptr().expose_provenance(), done);
    while done > 0 && done < bytes {
        let step = done.min(bytes - done);
        copy(into + done, into, step);
        done += step;
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemoryCopy(
    list: &List,
    into: usize,
    from: usize,
    bytes: usize,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    list.append(signal, count, waits, move || {
        copy(into, from, bytes);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemoryFill(
    list: &List,
    into: usize,
    pattern: *const u8,
    pattern_bytes: usize,
    bytes: usize,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    let pattern = given(pattern, pattern_bytes).to_vec();
    list.append(signal, count, waits, move || {
        fill(into, &pattern, bytes);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemoryCopyRegion(
    list: &List,
    into: usize,
    into_region: &ze_copy_region_t,
    into_pitch: u32,
    into_slice_pitch: u32,
    from: usize,
    from_region: &ze_copy_region_t,
    from_pitch: u32,
    from_slice_pitch: u32,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    let (into_region, from_region) = (*into_region, *from_region);
    let place = |start: usize, region: ze_copy_region_t, pitch: u32, slice_pitch: u32| {
        move |slice: u32, row: u32| {
            start
                + (region.originZ + slice) as usize * slice_pitch as usize
                + (region.originY + row) as usize * pitch as usize
                + region.originX as usize
        }
    };
    let target = place(into, into_region, into_pitch, into_slice_pitch);
    let source = place(from, from_region, from_pitch, from_slice_pitch);
    list.append(signal, count, waits, move || {
        for slice in 0..into_region.depth.max(1) {
            for row in 0..into_region.height.max(1) {
                copy(target(slice, row), source(slice, row), into_region.width as usize);
            }
        }
        SUCCESS
    })
}

/// All memory is the host's, so there is nothing to fetch.
#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemoryPrefetch(_list: &List, _address: usize, _bytes: usize) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendMemAdvise(
    _list: &List,
    _device: &Device,
    _address: usize,
    _bytes: usize,
    _advice: u32,
) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendWriteGlobalTimestamp(
    list: &List,
    into: usize,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    list.append(signal, count, waits, move || {
        let time = ticks(now_ns());
        copy(into, (&raw const time).expose_provenance(), size_of::<u64>());
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendQueryKernelTimestamps(
    list: &List,
    event_count: u32,
    events: Events,
    into: usize,
    offsets: *const usize,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    const SIZE: usize = size_of::<ze_kernel_timestamp_result_t>();
    let events = given(events, event_count as usize).to_vec();
    let offsets = match given(offsets, event_count as usize) {
        [] => (0..events.len()).map(|index| index * SIZE).collect(),
        offsets => offsets.to_vec(),
    };
    list.append(signal, count, waits, move || {
        for (event, offset) in events.iter().zip(&offsets) {
            let times = event.times();
            copy(into + offset, (&raw const times).expose_provenance(), SIZE);
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandQueueCreate(
    context: usize,
    _device: &Device,
    _desc: *const c_void,
    into: &mut *mut Queue,
) -> Outcome {
    created(into, Queue(context))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandQueueDestroy(queue: *mut Queue) -> Outcome {
    destroyed(queue)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandQueueExecuteCommandLists(
    _queue: &Queue,
    count: u32,
    lists: *const &'static List,
    fence: Option<&Event>,
) -> Outcome {
    let lists = given(lists, count as usize);
    let outcome = lists.iter().map(|list| list.execute()).find(|outcome| *outcome != SUCCESS);
    if let Some(fence) = fence {
        fence.signal();
    }
    outcome.unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandQueueSynchronize(_queue: &Queue, _timeout_ns: u64) -> Outcome {
    SUCCESS
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn a_pattern_fills_just_what_it_should() {
        for (pattern, bytes) in [(&b"abc"[..], 11), (b"a", 1000), (b"abcdefgh", 3), (b"ab", 0), (b"", 5)] {
            let mut memory = vec![b'-'; bytes + 1];
            fill(memory.as_mut_ptr().expose_provenance(), pattern, bytes);
            let mut expected: Vec<u8> = pattern.iter().copied().cycle().take(bytes).collect();
            expected.resize(bytes + 1, b'-');
            assert_eq!(memory, expected);
        }
    }
}
