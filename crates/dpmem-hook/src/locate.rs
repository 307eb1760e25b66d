//! Finds the slots of the runtime's functions in its dispatch table.
//!
//! The table is an object on the heap that a library's writable data points to: a run of pointers to code, 200 and
//! more. While the search lasts, every slot of every such run holds a stub that passes calls on, so that a call tells
//! which slot it went through. Two ways to make the calls:
//!
//! * **by symbols**: the runtime's entry points are called with a sentinel that the stub answers itself; nothing of the
//!   runtime runs. It needs the entry points' addresses, which a library exports or keeps in `.symtab`. A sentinel that
//!   met no stub would crash the runtime, so one harmless call (how many adapters are there?) first shows that the
//!   entry points go through a table that holds stubs. Where layers are switched on (tracing, validation), each has a
//!   table of its own behind the first; the stub that answers is the first one's.
//! * **by watching**: dpctl allocates, copies and frees a block of an unlikely size, and the stubs tell who was handed
//!   that size or that block. It needs no symbols at all, but it does real work, and finds the essential functions
//!   only.

use crate::abi::{Handle, SUCCESS, UrResult};
use crate::elf::{self, Library};
use crate::error::Error;
use crate::fault::{self, Fault};
use crate::functions::Function;
use crate::memory::{Mapping, Peek, mapping_of, mappings, replace_pointer};
use crate::stubs;

/// Fewer pointers than this are no dispatch table.
const TABLE_MIN: usize = 100;
/// What the watching route leaves out.
const UNWATCHED: &str = "the runtime has no symbols, so copies through buffers and 2D copies, and pitched and \
                         queue-ordered allocations, are not seen";
/// How many bytes of an object are searched for a table, and how far into the object it begins at most. Memory beyond
/// is some other object's, or nobody's any more: an old copy of a table must not be taken for one.
const WINDOW: usize = 8192;
const HEAD: usize = 512;

/// A function and the address of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) function: Function,
    pub(crate) address: usize,
}

impl Slot {
    /// Makes this a slot that nobody calls through, for a test.
    fn divert(&mut self) {
        // SAFETY: `locate` found an aligned, mapped word here.
        let original = unsafe { std::ptr::read_volatile(self.address as *const usize) };
        self.address = Box::leak(Box::new(original)) as *mut usize as usize;
    }
}

/// How slots can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Symbols,
    Watching,
}

impl Route {
    pub(crate) const ALL: [Route; 2] = [Route::Symbols, Route::Watching];
}

/// What a search found.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) slots: Vec<Slot>,
    /// In words, for the report.
    pub(crate) mechanism: String,
    /// What is not seen this way.
    pub(crate) gap: Option<&'static str>,
    /// Whether every function that submits work and that the runtime has is among the slots: one that it has no entry
    /// point for is one that it cannot use.
    pub(crate) submissions_are_seen: bool,
}

/// Whether the runtime has filled its dispatch table, that is: whether SYCL is up.
pub(crate) fn runtime_is_up() -> bool {
    let maps = mappings();
    hosts().iter().any(|library| !tables(library, &maps).is_empty())
}

