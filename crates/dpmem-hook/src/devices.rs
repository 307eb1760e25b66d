//! The runtime's device handles, and the small numbers that the ledger has for them.
//!
//! A sub-device's memory is its root device's, so it gets the root's number. The names that people use (`opencl:cpu:0`)
//! are dpctl's business: Python reads a property of each dpctl device while [`observe_device`] listens which handle the
//! runtime is asked about, and so names the handle, whatever order either side lists its devices in.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use dpmem_core::{DeviceId, Kind, MAX_DEVICES};

use crate::abi::{self, Handle, Pointer, SUCCESS};
use crate::fault::{self, Fault};
use crate::functions::original;
use crate::published;

const HANDLES: usize = 256;

/// Handles, the number of each, and the name of each number.
pub struct DeviceTable {
    handles: [AtomicUsize; HANDLES],
    numbers: [AtomicU8; HANDLES],
    adding: Mutex<Names>,
}

struct Names {
    handles: usize,
    /// The name of each number; number 0 stays without.
    names: Vec<Option<String>>,
}

static DEVICES: DeviceTable = DeviceTable {
    handles: [const { AtomicUsize::new(0) }; HANDLES],
    numbers: [const { AtomicU8::new(0) }; HANDLES],
    adding: Mutex::new(Names { handles: 0, names: Vec::new() }),
};

/// The device of each context and queue that has just one, as far as asked for.
static OWNERS: RwLock<Vec<(usize, DeviceId)>> = RwLock::new(Vec::new());

/// The devices of this process.
pub fn devices() -> &'static DeviceTable {
    &DEVICES
}

impl DeviceTable {
    /// The number of a device, given out at its first sight.
    pub(crate) fn number(&self, handle: Handle) -> DeviceId {
        let handle = handle as usize;
        if handle == 0 {
            return DeviceId::NONE;
        }
        for (known, number) in self.handles.iter().zip(&self.numbers) {
            match known.load(Ordering::Acquire) {
                0 => break,
                known if known == handle => {
                    return DeviceId::new(usize::from(number.load(Ordering::Acquire)));
                }
                _ => {}
            }
        }
        let root = root_of(handle);
        let root = if root == handle { None } else { Some(self.number(root as Handle)) };
        self.add(handle, root)
    }

    fn add(&self, handle: usize, root: Option<DeviceId>) -> DeviceId {
        let mut names = self.lock();
        let known = self.handles.iter().take(names.handles).position(|h| h.load(Ordering::Acquire) == handle);
        if let Some(index) = known {
            return DeviceId::new(usize::from(self.numbers[index].load(Ordering::Acquire)));
        }
        if names.handles == HANDLES {
            return root.unwrap_or(DeviceId::NONE);
        }
        let number = root.unwrap_or_else(|| {
            if names.names.is_empty() {
                names.names.push(None);
            }
            let number = DeviceId::new(names.names.len());
            if number != DeviceId::NONE {
                names.names.push(None);
            }
            number
        });
        if root.is_none()
            && let Some(map) = published::map()
            && let Some(name) = text(handle, abi::DEVICE_INFO_NAME)
        {
            map.name(number, &name);
        }
        self.numbers[names.handles].store(number.index() as u8, Ordering::Release);
        self.handles[names.handles].store(handle, Ordering::Release);
        names.handles += 1;
        number
    }

    /// Gives the device with that handle a name.
    pub fn name(&self, handle: usize, name: &str) -> DeviceId {
        let number = self.number(handle as Handle);
        if let Some(known) = self.lock().names.get_mut(number.index()) {
            *known = Some(name.to_string());
            if let Some(map) = published::map() {
                map.name(number, name);
            }
        }
        number
    }

    /// The name of a device, if it has been given one.
    pub fn name_of(&self, device: DeviceId) -> Option<String> {
        self.lock().names.get(device.index()).cloned().flatten()
    }

