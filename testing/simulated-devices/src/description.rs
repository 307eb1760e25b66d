//! What a device is: read from one environment variable.
//!
//! `SIMULATED_DEVICES` holds devices apart by `|`, and of each device `key=value` apart by `;`. What can't be read is said
//! on standard error, and then there are no devices: a test that meant others fails at once.

use std::path::PathBuf;

/// The variable.
pub const VARIABLE: &str = "SIMULATED_DEVICES";

/// What memory other processes use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Others {
    /// As many bytes, until a test says otherwise.
    Bytes(u64),
    /// The size that a file holds whenever it is asked for, so that another process can change it.
    File(PathBuf),
}

/// How the driver answers when it is asked for free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sysman {
    /// There is no such interface.
    Absent,
    /// Whoever may not know is told that all is free.
    Unprivileged,
    /// What is free.
    Privileged,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// As SYCL shows it.
    pub name: String,
    /// A GPU; else a CPU, which Level Zero doesn't show.
    pub gpu: bool,
    /// Memory for device and shared allocations together.
    pub mem: u64,
    /// The largest single allocation.
    pub max_alloc: u64,
    /// Whether it uses the host's memory.
    pub integrated: bool,
    /// What other processes use.
    pub other: Others,
    /// Whether and how free memory is told.
    pub sysman: Sysman,
    /// Compute units.
    pub units: u32,
    /// The PCI device id.
    pub id: u32,
    /// Whether Level Zero shows it.
    pub level_zero: bool,
    /// Whether OpenCL shows it.
    pub opencl: bool,
}

impl Default for Description {
    fn default() -> Self {
        Self {
            name: "Simulated GPU".into(),
            gpu: true,
            mem: 4 << 30,
            max_alloc: 0,
            integrated: false,
            other: Others::Bytes(0),
            sysman: Sysman::Privileged,
            units: 128,
            id: 0x56a0,
            level_zero: true,
            opencl: true,
        }
    }
}

/// Reads all devices of a text; the error says which word is wrong.
pub fn read(text: &str) -> Result<Vec<Description>, String> {
    text.split('|').filter(|part| !part.trim().is_empty()).map(read_one).collect()
}

fn read_one(text: &str) -> Result<Description, String> {
    let mut device = Description::default();
    for pair in text.split(';').filter(|pair| !pair.trim().is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}`: expected `key=value`"))?;
        set(&mut device, key.trim(), value.trim())
            .map_err(|expected| format!("`{pair}`: expected {expected}"))?;
    }
    if device.max_alloc == 0 {
        device.max_alloc = device.mem;
    }
    if !device.gpu {
        device.level_zero = false;
    }
    Ok(device)
}

fn set(device: &mut Description, key: &str, value: &str) -> Result<(), &'static str> {
    match key {
        "name" => device.name = value.into(),
        "type" => device.gpu = one_of(value, &[("gpu", true), ("cpu", false)]).ok_or("`gpu` or `cpu`")?,
        "mem" => device.mem = size(value)?,
        "max_alloc" => device.max_alloc = size(value)?,
        "integrated" => device.integrated = flag(value)?,
        "other" => {
            device.other = match value.strip_prefix('@') {
                Some(file) => Others::File(file.into()),
                None => Others::Bytes(size(value)?),
            };
        }
        "privileged" => {
            device.sysman = if flag(value)? { Sysman::Privileged } else { Sysman::Unprivileged };
        }
        "sysman" if !flag(value)? => device.sysman = Sysman::Absent,
        "sysman" => {}
        "units" => device.units = value.parse().map_err(|_| "a number")?,
        "id" => {
            let digits = value.strip_prefix("0x").unwrap_or(value);
            device.id = u32::from_str_radix(digits, 16).map_err(|_| "a hexadecimal number")?;
        }
        "drivers" => {
            let names: Vec<&str> = value.split('+').collect();
            if names.iter().any(|name| !["level_zero", "opencl"].contains(name)) {
                return Err("`level_zero`, `opencl` or both joined by `+`");
            }
            device.level_zero = names.contains(&"level_zero");
            device.opencl = names.contains(&"opencl");
        }
        _ => {
            return Err(
                "one of name, type, mem, max_alloc, integrated, other, privileged, sysman, units, id, drivers",
            );
        }
    }
    Ok(())
}

fn one_of<T: Copy>(value: &str, known: &[(&str, T)]) -> Option<T> {
    known.iter().find(|(name, _)| *name == value).map(|&(_, meaning)| meaning)
}

fn flag(value: &str) -> Result<bool, &'static str> {
    one_of(value, &[("0", false), ("1", true)]).ok_or("0 or 1")
}

/// A size as people write it: bytes, or a number and `KiB`, `MiB`, `GiB`, `kB`, `MB` or `GB`.
pub fn size(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, u64); 6] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    let text = text.trim();
    let unit = UNITS.iter().find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    let number: f64 = number.trim().parse().map_err(|_| "a size such as 48GiB")?;
    if number.is_finite() && number >= 0.0 {
        Ok((number * bytes as f64) as u64)
    } else {
        Err("a size such as 48GiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read() {
        let text = "name=A B;type=gpu;mem=48GiB;max_alloc=24GiB;integrated=1;other=2GB;privileged=0;units=7;id=0xbd5;\
                    drivers=opencl | mem=1.5MiB;other=@/x/y";
        let devices = read(text).expect("it is right");
        let expected = Description {
            name: "A B".into(),
            gpu: true,
            mem: 48 << 30,
            max_alloc: 24 << 30,
            integrated: true,
            other: Others::Bytes(2_000_000_000),
            sysman: Sysman::Unprivileged,
            units: 7,
            id: 0xbd5,
            level_zero: false,
            opencl: true,
        };
        assert_eq!(devices[0], expected);
        assert_eq!((devices[1].mem, devices[1].max_alloc), (3 << 19, 3 << 19));
        assert_eq!(devices[1].other, Others::File("/x/y".into()));
    }

    #[test]
    fn a_cpu_is_no_level_zero_device() {
        let devices = read("type=cpu;sysman=0").expect("it is right");
        assert_eq!((devices[0].level_zero, devices[0].opencl), (false, true));
        assert_eq!(devices[0].sysman, Sysman::Absent);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("mem", "key=value"),
            ("mem=-1", "a size"),
            ("mem=NaN", "a size"),
            ("colour=red", "one of"),
            ("integrated=yes", "0 or 1"),
            ("type=npu", "gpu"),
            ("drivers=cuda", "level_zero"),
            ("id=zz", "hexadecimal"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(word) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn nothing_is_no_device() {
        assert_eq!(read(" "), Ok(vec![]));
    }
}