/// Searches one way.
pub(crate) fn locate(route: Route) -> Result<Located, Error> {
    let libraries = hosts();
    let library = libraries.first().ok_or(Error::NoRuntime)?;
    let maps = mappings();
    let mut slots: Vec<usize> = libraries.iter().flat_map(|library| tables(library, &maps)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots.truncate(stubs::COUNT);
    if slots.is_empty() {
        return Err(Error::NoTable { module: library.name().to_string(), expected: TABLE_MIN });
    }
    let (module, mut found, submissions_are_seen) = match route {
        Route::Symbols => by_symbols(&libraries, &slots, &maps),
        Route::Watching => (library.name().to_string(), by_watching(&slots, &maps), false),
    };
    match (fault::ordered(), route) {
        (Some(Fault::NoWayIn), _) | (Some(Fault::NoSymbols), Route::Symbols) => found.clear(),
        (Some(Fault::DeadTable), Route::Symbols) => found.iter_mut().for_each(Slot::divert),
        _ => {}
    }
    if let Some(missing) = Function::ESSENTIAL.into_iter().find(|&f| !found.iter().any(|s| s.function == f)) {
        return Err(Error::NoSlot { module, function: missing.name() });
    }
    let (way, gap) = match route {
        Route::Symbols => ("found by symbols", None),
        Route::Watching => ("found by watching calls", Some(UNWATCHED)),
    };
    let mechanism = format!("Unified Runtime dispatch table of {module} ({way})");
    Ok(Located { slots: found, mechanism, gap, submissions_are_seen })
}

/// The libraries that can hold the table: the loader where there is one, then SYCL itself.
fn hosts() -> Vec<Library> {
    let mut hosts: Vec<_> = elf::libraries()
        .into_iter()
        .filter(|l| l.name().starts_with("libur_loader.so") || l.name().starts_with("libsycl.so"))
        .collect();
    hosts.sort_by_key(|library| !library.name().starts_with("libur_loader.so"));
    hosts
}

/// The slots of all runs of code pointers that `library`'s data points to.
fn tables(library: &Library, maps: &[Mapping]) -> Vec<usize> {
    let Some(peek) = Peek::open() else { return Vec::new() };
    let of_runtime =
        |m: &&Mapping| m.executable && (m.name.starts_with("libsycl") || m.name.starts_with("libur_"));
    let code: Vec<(usize, usize)> = maps.iter().filter(of_runtime).map(|m| (m.start, m.end)).collect();
    let is_code = |word: usize| code.iter().any(|&(start, end)| (start..end).contains(&word));
    let is_data = |word: usize| library.data.iter().any(|&(start, end)| (start..end).contains(&word));
    let mut objects: Vec<usize> =
        library.data.iter().flat_map(|&(start, end)| peek.words(start, end)).map(|w| w.1).collect();
    objects.retain(|&object| object > 0xffff && object % 8 == 0 && !is_data(object));
    objects.sort_unstable();
    objects.dedup();
    let mut found = Vec::new();
    for object in objects {
        let heap = mapping_of(maps, object).filter(|m| m.readable && m.writable);
        let Some(heap) = heap else { continue };
        found.extend(runs(&peek.words(object, heap.end.min(object + WINDOW)), object + HEAD, &is_code));
    }
    found
}

/// The addresses of the code pointers in every run that is long enough for a table and begins below `latest`; empty
/// entries don't end a run.
fn runs(words: &[(usize, usize)], latest: usize, is_code: &impl Fn(usize) -> bool) -> Vec<usize> {
    let (mut found, mut run) = (Vec::new(), Vec::new());
    let mut keep = |run: &mut Vec<usize>| {
        if run.len() >= TABLE_MIN && run[0] <= latest {
            found.append(run);
        }
        run.clear();
    };
    for &(address, word) in words {
        if word == 0 {
            continue;
        }
        if is_code(word) {
            run.push(address);
        } else {
            keep(&mut run);
        }
    }
    keep(&mut run);
    found
}

/// Stubs in every slot; taken out again when dropped.
struct Stubbed<'a> {
    slots: Vec<(usize, usize, usize)>,
    maps: &'a [Mapping],
}

impl<'a> Stubbed<'a> {
    fn new(slots: &[usize], maps: &'a [Mapping]) -> Self {
        let mut stubbed = Stubbed { slots: Vec::with_capacity(slots.len()), maps };
        for (index, &slot) in slots.iter().enumerate() {
            // SAFETY: `tables` found an aligned, mapped word here.
            let original = unsafe { std::ptr::read_volatile(slot as *const usize) };
            let stub = stubs::arm(index, original);
            // SAFETY: as above; whoever calls through the slot reads it as a whole.
            if unsafe { replace_pointer(slot, original, stub, maps, "probe") } == Ok(true) {
                stubbed.slots.push((slot, original, stub));
            }
        }
        stubbed
    }
}

impl Drop for Stubbed<'_> {
    fn drop(&mut self) {
        for &(slot, original, stub) in &self.slots {
            // SAFETY: `new` put the stub there; the comparison leaves the word alone if somebody has changed it since.
            let _ = unsafe { replace_pointer(slot, stub, original, self.maps, "probe") };
        }
    }
}