    /// A handle of each device that has no name yet.
    pub fn unnamed(&self) -> Vec<usize> {
        let names = self.lock();
        let unnamed = |&(_, number): &(usize, usize)| names.names.get(number).is_some_and(Option::is_none);
        let number = |n: &AtomicU8| usize::from(n.load(Ordering::Acquire));
        let handles = self.handles.iter().zip(&self.numbers).take(names.handles);
        let all = handles.map(|(handle, n)| (handle.load(Ordering::Acquire), number(n)));
        all.filter(|&(_, number)| number > 0).filter(unnamed).map(|(handle, _)| handle).collect()
    }

    /// The device of that name.
    pub fn named(&self, name: &str) -> Option<DeviceId> {
        let names = self.lock();
        names.names.iter().position(|known| known.as_deref() == Some(name)).map(DeviceId::new)
    }

    /// The first handle that was seen of a device.
    fn handle_of(&self, device: DeviceId) -> Option<Handle> {
        let known = self.handles.iter().zip(&self.numbers);
        let mut known = known.map(|(h, n)| (h.load(Ordering::Acquire), n.load(Ordering::Acquire)));
        let (handle, _) = known.find(|&(h, n)| h != 0 && usize::from(n) == device.index())?;
        (device != DeviceId::NONE).then_some(handle as Handle)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Names> {
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const _: () = assert!(MAX_DEVICES <= u8::MAX as usize);

fn root_of(handle: usize) -> usize {
    let Some(info) = original::device_info() else { return handle };
    let mut root = handle;
    // Sub-devices may be partitioned again, though seldom; a runtime that answers in circles must not hold us.
    for _ in 0..8 {
        let mut parent = 0usize;
        // SAFETY: the runtime handed this device handle out and it is in use by the call being recorded; the answer is
        // one handle, for which there is room.
        let result = unsafe {
            info(
                root as Handle,
                abi::DEVICE_INFO_PARENT_DEVICE,
                size_of::<usize>(),
                (&raw mut parent).cast(),
                std::ptr::null_mut(),
            )
        };
        if result != SUCCESS || parent == 0 {
            break;
        }
        root = parent;
    }
    root
}

/// What the runtime tells of a device beyond what dpctl passes on. Each is `None` where the backend doesn't tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Where it sits on the PCI bus.
    pub pci_address: Option<String>,
    /// PCI vendor and device.
    pub ids: Option<(u32, u32)>,
    /// Whether it uses the host's memory.
    pub host_memory: Option<bool>,
    /// Bytes free.
    pub free_bytes: Option<u64>,
    /// Tells pieces of hardware apart, whichever backend shows them.
    pub uuid: Option<[u8; 16]>,
}

/// The properties of the device with that handle, which came from [`observe_device`] in this process. Makes no context.
pub fn properties(handle: usize) -> DeviceProperties {
    let number = |property| answer::<4>(handle, property).map(u32::from_ne_bytes);
    DeviceProperties {
        pci_address: text(handle, abi::DEVICE_INFO_PCI_ADDRESS),
        ids: number(abi::DEVICE_INFO_VENDOR_ID).zip(number(abi::DEVICE_INFO_DEVICE_ID)),
        // A `ur_bool_t` is one byte.
        host_memory: answer::<1>(handle, abi::DEVICE_INFO_HOST_UNIFIED_MEMORY).map(|[flag]| flag != 0),
        free_bytes: answer::<8>(handle, abi::DEVICE_INFO_GLOBAL_MEM_FREE).map(u64::from_ne_bytes),
        uuid: answer::<16>(handle, abi::DEVICE_INFO_UUID).filter(|uuid| uuid.iter().any(|&byte| byte != 0)),
    }
}

/// A property of exactly `N` bytes.
fn answer<const N: usize>(handle: usize, property: u32) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (answer_into(handle, property, &mut bytes)? == N).then_some(bytes)
}

/// A property that is a text.
fn text(handle: usize, property: u32) -> Option<String> {
    let mut bytes = [0; 256];
    let length = answer_into(handle, property, &mut bytes)?;
    let text = bytes.get(..length)?.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(text).trim().to_string()).filter(|text| !text.is_empty())
}

