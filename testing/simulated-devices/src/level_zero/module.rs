//! Modules: SPIR-V, built for the CPU runtime, or a binary that was made of such a module before.
//!
//! A binary is what the kernels' parameters are, and the CPU runtime's own binary: see [`Module::binary`].

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};

use super::abi::{chain, structure, ze_module_constants_t, ze_module_desc_t};
use super::abi::{ze_module_program_exp_desc_t, ze_module_properties_t};
use super::runtime::{Constant, Handle, runtime};
use super::spirv::{self, Parameter};
use super::{
    INVALID_GLOBAL_NAME, MODULE_BUILD_FAILURE, Outcome, SUCCESS, UNSUPPORTED_FEATURE, created, destroyed,
    list,
};
use crate::device::Device;
use crate::foreign::{fill, given, text};

/// The parameters of each kernel.
type Kernels = HashMap<String, Vec<Parameter>>;

/// A built module.
pub struct Module {
    pub(super) program: Handle,
    pub(super) parameters: Kernels,
    names: Vec<CString>,
}

/// The first line of a binary.
const MAGIC: &str = "simulated-devices 1";

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(runtime) = runtime() {
            runtime.release_program(self.program);
        }
    }
}

/// What the compiler said.
pub struct Log(CString);

/// What is to be built: one module or several to be linked.
struct Source<'a> {
    modules: Vec<&'a [u8]>,
    options: String,
    constants: Vec<Constant<'a>>,
}

fn source<'a>(desc: &ze_module_desc_t) -> Source<'a> {
    let several = chain(desc.pNext).find(|one| one.stype == structure::MODULE_PROGRAM_EXP_DESC);
    let Some(several) = several else {
        return Source {
            modules: vec![given(desc.pInputModule, desc.inputSize)],
            options: text(desc.pBuildFlags).into_owned(),
            constants: constants(
                desc.pConstants,
                &spirv::constant_sizes(given(desc.pInputModule, desc.inputSize)),
            ),
        };
    };
    // SAFETY: the caller's promise: `stype` says which structure it is.
    let it = unsafe { &*std::ptr::from_ref(several).cast::<ze_module_program_exp_desc_t>() };
    let count = it.count as usize;
    let sizes = given(it.inputSizes, count);
    let modules: Vec<&[u8]> =
        given(it.pInputModules, count).iter().zip(sizes).map(|(&code, &bytes)| given(code, bytes)).collect();
    let known = modules.iter().flat_map(|code| spirv::constant_sizes(code)).collect();
    Source {
        modules,
        options: given(it.pBuildFlags, count).iter().map(|&flags| text(flags)).collect::<Vec<_>>().join(" "),
        constants: given(it.pConstants, count).iter().flat_map(|&all| constants(all, &known)).collect(),
    }
}

/// Values come without a size; `known` tells it of those that the module has. Others can't be set.
fn constants<'a>(all: *const ze_module_constants_t, known: &HashMap<u32, usize>) -> Vec<Constant<'a>> {
    // SAFETY: the caller's promise: null or a structure.
    let Some(all) = (unsafe { all.as_ref() }) else { return Vec::new() };
    let count = all.numConstants as usize;
    let (ids, values) = (given(all.pConstantIds, count), given(all.pConstantValues, count));
    ids.iter()
        .zip(values)
        .filter_map(|(&id, &value)| Some(Constant { id, value: given(value, *known.get(&id)?) }))
        .collect()
}

fn build(desc: &ze_module_desc_t) -> Result<Module, String> {
    const NATIVE: u32 = 1;
    let runtime = runtime().ok_or("there is no OpenCL CPU runtime to run kernels")?;
    let (program, parameters) = if desc.format == NATIVE {
        let binary = given(desc.pInputModule, desc.inputSize);
        let (parameters, code) = read_binary(binary).ok_or("a binary of another driver")?;
        (runtime.reload(code)?, parameters)
    } else {
        let source = source(desc);
        let parameters = source.modules.iter().flat_map(|code| spirv::kernels(code)).collect();
        (runtime.build(&source.modules, &source.options, &source.constants)?, parameters)
    };
    Ok(Module { program, parameters, names: runtime.kernel_names(program) })
}