fn by_symbols(libraries: &[Library], slots: &[usize], maps: &[Mapping]) -> (String, Vec<Slot>, bool) {
    let names: Vec<_> = Function::ALL.iter().map(|f| f.name()).collect();
    for library in libraries {
        let mut entries: Vec<_> = names.iter().map(|name| library.exported(name)).collect();
        if entries.iter().all(Option::is_none) {
            entries = library.local_functions(&names);
        }
        let _stubbed = Stubbed::new(slots, maps);
        if !leads_through_stubs(library, slots.len()) {
            continue;
        }
        let found: Vec<_> = Function::ALL
            .iter()
            .zip(&entries)
            .filter_map(|(&function, entry)| {
                // SAFETY: the symbol names an entry point of the runtime, and its table holds stubs, as was shown above.
                let index = unsafe { stubs::probe((*entry)?) }?;
                Some(Slot { function, address: slots[index] })
            })
            .collect();
        if !found.is_empty() {
            let is_seen = all_submissions_are_seen(&entries, &found);
            return (library.name().to_string(), found, is_seen);
        }
    }
    let module = libraries.first().map_or_else(String::new, |library| library.name().to_string());
    (module, Vec::new(), false)
}

/// `entries` are those of [`Function::ALL`], where the runtime has them.
fn all_submissions_are_seen(entries: &[Option<usize>], found: &[Slot]) -> bool {
    let is_found = |function: Function| found.iter().any(|slot| slot.function == function);
    let mut submitting = Function::ALL.iter().zip(entries).filter(|(function, _)| function.submits());
    Function::LAUNCHING.into_iter().any(is_found)
        && submitting.all(|(&function, entry)| entry.is_none() || is_found(function))
}

/// Whether the entry points of `library` go through a table that holds stubs.
fn leads_through_stubs(library: &Library, used: usize) -> bool {
    type AdapterGet = unsafe extern "C" fn(u32, *mut Handle, *mut u32) -> UrResult;
    const NAME: &str = "urAdapterGet";
    let entry = library.exported(NAME).or_else(|| library.local_functions(&[NAME])[0]);
    let Some(entry) = entry else { return false };
    // SAFETY: the symbol is the runtime's function of that name, whose signature the specification fixes.
    let adapter_get: AdapterGet = unsafe { std::mem::transmute(entry) };
    let mut count = 0u32;
    stubs::watch(&raw mut count as usize);
    // SAFETY: asking for the number of adapters alone changes nothing in a runtime that is up.
    let result = unsafe { adapter_get(0, std::ptr::null_mut(), &raw mut count) };
    let seen = stubs::watched(used).iter().any(|&(_, positions)| positions & stubs::THIRD != 0);
    stubs::watch(0);
    result == SUCCESS && seen
}

/// dpctl's C interface, as far as the watching route needs it.
struct Dpctl {
    library: Library,
}

impl Dpctl {
    fn find() -> Option<Self> {
        let named = |l: &Library| l.name().starts_with("libDPCTLSyclInterface.so");
        elf::libraries().into_iter().find(named).map(|library| Dpctl { library })
    }

    fn call(&self, function: &str, arguments: [usize; 4]) -> Option<usize> {
        type Call = unsafe extern "C" fn(usize, usize, usize, usize) -> usize;
        let address = self.library.exported(function)?;
        // SAFETY: every function called here takes at most four integers or pointers and returns one or nothing.
        let call: Call = unsafe { std::mem::transmute(address) };
        let [a, b, c, d] = arguments;
        // SAFETY: the callers below pass what dpctl's header declares for the function they name.
        Some(unsafe { call(a, b, c, d) })
    }

    /// A queue on the default device.
    fn queue(&self) -> Option<usize> {
        let selector = self.call("DPCTLDefaultSelector_Create", [0; 4])?;
        let device = self.call("DPCTLDevice_CreateFromSelector", [selector, 0, 0, 0])?;
        self.call("DPCTLDeviceSelector_Delete", [selector, 0, 0, 0]);
        if device == 0 {
            return None;
        }
        let queue = self.call("DPCTLQueue_CreateForDevice", [device, 0, 0, 0])?;
        self.call("DPCTLDevice_Delete", [device, 0, 0, 0]);
        (queue != 0).then_some(queue)
    }
}

