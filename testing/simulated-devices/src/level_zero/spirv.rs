//! What has to be known of a module and is nowhere else told: which of a kernel's parameters are pointers (the runtime's
//! own answer is that only if the module was built to be asked), and how large specialization constants are.

use std::collections::HashMap;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A pointer to memory of all, or to constants.
    Pointer,
    /// A pointer to memory of a group.
    Local,
    /// Anything else.
    Value,
}

impl Parameter {
    const LETTERS: [(char, Self); 3] = [('P', Self::Pointer), ('L', Self::Local), ('V', Self::Value)];

    /// One letter for it.
    pub fn letter(self) -> char {
        match self {
            Self::Pointer => 'P',
            Self::Local => 'L',
            Self::Value => 'V',
        }
    }

    /// What a letter stands for.
    pub fn of_letter(letter: char) -> Option<Self> {
        Self::LETTERS.iter().find(|(known, _)| *known == letter).map(|&(_, parameter)| parameter)
    }
}

const ENTRY_POINT: u32 = 15;
const TYPE_BOOL: u32 = 20;
const TYPE_INT: u32 = 21;
const TYPE_FLOAT: u32 = 22;
const TYPE_POINTER: u32 = 32;
const SPEC_CONSTANT_TRUE: u32 = 48;
const SPEC_CONSTANT_FALSE: u32 = 49;
const SPEC_CONSTANT: u32 = 50;
const FUNCTION: u32 = 54;
const FUNCTION_PARAMETER: u32 = 55;
const DECORATE: u32 = 71;
const TYPE_UNTYPED_POINTER: u32 = 4417;
const KERNEL: u32 = 6;
const HEADER_WORDS: usize = 5;

/// The parameters of each kernel of a module.
pub fn kernels(module: &[u8]) -> HashMap<String, Vec<Parameter>> {
    let mut pointers = HashMap::new();
    let mut functions: HashMap<u32, Vec<Parameter>> = HashMap::new();
    let mut entries = Vec::new();
    let mut function = 0;
    each_instruction(module, |code, operands| match (code, operands) {
        (ENTRY_POINT, [KERNEL, id, name @ ..]) => entries.push((*id, text(name))),
        (TYPE_POINTER | TYPE_UNTYPED_POINTER, [id, storage, ..]) => {
            pointers.insert(*id, *storage);
        }
        (FUNCTION, [_, id, ..]) => {
            function = *id;
            functions.insert(function, Vec::new());
        }
        (FUNCTION_PARAMETER, [kind, ..]) => {
            let parameter = parameter(pointers.get(kind).copied());
            functions.entry(function).or_default().push(parameter);
        }
        _ => {}
    });
    entries.into_iter().filter_map(|(id, name)| Some((name, functions.get(&id)?.clone()))).collect()
}

/// The bytes of each specialization constant of a module, by the number that a program knows it by.
pub fn constant_sizes(module: &[u8]) -> HashMap<u32, usize> {
    const SPEC_ID: u32 = 1;
    let mut numbers = HashMap::new();
    let mut types = HashMap::new();
    let mut sizes = HashMap::new();
    each_instruction(module, |code, operands| match (code, operands) {
        (DECORATE, [constant, SPEC_ID, number, ..]) => {
            numbers.insert(*constant, *number);
        }
        (TYPE_BOOL, [id, ..]) => {
            types.insert(*id, 1);
        }
        (TYPE_INT | TYPE_FLOAT, [id, bits, ..]) => {
            types.insert(*id, *bits as usize / 8);
        }
        (SPEC_CONSTANT_TRUE | SPEC_CONSTANT_FALSE | SPEC_CONSTANT, [kind, id, ..]) => {
            sizes.extend(numbers.get(id).copied().zip(types.get(kind).copied()));
        }
        _ => {}
    });
    sizes
}

/// Calls with the code and the operands of each instruction, up to one that makes no sense.
fn each_instruction(module: &[u8], mut see: impl FnMut(u32, &[u32])) {
    let words: Vec<u32> =
        module.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let mut rest = words.get(HEADER_WORDS..).unwrap_or(&[]);
    while let Some(&first) = rest.first() {
        let (length, code) = ((first >> 16) as usize, first & 0xffff);
        let Some(operands) = rest.get(1..length) else { break };
        see(code, operands);
        rest = &rest[length..];
    }
}

fn parameter(storage: Option<u32>) -> Parameter {
    const CONSTANT: u32 = 0;
    const WORKGROUP: u32 = 4;
    const CROSS_WORKGROUP: u32 = 5;
    match storage {
        Some(CONSTANT | CROSS_WORKGROUP) => Parameter::Pointer,
        Some(WORKGROUP) => Parameter::Local,
        _ => Parameter::Value,
    }
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(instructions: &[&[u32]]) -> Vec<u8> {
        let header = [0x0723_0203, 0x0001_0000, 0, 100, 0];
        let body = instructions.iter().flat_map(|words| {
            let first = ((words.len() as u32) << 16) | words[0];
            std::iter::once(first).chain(words[1..].iter().copied())
        });
        header.into_iter().chain(body).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn parameters_are_told_apart() {
        let name = u32::from_le_bytes(*b"abc\0");
        let code = module(&[
            &[ENTRY_POINT, KERNEL, 20, name],
            &[TYPE_POINTER, 1, 5, 9],
            &[TYPE_POINTER, 2, 4, 9],
            &[TYPE_UNTYPED_POINTER, 3, 0],
            &[FUNCTION, 9, 19, 0, 8],
            &[FUNCTION_PARAMETER, 1, 30],
            &[FUNCTION, 9, 20, 0, 8],
            &[FUNCTION_PARAMETER, 1, 31],
            &[FUNCTION_PARAMETER, 2, 32],
            &[FUNCTION_PARAMETER, 3, 33],
            &[FUNCTION_PARAMETER, 7, 34],
        ]);
        let found = kernels(&code);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found["abc"],
            [Parameter::Pointer, Parameter::Local, Parameter::Pointer, Parameter::Value]
        );
    }

    #[test]
    fn constants_have_their_type_s_size() {
        let code = module(&[
            &[DECORATE, 10, 1, 7],
            &[DECORATE, 11, 1, 8],
            &[DECORATE, 12, 1, 9],
            &[DECORATE, 13, 2, 10],
            &[TYPE_BOOL, 1],
            &[TYPE_INT, 2, 16, 0],
            &[TYPE_FLOAT, 3, 64],
            &[SPEC_CONSTANT_TRUE, 1, 10],
            &[SPEC_CONSTANT, 2, 11, 5],
            &[SPEC_CONSTANT, 3, 12, 0, 0],
            &[SPEC_CONSTANT, 3, 13, 0, 0],
        ]);
        assert_eq!(constant_sizes(&code), HashMap::from([(7, 1), (8, 2), (9, 8)]));
    }

    #[test]
    fn what_is_no_module_has_no_kernels() {
        assert!(kernels(b"").is_empty());
        assert!(kernels(&module(&[&[ENTRY_POINT, KERNEL]])[..25]).is_empty());
        assert!(kernels(&[0; 64]).is_empty(), "an instruction of no length ends it");
    }
}