impl Module {
    /// A line that says what it is, a line for each kernel, an empty line, and the CPU runtime's binary.
    fn binary(&self) -> Option<Vec<u8>> {
        let mut head = format!("{MAGIC}\n");
        for (name, parameters) in &self.parameters {
            let letters: String = parameters.iter().map(|parameter| parameter.letter()).collect();
            head += &format!("{name} {letters}\n");
        }
        head.push('\n');
        Some([head.as_bytes(), &runtime()?.binary(self.program)?].concat())
    }
}

fn read_binary(binary: &[u8]) -> Option<(Kernels, &[u8])> {
    let end = binary.windows(2).position(|two| two == b"\n\n")?;
    let mut lines = std::str::from_utf8(&binary[..end]).ok()?.lines();
    if lines.next() != Some(MAGIC) {
        return None;
    }
    let kernel = |line: &str| {
        let (name, letters) = line.split_once(' ')?;
        Some((name.to_owned(), letters.chars().map(Parameter::of_letter).collect::<Option<_>>()?))
    };
    Some((lines.map(kernel).collect::<Option<_>>()?, &binary[end + 2..]))
}

fn write_log(into: Option<&mut *mut Log>, said: &str) {
    if let Some(into) = into {
        created(into, Log(CString::new(said.replace('\0', " ")).unwrap_or_default()));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleCreate(
    _context: usize,
    _device: &Device,
    desc: &ze_module_desc_t,
    into: &mut *mut Module,
    log: Option<&mut *mut Log>,
) -> Outcome {
    match build(desc) {
        Ok(module) => {
            write_log(log, "");
            created(into, module)
        }
        Err(said) => {
            write_log(log, &said);
            MODULE_BUILD_FAILURE
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleDestroy(module: *mut Module) -> Outcome {
    destroyed(module)
}

/// Modules are linked when they are made.
#[unsafe(no_mangle)]
pub extern "C" fn zeModuleDynamicLink(
    _count: u32,
    _modules: *const c_void,
    log: Option<&mut *mut Log>,
) -> Outcome {
    write_log(log, "");
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleGetNativeBinary(module: &Module, bytes: &mut usize, into: *mut u8) -> Outcome {
    let Some(binary) = module.binary() else { return UNSUPPORTED_FEATURE };
    // Whoever asks for the content has asked for the size before, and needn't say it again.
    fill(into, binary.len(), &binary);
    *bytes = binary.len();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleGetGlobalPointer(
    _module: &Module,
    _name: *const c_char,
    _bytes: *mut usize,
    _pointer: *mut usize,
) -> Outcome {
    INVALID_GLOBAL_NAME
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleGetKernelNames(
    module: &Module,
    count: &mut u32,
    into: *mut *const c_char,
) -> Outcome {
    let names: Vec<*const c_char> = module.names.iter().map(|name| name.as_ptr()).collect();
    list(count, into, &names)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleGetProperties(_module: &Module, it: &mut ze_module_properties_t) -> Outcome {
    it.flags = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleBuildLogGetString(log: &Log, bytes: &mut usize, into: *mut u8) -> Outcome {
    let said = log.0.as_bytes_with_nul();
    fill(into, said.len(), said);
    *bytes = said.len();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeModuleBuildLogDestroy(log: *mut Log) -> Outcome {
    destroyed(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_binaries_are_read() {
        let text = format!("{MAGIC}\nf PLV\ng \n\n\x01\n\n");
        let (kernels, code) = read_binary(text.as_bytes()).expect("it is ours");
        assert_eq!(kernels["f"], [Parameter::Pointer, Parameter::Local, Parameter::Value]);
        assert!(kernels["g"].is_empty());
        assert_eq!(code, b"\x01\n\n");
        for other in ["", "\n\n", "ELF\n\nx", &format!("{MAGIC}\nf X\n\n"), &format!("{MAGIC}\nf\n\n")] {
            assert!(read_binary(other.as_bytes()).is_none(), "{other:?}");
        }
    }
}
