//! What the library was doing when it allocated or copied, as its own frames tell.
//!
//! dpnp and dpctl say in their frames whether a block is the result of an operation, an operand cast to another dtype,
//! or memory that C++ needed in between. The names are those of dpnp 0.17 to 0.20; a name that isn't known makes a rule
//! silent, not wrong.

use super::place::{bare, called, library_frames};
use crate::stack::Frame;

/// Functions that make a block filled by a rule.
const CREATION: &[&str] =
    &["empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"];
/// Functions whose result can be put into an array that is handed in, beside elementwise ones.
const WITH_OUT: &[&str] = &[
    "matmul",
    "__matmul__",
    "__rmatmul__",
    "dot",
    "multi_dot",
    "einsum",
    "vecdot",
    "matvec",
    "vecmat",
    "clip",
    "take",
    "cumsum",
    "cumprod",
    "cumlogsumexp",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "fft2",
    "ifft2",
    "fftn",
    "ifftn",
    "choose",
    "compress",
    "sum",
    "prod",
    "max",
    "min",
    "round",
    "around",
    "where",
];
/// Operators and the function that does the same.
const OPERATORS: &[(&str, &str)] = &[
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("floordiv", "floor_divide"),
    ("mod", "remainder"),
    ("pow", "power"),
    ("matmul", "matmul"),
    ("neg", "negative"),
    ("abs", "abs"),
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
    ("eq", "equal"),
    ("ne", "not_equal"),
    ("and", "bitwise_and"),
    ("or", "bitwise_or"),
    ("xor", "bitwise_xor"),
    ("invert", "invert"),
    ("lshift", "left_shift"),
    ("rshift", "right_shift"),
];
/// Functions that join arrays.
const JOINING: &[&str] = &[
    "concatenate",
    "concat",
    "append",
    "stack",
    "hstack",
    "vstack",
    "dstack",
    "column_stack",
    "row_stack",
    "insert",
    "block",
];
/// Functions that read one value, or print.
const READING: &[&str] = &[
    "__float__",
    "__int__",
    "__bool__",
    "__complex__",
    "__index__",
    "item",
    "__str__",
    "__repr__",
    "__format__",
    "array_str",
    "array_repr",
    "array2string",
];
/// Functions that bring host data to a device because the program says so.
const SENDING: &[&str] = &[
    "asarray",
    "array",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "copyto",
    "__setitem__",
    "from_numpy",
    "copy_from_host",
    "frombuffer",
    "fromiter",
];

/// What an allocation was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The result of an operation that takes `out=`.
    Result,
    /// A new array filled by a rule.
    Creation,
    /// An operand that had to be cast to another dtype.
    Cast,
    /// Anything else: results of other functions, conversions, memory that C++ needs in between.
    Other,
}

/// What the block was for that was allocated at these frames.
pub(super) fn purpose(frames: &[Frame]) -> Purpose {
    let library = library_frames(frames);
    let Some(called) = called(frames) else { return Purpose::Other };
    let elementwise_call =
        library.iter().enumerate().find_map(|(at, frame)| Some((at, arity(frame, called)?)));
    if let Some((at, arity)) = elementwise_call {
        return elementwise(&library[..at], arity);
    }
    if CREATION.contains(&called) {
        return if allocates_array(library) { Purpose::Creation } else { Purpose::Other };
    }
    if WITH_OUT.contains(&called) && allocates_array(library) && !casts(library) {
        return Purpose::Result;
    }
    Purpose::Other
}

/// How many operands an elementwise function takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arity {
    Unary,
    Binary,
    Unknown,
}

/// The arity of the elementwise function whose call this frame is, if it is one. Before CPython 3.11 names carry no
/// class, and then only an operator that the user wrote tells it.
fn arity(frame: &Frame, called: &str) -> Option<Arity> {
    const UNARY: [&str; 4] = ["__neg__", "__pos__", "__abs__", "__invert__"];
    match &*frame.function {
        "BinaryElementwiseFunc.__call__" => Some(Arity::Binary),
        "UnaryElementwiseFunc.__call__" => Some(Arity::Unary),
        "__call__" if frame.file.ends_with("/_elementwise_common.py") => Some(match called {
            _ if UNARY.contains(&called) => Arity::Unary,
            "__call__" => Arity::Unknown,
            _ if called.starts_with("__") => Arity::Binary,
            _ => Arity::Unknown,
        }),
        _ => None,
    }
}