/// Asks for a property; how long the answer is. `None` if there is none, or no room for it.
fn answer_into(handle: usize, property: u32, room: &mut [u8]) -> Option<usize> {
    let info = original::device_info().filter(|_| handle != 0)?;
    let (mut length, device) = (0usize, handle as Handle);
    // SAFETY: the runtime handed this device handle out, and root devices live as long as the process; the answer may
    // be as long as `room`, which the call is told.
    let result = unsafe { info(device, property, room.len(), room.as_mut_ptr().cast(), &raw mut length) };
    (result == SUCCESS && length <= room.len()).then_some(length)
}

/// The device of a context, if it has just one.
pub(crate) fn of_context(context: Handle) -> DeviceId {
    owner(context as usize, || context_device(context))
}

/// The device of a queue.
pub(crate) fn of_queue(queue: Handle) -> DeviceId {
    owner(queue as usize, || {
        ask_queue(queue, abi::QUEUE_INFO_DEVICE).map_or(DeviceId::NONE, |device| DEVICES.number(device))
    })
}

/// The context of a queue.
pub(crate) fn context_of(queue: Handle) -> Option<Handle> {
    ask_queue(queue, abi::QUEUE_INFO_CONTEXT)
}

/// Whether a device, which is in use, is a CPU.
pub(crate) fn is_cpu(device: Handle) -> bool {
    answer::<4>(device as usize, abi::DEVICE_INFO_TYPE).map(u32::from_ne_bytes) == Some(abi::DEVICE_TYPE_CPU)
}

/// Whether a context belongs to just one device, which is a CPU.
pub(crate) fn is_cpu_of_context(context: Handle) -> bool {
    DEVICES.handle_of(of_context(context)).is_some_and(is_cpu)
}

/// What a device can hold, as the runtime says.
pub(crate) fn capacity(device: DeviceId) -> Option<u64> {
    if fault::ordered() == Some(Fault::NoCapacity) {
        return None;
    }
    device_bytes(device, abi::DEVICE_INFO_GLOBAL_MEM)
}

/// The largest block that a device gives, as the runtime says.
pub(crate) fn max_alloc(device: DeviceId) -> Option<u64> {
    device_bytes(device, abi::DEVICE_INFO_MAX_ALLOC)
}

fn device_bytes(device: DeviceId, property: u32) -> Option<u64> {
    let (info, handle) = (original::device_info()?, DEVICES.handle_of(device)?);
    let mut bytes = 0u64;
    let into = (&raw mut bytes).cast();
    // SAFETY: the runtime handed this handle out and root devices live as long as it; the answer is one 64-bit number.
    let result = unsafe { info(handle, property, size_of::<u64>(), into, std::ptr::null_mut()) };
    (result == SUCCESS && bytes > 0).then_some(bytes)
}

/// A handle that a queue answers.
fn ask_queue(queue: Handle, property: u32) -> Option<Handle> {
    let info = original::queue_info()?;
    let mut answer: Handle = std::ptr::null_mut();
    // SAFETY: the queue is in use by the call being recorded; the answer is one handle, for which there is room.
    let result =
        unsafe { info(queue, property, size_of::<Handle>(), (&raw mut answer).cast(), std::ptr::null_mut()) };
    (result == SUCCESS && !answer.is_null()).then_some(answer)
}

/// The kind of memory an address points to, as the runtime tells it; `None` for memory that is no USM.
pub(crate) fn kind_of(address: Pointer, queue: Handle) -> Option<Kind> {
    if queue.is_null() {
        return None;
    }
    let (context, info) = (ask_queue(queue, abi::QUEUE_INFO_CONTEXT)?, original::usm_alloc_info()?);
    let mut kind = 0u32;
    let into = (&raw mut kind).cast();
    // SAFETY: the context belongs to a queue in use by the call being recorded; any address may be asked about, and the
    // answer is one 32-bit number.
    let result = unsafe {
        info(context, address, abi::USM_ALLOC_INFO_TYPE, size_of::<u32>(), into, std::ptr::null_mut())
    };
    match kind {
        _ if result != SUCCESS => None,
        abi::USM_TYPE_HOST => Some(Kind::Host),
        abi::USM_TYPE_DEVICE => Some(Kind::Device),
        abi::USM_TYPE_SHARED => Some(Kind::Shared),
        _ => None,
    }
}

