//! What a run found around itself: devices, variables, and how the program ended.

use super::place::Place;
use crate::kind::DeviceId;

/// Everything around a run that decides where its work goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether the program asked SYCL for anything.
    pub sycl_used: bool,
    /// The devices that SYCL shows.
    pub devices: Vec<SeenDevice>,
    /// GPUs that the operating system shows and SYCL does not: what they are, and why.
    pub hidden_gpus: Vec<String>,
    /// Variables that are set and that SYCL ignores: name and value.
    pub ignored: Vec<(String, String)>,
    /// The value of `ONEAPI_DEVICE_SELECTOR`, if it is set, and what is wrong with it, if anything is.
    pub selector: Option<String>,
    /// What is wrong with the selector.
    pub selector_fault: Option<String>,
    /// What to type so that there is a device, as far as files and variables tell.
    pub remedy: Option<String>,
    /// The uncaught exception about devices that the program died of, if it did.
    pub failure: Option<Failure>,
}

/// A device that SYCL shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDevice {
    /// Its filter string.
    pub filter: String,
    /// Its number in the ledger; [`DeviceId::NONE`] if nothing was allocated there.
    pub id: DeviceId,
    /// Whether it is a CPU.
    pub cpu: bool,
    /// Whether it is a GPU.
    pub gpu: bool,
    /// Whether SYCL would choose it.
    pub default: bool,
}

/// What the program died of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exception's own text.
    pub text: String,
    /// The user's line that raised it.
    pub place: Option<Place>,
    /// What was asked for.
    pub cause: Cause,
}

/// What a program that died had asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A device of any kind, or the default.
    AnyDevice,
    /// The device of a filter string.
    Device(String),
    /// An operation over arrays of different queues.
    Mix(Vec<QueuedArray>),
}

/// An array and the queue that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedArray {
    /// The variable that holds it in the user's code; `None` if none does.
    pub name: Option<String>,
    /// Number of its queue among those of the operation, from 1.
    pub queue: u32,
    /// The filter string of the queue's device.
    pub device: String,
    /// The line that made it, if that was recorded.
    pub made: Option<Place>,
}