/// `inner`: the frames inside the call of an elementwise function.
fn elementwise(inner: &[Frame], arity: Arity) -> Purpose {
    let names: Vec<&str> = inner.iter().map(|frame| bare(&frame.function)).collect();
    let pairs = |name: &&str| name.starts_with("_empty_like_pair") || name.starts_with("_empty_like_triple");
    match (names.as_slice(), arity) {
        // C++ needs memory in between.
        ([] | [.., "asarray"], _) => Purpose::Other,
        // The result itself, where order and shape are plain or worked out from both operands.
        (["empty"], _) => Purpose::Result,
        _ if names.iter().any(pairs) => Purpose::Result,
        (["empty_like", "_empty_like_orderK"], Arity::Unary) => Purpose::Result,
        (["empty_like", "_empty_like_orderK"], Arity::Binary) => Purpose::Cast,
        _ => Purpose::Other,
    }
}

/// Whether the block is a new array, and not memory that C++ needs in between.
fn allocates_array(library: &[Frame]) -> bool {
    const MAKING: &[&str] =
        &["empty", "empty_like", "zeros", "ones", "full", "__init__", "_create_result_array"];
    library.first().is_some_and(|frame| {
        let name = bare(&frame.function);
        MAKING.contains(&name) || CREATION.contains(&name)
    })
}

fn casts(library: &[Frame]) -> bool {
    library.iter().any(|frame| matches!(bare(&frame.function), "astype" | "asarray" | "_copy_array" | "copy"))
}

/// The name of the library function that the user called.
pub(super) fn called_name(frames: &[Frame]) -> &str {
    called(frames).unwrap_or("empty")
}

/// The function that does what the user's line asked for, where its name is known: an elementwise function that was
/// called by its own name is not.
pub(super) fn function(frames: &[Frame]) -> Option<&str> {
    let called = called(frames)?;
    let operator = called.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    let Some(operator) = operator else { return WITH_OUT.contains(&called).then_some(called) };
    let known = |name: &str| OPERATORS.iter().find(|(op, _)| *op == name).map(|&(_, function)| function);
    known(operator).or_else(|| operator.strip_prefix(['r', 'i']).and_then(known))
}

/// Whether the user wrote an operator that has a form that works in place.
pub(super) fn has_in_place_form(frames: &[Frame]) -> bool {
    const IN_PLACE: [&str; 10] =
        ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"];
    let operator = called(frames).and_then(|called| called.strip_prefix("__")?.strip_suffix("__"));
    operator.is_some_and(|operator| {
        IN_PLACE.contains(&operator)
            || operator.strip_prefix('r').is_some_and(|name| IN_PLACE.contains(&name))
    })
}

/// Whether this is the call of an elementwise function by its own name, which the frames don't tell.
pub(super) fn is_unnamed_call(frames: &[Frame]) -> bool {
    called(frames) == Some("__call__") && purpose(frames) == Purpose::Result
}

/// Whether the user's line joins arrays into a new one.
pub(super) fn joins(frames: &[Frame]) -> Option<&str> {
    library_frames(frames).iter().map(|frame| bare(&frame.function)).rfind(|name| JOINING.contains(name))
}

/// The function by which the user's line reads a value of a device array, if the copy is for that. What a library
/// function reads for itself is its own business.
pub(super) fn reads(frames: &[Frame]) -> Option<&str> {
    called(frames).filter(|called| READING.contains(called))
}

/// Whether the block holds data that the user's line has drawn or laid out anew.
pub(super) fn is_fresh_data(frames: &[Frame]) -> bool {
    const LAID_OUT: [&str; 4] = ["arange", "linspace", "logspace", "geomspace"];
    let Some(outermost) = library_frames(frames).last() else { return false };
    let is_random = outermost.file.contains("random") || outermost.function.contains("Random");
    is_random || LAID_OUT.contains(&bare(&outermost.function))
}

/// Whether the result is usually much smaller than what it is made of.
pub(super) fn is_reduction(frames: &[Frame]) -> bool {
    matches!(called(frames), Some("sum" | "prod" | "max" | "min"))
}

