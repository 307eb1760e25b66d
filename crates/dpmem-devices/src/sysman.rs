//! Level Zero's system management interface, loaded at run time where its loader is installed.
//!
//! One of the two FFI modules of this crate. It asks devices for their memory and makes no context. The library stays
//! loaded for the life of the process, as drivers start threads of their own.

use std::ffi::c_void;
use std::sync::OnceLock;

use libloading::Library;

use crate::{Address, Error};

type Handle = *mut c_void;
type Result32 = u32;
type Init = unsafe extern "C" fn(u32) -> Result32;
type DriverGet = unsafe extern "C" fn(*mut u32, *mut Handle) -> Result32;
type ListOf = unsafe extern "C" fn(Handle, *mut u32, *mut Handle) -> Result32;
type PciProperties = unsafe extern "C" fn(Handle, *mut Pci) -> Result32;
type MemoryState = unsafe extern "C" fn(Handle, *mut State) -> Result32;

const LOADER: &str = "libze_loader.so.1";
/// `ZES_STRUCTURE_TYPE_PCI_PROPERTIES`, `ZES_STRUCTURE_TYPE_MEM_STATE`.
const PCI_PROPERTIES: u32 = 0x2;
const MEM_STATE: u32 = 0x1e;
/// More drivers, devices or memories than this are not believed.
const MAX_LIST: u32 = 256;

/// `zes_pci_properties_t`.
#[repr(C)]
struct Pci {
    stype: u32,
    next: *mut c_void,
    address: [u32; 4],
    generation: i32,
    width: i32,
    bandwidth: i64,
    counters: [u8; 3],
}

/// `zes_mem_state_t`.
#[repr(C)]
struct State {
    stype: u32,
    next: *const c_void,
    health: u32,
    free: u64,
    size: u64,
}

struct Sysman {
    driver_get: DriverGet,
    device_get: ListOf,
    pci_properties: PciProperties,
    memories: ListOf,
    memory_state: MemoryState,
    /// Keeps the functions above where they are.
    _library: Library,
}

/// A device that Sysman shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Where it sits.
    pub address: Address,
    handle: usize,
}

static SYSMAN: OnceLock<Result<Sysman, String>> = OnceLock::new();

fn failed(message: impl Into<String>) -> Error {
    Error::Library { library: "Level Zero Sysman", message: message.into() }
}

fn sysman() -> Result<&'static Sysman, Error> {
    SYSMAN.get_or_init(load).as_ref().map_err(|message| failed(message.clone()))
}

fn load() -> Result<Sysman, String> {
    // SAFETY: the library is Level Zero's loader, whose initialisers are meant to run when it is loaded.
    let library = unsafe { Library::new(LOADER) }.map_err(|_| format!("no {LOADER}"))?;
    // SAFETY: each name is a function of the Sysman specification with the signature that its type here repeats. The
    // addresses are used only while `_library` keeps the library loaded, which is for ever: it lies in a static.
    unsafe {
        let init: Init = symbol(&library, "zesInit")?;
        let sysman = Sysman {
            driver_get: symbol(&library, "zesDriverGet")?,
            device_get: symbol(&library, "zesDeviceGet")?,
            pci_properties: symbol(&library, "zesDevicePciGetProperties")?,
            memories: symbol(&library, "zesDeviceEnumMemoryModules")?,
            memory_state: symbol(&library, "zesMemoryGetState")?,
            _library: library,
        };
        match init(0) {
            0 => Ok(sysman),
            code => Err(format!("zesInit answered {code:#x}")),
        }
    }
}

/// Looks a function up.
///
/// # Safety
/// `F` is the type of the function of that name, and the library stays loaded as long as the result is used.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller vouches for the type.
    unsafe { library.get::<F>(name.as_bytes()) }
        .map(|function| *function)
        .map_err(|_| format!("{LOADER} has no {name}"))
}

/// Fills a list in the two steps that Level Zero has for it.
fn listed(ask: impl Fn(*mut u32, *mut Handle) -> Result32) -> Result<Vec<Handle>, Error> {
    let mut count = 0;
    let answer = ask(&raw mut count, std::ptr::null_mut());
    if answer != 0 || count > MAX_LIST {
        return Err(failed(format!("a list of {count} could not be had ({answer:#x})")));
    }
    let mut handles = vec![std::ptr::null_mut(); count as usize];
    let answer = ask(&raw mut count, handles.as_mut_ptr());
    if answer != 0 {
        return Err(failed(format!("a list could not be had ({answer:#x})")));
    }
    handles.truncate(count as usize);
    Ok(handles)
}

/// Every device that Sysman shows.
///
/// # Errors
/// There is no loader, no driver, or it refused.
pub fn devices() -> Result<Vec<Device>, Error> {
    let sysman = sysman()?;
    let mut found = Vec::new();
    // SAFETY: the function takes a count and, where not null, room for so many handles; `listed` gives both.
    for driver in listed(|count, room| unsafe { (sysman.driver_get)(count, room) })? {
        // SAFETY: as above; the driver's handle has just been handed out and is never taken back.
        for handle in listed(|count, room| unsafe { (sysman.device_get)(driver, count, room) })? {
            if let Some(address) = address(sysman, handle) {
                found.push(Device { address, handle: handle as usize });
            }
        }
    }
    Ok(found)
}

fn address(sysman: &Sysman, device: Handle) -> Option<Address> {
    let mut pci = Pci {
        stype: PCI_PROPERTIES,
        next: std::ptr::null_mut(),
        address: [0; 4],
        generation: 0,
        width: 0,
        bandwidth: 0,
        counters: [0; 3],
    };
    // SAFETY: the handle is one of the driver's devices; the structure is of the type that `stype` names and lives here.
    let answer = unsafe { (sysman.pci_properties)(device, &raw mut pci) };
    let byte = |number: u32| u8::try_from(number).ok();
    let [domain, bus, slot, function] = pci.address;
    (answer == 0).then_some(())?;
    Some(Address { parts: (domain, byte(bus)?, byte(slot)?, byte(function)?) })
}

/// Total and free bytes of a device's own memory; `None` for one that has none of its own.
///
/// # Errors
/// It refused.
pub fn memory(device: Device) -> Result<Option<(u64, u64)>, Error> {
    let sysman = sysman()?;
    let mut sums = None;
    // SAFETY: the device's handle came from the same library and is never taken back; `listed` gives count and room.
    for memory in listed(|count, room| unsafe { (sysman.memories)(device.handle as Handle, count, room) })? {
        let mut state = State { stype: MEM_STATE, next: std::ptr::null(), health: 0, free: 0, size: 0 };
        // SAFETY: the handle is one of the device's memories; the structure is of the type that `stype` names.
        let answer = unsafe { (sysman.memory_state)(memory, &raw mut state) };
        if answer != 0 {
            return Err(failed(format!("zesMemoryGetState answered {answer:#x}")));
        }
        let (total, free): (u64, u64) = sums.unwrap_or_default();
        sums = Some((total.saturating_add(state.size), free.saturating_add(state.free)));
    }
    Ok(sums)
}
