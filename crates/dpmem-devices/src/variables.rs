//! The environment variables that decide which devices SYCL shows, in one table.

/// What a variable does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It may take devices away, or bring some in.
    Chooses,
    /// It changes how devices are shown or reached.
    Shapes,
    /// Today's runtimes pass it over.
    Ignored,
}

/// A variable and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What kind of effect it has.
    pub effect: Effect,
    /// What it does, as a clause that follows its name.
    pub does: &'static str,
}

const fn chooses(name: &'static str, does: &'static str) -> Variable {
    Variable { name, effect: Effect::Chooses, does }
}

const fn shapes(name: &'static str, does: &'static str) -> Variable {
    Variable { name, effect: Effect::Shapes, does }
}

const fn ignored(name: &'static str) -> Variable {
    Variable { name, effect: Effect::Ignored, does: "is ignored by today's SYCL runtimes" }
}

/// All variables that are looked at, in the order in which they take effect.
pub const VARIABLES: &[Variable] = &[
    chooses("ONEAPI_DEVICE_SELECTOR", "chooses backends and devices"),
    chooses("SYCL_DEVICE_ALLOWLIST", "admits only devices that match"),
    chooses("OCL_ICD_FILENAMES", "names the OpenCL drivers to load"),
    chooses("OCL_ICD_VENDORS", "says where OpenCL drivers are registered"),
    chooses("OPENCL_LAYERS", "puts layers before the OpenCL drivers"),
    chooses("ZE_AFFINITY_MASK", "chooses Level Zero devices by number"),
    chooses("CUDA_VISIBLE_DEVICES", "chooses CUDA devices by number"),
    chooses("ROCR_VISIBLE_DEVICES", "chooses HIP devices by number"),
    chooses("HIP_VISIBLE_DEVICES", "chooses HIP devices by number"),
    chooses("UR_ADAPTERS_FORCE_LOAD", "names the only adapters to load"),
    chooses(
        "UR_LOADER_PRELOAD_FILTER",
        "says whether adapters are sorted out by the selector before they are loaded",
    ),
    chooses("ZE_ENABLE_ALT_DRIVERS", "names the only Level Zero drivers to load"),
    shapes("ZE_FLAT_DEVICE_HIERARCHY", "says whether a GPU's tiles are devices of their own"),
    shapes("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "orders Level Zero devices by PCI address"),
    shapes("ZES_ENABLE_SYSMAN", "lets SYCL ask Level Zero for free memory"),
    shapes("SYCL_UR_USE_LEVEL_ZERO_V2", "chooses the second Level Zero adapter"),
    shapes("UR_ADAPTERS_SEARCH_PATH", "says where adapters are looked for"),
    ignored("SYCL_DEVICE_FILTER"),
    ignored("SYCL_BE"),
    ignored("SYCL_DEVICE_TYPE"),
];

/// The variable of that name.
#[must_use]
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once() {
        for variable in VARIABLES {
            assert_eq!(
                VARIABLES.iter().filter(|other| other.name == variable.name).count(),
                1,
                "{}",
                variable.name
            );
        }
        assert_eq!(variable("SYCL_BE").map(|variable| variable.effect), Some(Effect::Ignored));
        assert_eq!(variable("HOME"), None);
    }
}
