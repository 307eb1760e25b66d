//! Why the hook can't observe. Every text fits after "dpmem can't observe this process: ".

/// A reason for not recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No SYCL runtime is in the process.
    #[error("no SYCL runtime is loaded: expected `libsycl.so`; import dpctl or dpnp first")]
    NoRuntime,
    /// The runtime is there, its dispatch table is not.
    #[error("found no dispatch table in `{module}`: expected an object of at least {expected} entry points")]
    NoTable {
        /// The library that was searched.
        module: String,
        /// How many entry points a table has at least.
        expected: usize,
    },
    /// The table's slots couldn't be told apart.
    #[error("found the dispatch table of `{module}`, but not the slot of `{function}`")]
    NoSlot {
        /// The library that was searched.
        module: String,
        /// The first function without a slot.
        function: &'static str,
    },
    /// Allocations went past the shims.
    #[error("{tries} allocations went past the shims of {mechanism}")]
    Unproved {
        /// How many.
        tries: usize,
        /// What had been put in.
        mechanism: String,
    },
    /// A page would not become writable.
    #[error("could not write the slot of `{function}`: the page is read-only ({errno})")]
    ReadOnly {
        /// The function whose slot it is.
        function: String,
        /// What the system said.
        errno: i32,
    },
    /// A forked child.
    #[error("this is a forked child: SYCL does not survive a fork, and dpmem records the parent only")]
    Forked,
    /// The layout of Python's frames was not recognised.
    #[error("could not read Python frames: {0}")]
    Frames(String),
}