/// The function that sends host data to a device because the program says so: the copy is of data, and not of
/// parameters that the library needs itself.
pub(super) fn sends(frames: &[Frame]) -> Option<&str> {
    let library = library_frames(frames);
    let carries_data = library.first().is_none_or(|frame| {
        matches!(bare(&frame.function), "_copy_from_numpy_into" | "_copy_from_numpy" | "copy_from_host")
            || SENDING.contains(&bare(&frame.function))
    });
    if !carries_data {
        return None;
    }
    match called(frames) {
        None => Some("copy_from_host"),
        Some(called) => SENDING.contains(&called).then_some(called),
    }
}

/// The function that fetches an array's data because the program says so.
pub(super) fn fetches(frames: &[Frame]) -> Option<&str> {
    match called(frames) {
        None => Some("copy_to_host"),
        Some(called) => matches!(called, "asnumpy" | "to_numpy" | "copy_to_host").then_some(called),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::stack;
    use super::*;

    #[test]
    fn results_casts_and_memory_in_between_are_told_apart() {
        let call = ["BinaryElementwiseFunc.__call__", "DPNPBinaryFunc.__call__", "dpnp_array.__add__"];
        let with = |inner: &[&str]| purpose(&stack(&[inner, &call].concat(), 3));
        assert_eq!(with(&["empty", "_empty_like_pair_orderK"]), Purpose::Result);
        assert_eq!(with(&["empty_like", "_empty_like_orderK", "_empty_like_pair_orderK"]), Purpose::Result);
        assert_eq!(with(&["empty_like", "_empty_like_orderK"]), Purpose::Cast);
        assert_eq!(with(&["_asarray_from_numpy_ndarray", "asarray"]), Purpose::Other);
        assert_eq!(with(&[]), Purpose::Other);
        let unary =
            ["empty_like", "_empty_like_orderK", "UnaryElementwiseFunc.__call__", "DPNPUnaryFunc.__call__"];
        assert_eq!(purpose(&stack(&unary, 3)), Purpose::Result);
    }

    #[test]
    fn without_classes_in_names_an_operator_tells_the_arity() {
        let with = |called: &str| {
            let mut frames = stack(&["empty_like", "_empty_like_orderK", "__call__", "__call__", called], 3);
            frames[2].file = "/lib/dpctl/tensor/_elementwise_common.py".into();
            purpose(&frames)
        };
        assert_eq!(with("__mul__"), Purpose::Cast);
        assert_eq!(with("__neg__"), Purpose::Result);
        assert_eq!(with("__call__"), Purpose::Other);
    }

    #[test]
    fn functions_are_known_by_what_the_user_called() {
        assert_eq!(
            purpose(&stack(&["empty", "_create_result_array", "matmul", "dpnp_array.__matmul__"], 1)),
            Purpose::Result
        );
        assert_eq!(purpose(&stack(&["_gemm_matmul", "matmul"], 1)), Purpose::Other);
        assert_eq!(purpose(&stack(&["zeros", "zeros", "zeros"], 1)), Purpose::Creation);
        assert_eq!(
            purpose(&stack(&["dpnp_array.__init__", "_get_empty_array", "zeros_like"], 1)),
            Purpose::Creation
        );
        assert_eq!(purpose(&stack(&["empty", "RandomState.normal", "normal"], 1)), Purpose::Other);
        assert_eq!(joins(&stack(&["empty", "concat", "concatenate", "append"], 1)), Some("append"));
        assert_eq!(reads(&stack(&["_copy_to_numpy", "asnumpy", "dpnp_array.item"], 1)), Some("item"));
        assert_eq!(reads(&stack(&["dpnp_array.__bool__", "bincount"], 1)), None);
        assert_eq!(sends(&stack(&["_copy_from_numpy_into", "asarray", "asarray"], 1)), Some("asarray"));
        assert_eq!(sends(&stack(&["mean"], 1)), None);
        let operand =
            ["_copy_from_numpy_into", "asarray", "BinaryElementwiseFunc.__call__", "dpnp_array.__mul__"];
        assert_eq!(sends(&stack(&operand, 1)), None);
    }

    #[test]
    fn an_operator_is_known_by_its_function() {
        let radd = stack(&["empty", "dpnp_array.__radd__"], 1);
        assert_eq!((function(&radd), has_in_place_form(&radd)), (Some("add"), true));
        let matmul = stack(&["empty", "dpnp_array.__matmul__"], 1);
        assert_eq!((function(&matmul), has_in_place_form(&matmul)), (Some("matmul"), false));
        assert_eq!(function(&stack(&["empty", "DPNPBinaryFunc.__call__"], 1)), None);
    }
}
