//! The OpenCL CPU runtime, as far as it takes to run kernels: loaded by itself, past the OpenCL loader.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::opencl::program::cpu_options;
use crate::system::Library;

/// Any OpenCL object.
pub type Handle = usize;

/// The file that holds the runtime; without it, the system's.
const VARIABLE: &str = "SIMULATED_RUNTIME";

macro_rules! functions {
    ($($cl:literal $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        /// The runtime's functions.
        struct Functions { $($name: extern "C" fn($($type),*) -> $result),* }

        impl Functions {
            fn find(library: &Library) -> Option<Self> {
                Some(Self { $($name: {
                    let address = library.symbol($cl)?;
                    // SAFETY: the runtime exports the OpenCL function of this name, which has this signature.
                    unsafe { std::mem::transmute::<usize, extern "C" fn($($type),*) -> $result>(address) }
                }),* })
            }
        }
    };
}

functions! {
    c"clGetPlatformIDs" platform_ids(room: u32, into: *mut Handle, found: *mut u32) -> i32;
    c"clGetDeviceIDs" device_ids(platform: Handle, kinds: u64, room: u32, into: *mut Handle, found: *mut u32) -> i32;
    c"clCreateContext" create_context(properties: usize, count: u32, devices: *const Handle, notify: usize, user: usize,
                                      status: &mut i32) -> Handle;
    c"clCreateCommandQueueWithProperties" create_queue(context: Handle, device: Handle, properties: usize,
                                                       status: &mut i32) -> Handle;
    c"clCreateProgramWithIL" program(context: Handle, code: *const u8, bytes: usize, status: &mut i32) -> Handle;
    c"clCreateProgramWithBinary" with_binary(context: Handle, count: u32, devices: *const Handle, lengths: *const usize,
                                             binaries: *const *const u8, statuses: usize, status: &mut i32) -> Handle;
    c"clSetProgramSpecializationConstant" set_constant(program: Handle, id: u32, bytes: usize, value: *const u8) -> i32;
    c"clBuildProgram" build(program: Handle, count: u32, devices: *const Handle, options: *const c_char, notify: usize,
                            user: usize) -> i32;
    c"clCompileProgram" compile(program: Handle, count: u32, devices: *const Handle, options: *const c_char,
                                headers: u32, programs: usize, names: usize, notify: usize, user: usize) -> i32;
    c"clLinkProgram" link(context: Handle, count: u32, devices: *const Handle, options: *const c_char, programs: u32,
                          inputs: *const Handle, notify: usize, user: usize, status: &mut i32) -> Handle;
    c"clReleaseProgram" release_program(program: Handle) -> i32;
    c"clGetProgramInfo" program_info(program: Handle, what: u32, size: usize, into: *mut u8, needed: &mut usize) -> i32;
    c"clGetProgramBuildInfo" build_info(program: Handle, device: Handle, what: u32, size: usize, into: *mut u8,
                                        needed: &mut usize) -> i32;
    c"clCreateKernel" kernel(program: Handle, name: *const c_char, status: &mut i32) -> Handle;
    c"clReleaseKernel" release_kernel(kernel: Handle) -> i32;
    c"clSetKernelArg" set_argument(kernel: Handle, index: u32, bytes: usize, value: *const u8) -> i32;
    c"clSetKernelArgMemPointerINTEL" set_pointer(kernel: Handle, index: u32, address: usize) -> i32;
    c"clEnqueueNDRangeKernel" run(queue: Handle, kernel: Handle, dimensions: u32, offset: *const usize,
                                  global: *const usize, local: *const usize, waits: u32, events: usize,
                                  event: usize) -> i32;
    c"clFinish" finish(queue: Handle) -> i32;
}

/// The runtime, with one queue in which all kernels run, one after another.
pub struct Runtime {
    functions: Functions,
    device: Handle,
    context: Handle,
    queue: Handle,
    running: Mutex<()>,
}

/// A value that a kernel gets for a parameter.
#[derive(Clone)]
pub enum Argument {
    /// An address of USM, or null.
    Pointer(usize),
    /// So many bytes shared by a group.
    Local(usize),
    /// The value itself.
    Value(Vec<u8>),
}

/// Where and how often a kernel runs.
#[derive(Clone, Copy)]
pub struct Extent {
    pub offset: [usize; 3],
    pub global: [usize; 3],
    pub local: [usize; 3],
}

/// The value of a specialization constant.
pub struct Constant<'a> {
    pub id: u32,
    pub value: &'a [u8],
}

/// The runtime; `None` where it can't be loaded.
pub fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(Runtime::load).as_ref()
}

impl Runtime {
    fn load() -> Option<Self> {
        const CPU: u64 = 2;
        let file = std::env::var(VARIABLE).unwrap_or_else(|_| "libintelocl.so".into());
        let functions = Functions::find(&Library::open(&CString::new(file).ok()?)?)?;
        let (mut platform, mut device, mut found, mut status) = (0, 0, 0, 0);
        if (functions.platform_ids)(1, &raw mut platform, &raw mut found) != 0
            || (functions.device_ids)(platform, CPU, 1, &raw mut device, &raw mut found) != 0
        {
            return None;
        }
        let context = (functions.create_context)(0, 1, &raw const device, 0, 0, &mut status);
        let queue = (functions.create_queue)(context, device, 0, &mut status);
        (status == 0).then(|| Self { functions, device, context, queue, running: Mutex::new(()) })
    }