fn by_watching(slots: &[usize], maps: &[Mapping]) -> Vec<Slot> {
    /// A size that nobody asks for by chance; a page and a bit, so that it is cheap.
    const SIZE: usize = 0x15A7;
    let Some(dpctl) = Dpctl::find() else { return Vec::new() };
    let Some(queue) = dpctl.queue() else { return Vec::new() };
    let stubbed = Stubbed::new(slots, maps);
    let mut found = Vec::new();
    let mut only = |function: Function, position: usize| {
        let seen: Vec<_> = stubs::watched(slots.len()).into_iter().filter(|s| s.1 & position != 0).collect();
        if let [(index, _)] = seen[..] {
            found.push(Slot { function, address: slots[index] });
        }
    };
    let mut blocks = Vec::new();
    for (allocate, function, position) in [
        ("DPCTLmalloc_device", Function::UsmDeviceAlloc, stubs::FIFTH),
        ("DPCTLmalloc_shared", Function::UsmSharedAlloc, stubs::FIFTH),
        ("DPCTLmalloc_host", Function::UsmHostAlloc, stubs::FOURTH),
    ] {
        stubs::watch(SIZE);
        blocks.push(dpctl.call(allocate, [SIZE, queue, 0, 0]).unwrap_or(0));
        only(function, position);
    }
    if let [device, shared, host] = blocks[..]
        && device != 0
        && host != 0
    {
        stubs::watch(SIZE);
        let event = dpctl.call("DPCTLQueue_Memcpy", [queue, device, host, SIZE]).unwrap_or(0);
        only(Function::EnqueueMemcpy, stubs::FIFTH);
        if event != 0 {
            dpctl.call("DPCTLEvent_Wait", [event, 0, 0, 0]);
            dpctl.call("DPCTLEvent_Delete", [event, 0, 0, 0]);
        }
        stubs::watch(shared);
        dpctl.call("DPCTLfree_with_queue", [shared, queue, 0, 0]);
        only(Function::UsmFree, stubs::SECOND);
        stubs::watch(0);
        dpctl.call("DPCTLfree_with_queue", [device, queue, 0, 0]);
        dpctl.call("DPCTLfree_with_queue", [host, queue, 0, 0]);
    }
    stubs::watch(0);
    drop(stubbed);
    dpctl.call("DPCTLQueue_Delete", [queue, 0, 0, 0]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_what_is_neither_code_nor_empty() {
        let is_code = |word: usize| word >= 1000;
        let mut words: Vec<(usize, usize)> = (0..TABLE_MIN).map(|n| (n * 8, 1000 + n)).collect();
        words[5].1 = 0;
        words.push((TABLE_MIN * 8, 7));
        let everywhere = usize::MAX;
        assert!(runs(&words, everywhere, &is_code).is_empty(), "one short of a table");
        words.insert(0, (0, 2000));
        words.extend((0..TABLE_MIN).map(|n| (90_000 + n * 8, 3000)));
        assert_eq!(runs(&words, HEAD, &is_code).len(), TABLE_MIN, "the other begins too late");
        let found = runs(&words, everywhere, &is_code);
        assert_eq!(found.len(), 2 * TABLE_MIN, "both tables of an object");
        assert!(!found.contains(&(5 * 8)), "an empty entry is no slot");
    }

    #[test]
    fn without_a_runtime_there_is_nothing_to_find() {
        assert!(!runtime_is_up());
        assert_eq!(locate(Route::Symbols).err(), Some(Error::NoRuntime));
    }

    #[test]
    fn a_function_that_submits_work_and_is_in_no_slot_is_noticed() {
        let slots = |wanted: &dyn Fn(Function) -> bool| -> Vec<Slot> {
            let found = Function::ALL.iter().filter(|&&function| wanted(function));
            found.map(|&function| Slot { function, address: 8 }).collect()
        };
        let entries = |wanted: &dyn Fn(Function) -> bool| -> Vec<Option<usize>> {
            Function::ALL.iter().map(|&function| wanted(function).then_some(8)).collect()
        };
        let old = |function| function != Function::KernelLaunchWithArguments;
        let new = |function| function != Function::KernelLaunch;
        assert!(all_submissions_are_seen(&entries(&old), &slots(&old)));
        assert!(all_submissions_are_seen(&entries(&new), &slots(&new)));
        assert!(
            !all_submissions_are_seen(&entries(&|_| true), &slots(&old)),
            "the runtime may use the other"
        );
        let unfilled = |function| function != Function::EnqueueFill && old(function);
        assert!(!all_submissions_are_seen(&entries(&old), &slots(&unfilled)));
        let unlaunched = |function| old(function) && new(function);
        assert!(
            !all_submissions_are_seen(&entries(&unlaunched), &slots(&unlaunched)),
            "it has to launch somehow"
        );
        let unlisted = |function| function != Function::DeviceInfo && old(function);
        assert!(all_submissions_are_seen(&entries(&old), &slots(&unlisted)), "that submits nothing");
    }
}