/// A context or queue was created, so its device is known without asking.
pub(crate) fn created(owner: usize, devices: &[Handle]) {
    let device = match devices {
        [one] => DEVICES.number(*one),
        _ => DeviceId::NONE,
    };
    forget(owner);
    OWNERS.write().unwrap_or_else(PoisonError::into_inner).push((owner, device));
}

/// A context or queue was released; its handle may come to mean another.
pub(crate) fn forget(owner: usize) {
    let known = |owners: &[(usize, DeviceId)]| owners.iter().any(|&(o, _)| o == owner);
    if known(&OWNERS.read().unwrap_or_else(PoisonError::into_inner)) {
        OWNERS.write().unwrap_or_else(PoisonError::into_inner).retain(|&(o, _)| o != owner);
    }
}

/// Recording begins: what was released in the meantime is not known.
pub(crate) fn forget_all() {
    OWNERS.write().unwrap_or_else(PoisonError::into_inner).clear();
}

fn owner(handle: usize, ask: impl FnOnce() -> DeviceId) -> DeviceId {
    let known = {
        let owners = OWNERS.read().unwrap_or_else(PoisonError::into_inner);
        owners.iter().find(|&&(owner, _)| owner == handle).map(|&(_, device)| device)
    };
    known.unwrap_or_else(|| {
        let device = ask();
        OWNERS.write().unwrap_or_else(PoisonError::into_inner).push((handle, device));
        device
    })
}

fn context_device(context: Handle) -> DeviceId {
    let Some(info) = original::context_info() else { return DeviceId::NONE };
    let mut count = 0u32;
    // SAFETY: the context is in use by the call being recorded; the answer is one 32-bit number.
    let counted = unsafe {
        let into = (&raw mut count).cast();
        info(context, abi::CONTEXT_INFO_NUM_DEVICES, size_of::<u32>(), into, std::ptr::null_mut())
    };
    if counted != SUCCESS || count != 1 {
        return DeviceId::NONE;
    }
    let mut device = 0usize;
    // SAFETY: as above; the context has said that the answer is one handle.
    let found = unsafe {
        let into = (&raw mut device).cast();
        info(context, abi::CONTEXT_INFO_DEVICES, size_of::<usize>(), into, std::ptr::null_mut())
    };
    if found == SUCCESS { DEVICES.number(device as Handle) } else { DeviceId::NONE }
}

static LISTENERS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The first device the runtime was asked about while this thread listened.
    static HEARD: Cell<Option<usize>> = const { Cell::new(None) };
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    /// Whose the first block is that the runtime was asked about while this thread listened.
    static HEARD_BLOCK: Cell<Option<BlockOwner>> = const { Cell::new(None) };
}

/// The handle of the first device that the runtime is asked about on this thread during `ask`; 0 if it is asked about
/// none.
pub fn observe_device<T>(ask: impl FnOnce() -> T) -> (T, usize) {
    LISTENERS.store(true, Ordering::SeqCst);
    HEARD.set(None);
    LISTENING.set(true);
    let answer = ask();
    LISTENING.set(false);
    (answer, HEARD.take().unwrap_or(0))
}

/// The runtime is being asked about a device.
pub(crate) fn asked_about(device: Handle) {
    if LISTENERS.load(Ordering::Relaxed) && LISTENING.get() && HEARD.get().is_none() {
        HEARD.set(Some(device as usize));
    }
}