    /// Builds one program of SPIR-V modules; the error is what the compiler says.
    pub fn build(
        &self,
        modules: &[&[u8]],
        options: &str,
        constants: &[Constant<'_>],
    ) -> Result<Handle, String> {
        let options = CString::new(cpu_options(options)).map_err(|error| error.to_string())?;
        let mut programs = Vec::new();
        for code in modules {
            let mut status = 0;
            let program = (self.functions.program)(self.context, code.as_ptr(), code.len(), &mut status);
            if status != 0 {
                return Err(format!("clCreateProgramWithIL: {status}"));
            }
            for constant in constants {
                let value = constant.value;
                (self.functions.set_constant)(program, constant.id, value.len(), value.as_ptr());
            }
            programs.push(program);
        }
        match programs[..] {
            [program] => self.build_one(program, &options),
            _ => self.link(&programs, &options),
        }
    }

    /// Makes a program of a binary that [`Self::binary`] gave.
    pub fn reload(&self, binary: &[u8]) -> Result<Handle, String> {
        let (device, length, start) = (&raw const self.device, binary.len(), binary.as_ptr());
        let mut status = 0;
        let lengths = &raw const length;
        let program =
            (self.functions.with_binary)(self.context, 1, device, lengths, &raw const start, 0, &mut status);
        if status != 0 {
            return Err(format!("clCreateProgramWithBinary: {status}"));
        }
        self.build_one(program, c"")
    }

    /// The binary of a program.
    pub fn binary(&self, program: Handle) -> Option<Vec<u8>> {
        const SIZES: u32 = 0x1165;
        const BINARIES: u32 = 0x1166;
        let (mut length, mut needed) = (0usize, 0);
        let ask = self.functions.program_info;
        let into = (&raw mut length).cast();
        if ask(program, SIZES, size_of::<usize>(), into, &mut needed) != 0 || length == 0 {
            return None;
        }
        let mut binary = vec![0u8; length];
        let mut start = binary.as_mut_ptr();
        let asked = ask(program, BINARIES, size_of::<*mut u8>(), (&raw mut start).cast(), &mut needed);
        (asked == 0).then_some(binary)
    }

    fn build_one(&self, program: Handle, options: &CStr) -> Result<Handle, String> {
        match (self.functions.build)(program, 1, &raw const self.device, options.as_ptr(), 0, 0) {
            0 => Ok(program),
            status => Err(self.said(program, "clBuildProgram", status)),
        }
    }

    fn link(&self, programs: &[Handle], options: &CStr) -> Result<Handle, String> {
        for &program in programs {
            let device = &raw const self.device;
            match (self.functions.compile)(program, 1, device, options.as_ptr(), 0, 0, 0, 0, 0) {
                0 => {}
                status => return Err(self.said(program, "clCompileProgram", status)),
            }
        }
        let (device, count, inputs) = (&raw const self.device, programs.len() as u32, programs.as_ptr());
        let mut status = 0;
        let linked =
            (self.functions.link)(self.context, 1, device, c"".as_ptr(), count, inputs, 0, 0, &mut status);
        for &program in programs {
            (self.functions.release_program)(program);
        }
        if status == 0 { Ok(linked) } else { Err(format!("clLinkProgram: {status}")) }
    }

    fn said(&self, program: Handle, step: &str, status: i32) -> String {
        const LOG: u32 = 0x1183;
        let ask = |into: &mut [u8]| {
            let mut needed = 0;
            let (size, into) =
                (into.len(), if into.is_empty() { std::ptr::null_mut() } else { into.as_mut_ptr() });
            (self.functions.build_info)(program, self.device, LOG, size, into, &mut needed);
            needed
        };
        let mut log = vec![0; ask(&mut [])];
        ask(&mut log);
        (self.functions.release_program)(program);
        format!("{step}: {status}: {}", String::from_utf8_lossy(&log).trim_end_matches('\0'))
    }

    /// The names of a program's kernels.
    pub fn kernel_names(&self, program: Handle) -> Vec<CString> {
        const NAMES: u32 = 0x1168;
        let mut needed = 0;
        (self.functions.program_info)(program, NAMES, 0, std::ptr::null_mut(), &mut needed);
        let mut text = vec![0; needed];
        (self.functions.program_info)(program, NAMES, needed, text.as_mut_ptr(), &mut needed);
        text.split(|&byte| byte == b';' || byte == 0)
            .filter(|name| !name.is_empty())
            .filter_map(|name| CString::new(name).ok())
            .collect()
    }

    /// A kernel of a program, by its name.
    pub fn kernel(&self, program: Handle, name: &CStr) -> Option<Handle> {
        let mut status = 0;
        let kernel = (self.functions.kernel)(program, name.as_ptr(), &mut status);
        (status == 0).then_some(kernel)
    }

    pub fn release_kernel(&self, kernel: Handle) {
        (self.functions.release_kernel)(kernel);
    }

    pub fn release_program(&self, program: Handle) {
        (self.functions.release_program)(program);
    }

    /// Runs a kernel to its end; the error is OpenCL's.
    pub fn run(&self, kernel: Handle, arguments: &[Argument], extent: Extent) -> Result<(), i32> {
        // A kernel's arguments are its own until it runs, and a kernel may be launched by several threads.
        let _alone = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let done = |status: i32| if status == 0 { Ok(()) } else { Err(status) };
        for (index, argument) in arguments.iter().enumerate() {
            let index = index as u32;
            done(match argument {
                Argument::Pointer(address) => (self.functions.set_pointer)(kernel, index, *address),
                Argument::Local(bytes) => {
                    (self.functions.set_argument)(kernel, index, *bytes, std::ptr::null())
                }
                Argument::Value(value) => {
                    (self.functions.set_argument)(kernel, index, value.len(), value.as_ptr())
                }
            })?;
        }
        let (offset, global, local) = (extent.offset.as_ptr(), extent.global.as_ptr(), extent.local.as_ptr());
        done((self.functions.run)(self.queue, kernel, 3, offset, global, local, 0, 0, 0))?;
        done((self.functions.finish)(self.queue))
    }
}