/// Whose a block is that the runtime was asked about; `NONE` where nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOwner {
    /// The device of its context, if that has just one.
    pub context: DeviceId,
    /// The device whose memory it lies in, as the runtime says.
    pub told: DeviceId,
}

/// Whose the first block is that the runtime is asked about on this thread during `ask`; `None` if it is asked about
/// none.
pub fn observe_block<T>(ask: impl FnOnce() -> T) -> (T, Option<BlockOwner>) {
    LISTENERS.store(true, Ordering::SeqCst);
    HEARD_BLOCK.set(None);
    LISTENING.set(true);
    let answer = ask();
    LISTENING.set(false);
    (answer, HEARD_BLOCK.take())
}

/// The runtime is being asked about a block.
pub(crate) fn asked_about_block(context: Handle, address: Pointer) {
    if LISTENERS.load(Ordering::Relaxed) && LISTENING.get() && HEARD_BLOCK.get().is_none() {
        let owner = || BlockOwner { context: of_context(context), told: told_of(context, address) };
        HEARD_BLOCK.set(fault::caught_nested(owner));
    }
}

fn told_of(context: Handle, address: Pointer) -> DeviceId {
    let Some(info) = original::usm_alloc_info() else { return DeviceId::NONE };
    let mut device: Handle = std::ptr::null_mut();
    let into = (&raw mut device).cast();
    // SAFETY: the context is in use by the call that is listened to; any address may be asked about, and the answer is
    // one handle.
    let result = unsafe {
        info(context, address, abi::USM_ALLOC_INFO_DEVICE, size_of::<Handle>(), into, std::ptr::null_mut())
    };
    if result == SUCCESS { DEVICES.number(device) } else { DeviceId::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_get_numbers_and_names() {
        let table = devices();
        let first = table.name(0x1000, "opencl:cpu:0");
        let second = table.number(0x2000 as Handle);
        assert_ne!(first, second);
        assert_eq!(table.number(0x1000 as Handle), first);
        assert_eq!(table.named("opencl:cpu:0"), Some(first));
        assert_eq!(table.name_of(second), None);
        assert!(table.unnamed().contains(&0x2000) && !table.unnamed().contains(&0x1000));
        assert_eq!(table.number(std::ptr::null_mut()), DeviceId::NONE);
        assert_eq!(table.name_of(DeviceId::NONE), None);
    }

    #[test]
    fn a_context_of_several_devices_has_no_one_device() {
        let handles = [0x11_000 as Handle, 0x12_000 as Handle];
        created(0xc0, &handles);
        created(0xc1, &handles[..1]);
        assert_eq!(of_context(0xc0 as Handle), DeviceId::NONE);
        assert_eq!(of_context(0xc1 as Handle), devices().number(handles[0]));
        forget(0xc1);
        assert_eq!(of_context(0xc1 as Handle), DeviceId::NONE, "nobody is left to ask");
    }

    #[test]
    fn only_the_listening_thread_hears() {
        let (_, heard) = observe_device(|| {
            std::thread::scope(|scope| scope.spawn(|| asked_about(0x99 as Handle)).join()).expect("no panic");
            asked_about(0x77 as Handle);
            asked_about(0x88 as Handle);
        });
        assert_eq!(heard, 0x77);
        asked_about(0x55 as Handle);
        assert_eq!(observe_device(|| ()).1, 0);
    }

    #[test]
    fn the_first_block_that_is_asked_about_is_heard() {
        let device = 0x13_000 as Handle;
        created(0xc2, &[device]);
        let (_, heard) = observe_block(|| {
            asked_about_block(0xc2 as Handle, 0x5000 as Pointer);
            asked_about_block(0xc3 as Handle, 0x6000 as Pointer);
        });
        let expected = BlockOwner { context: devices().number(device), told: DeviceId::NONE };
        assert_eq!(heard, Some(expected), "and nobody is there to ask");
        asked_about_block(0xc2 as Handle, 0x5000 as Pointer);
        assert_eq!(observe_block(|| ()).1, None);
    }
}
