//! What a process holds on a GPU, as the kernel's DRM drivers tell it in `/proc/PID/fdinfo`.
//!
//! One client may be open under many descriptors, in many processes: it is one client by device and client number.
//! `resident` is what lies in the device's memory now; `total` counts what was evicted too.

use std::collections::BTreeMap;

use crate::{Address, Error, Root};

/// Bytes of one region, as one client has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// All of the client's objects.
    pub total: u64,
    /// Those that lie there now; `None` where the driver doesn't tell.
    pub resident: Option<u64>,
}

/// One client of a DRM driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The device.
    pub device: Address,
    /// The client's number, one for each time the device was opened.
    pub client: u64,
    /// The driver's name.
    pub driver: String,
    /// Regions by name: `local0`, `vram0`, `system0`, ...
    pub regions: BTreeMap<String, Held>,
}

impl Client {
    /// Bytes in the device's own memory.
    #[must_use]
    pub fn on_device(&self) -> u64 {
        self.sum(|region| region.starts_with("local") || region.starts_with("vram"))
    }

    /// Bytes in the host's memory, which is an integrated device's own.
    #[must_use]
    pub fn on_host(&self) -> u64 {
        self.sum(|region| region.starts_with("system") || region == "gtt" || region == "cpu")
    }

    fn sum(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let held = self.regions.iter().filter(|(name, _)| wanted(name)).map(|(_, held)| held);
        held.fold(0, |sum, held| sum.saturating_add(held.resident.unwrap_or(held.total)))
    }
}

/// Reads one fdinfo file; `None` if the descriptor is no DRM device's, or the driver tells no client.
///
/// # Errors
/// It is a DRM device's but makes no sense.
pub fn parse(text: &str) -> Result<Option<Client>, Error> {
    let fields = || text.lines().filter_map(|line| line.split_once(':'));
    let field = |name: &str| fields().find(|(key, _)| *key == name).map(|(_, value)| value.trim());
    let (Some(driver), Some(device), Some(client)) =
        (field("drm-driver"), field("drm-pdev"), field("drm-client-id"))
    else {
        return Ok(None);
    };
    let client = client.parse().map_err(|_| Error::malformed("fdinfo", "a client number", client))?;
    let mut regions: BTreeMap<String, Held> = BTreeMap::new();
    for (key, value) in fields() {
        if let Some(region) = key.strip_prefix("drm-resident-") {
            regions.entry(region.to_string()).or_default().resident = Some(bytes(value)?);
        } else if let Some(region) = key.strip_prefix("drm-total-") {
            regions.entry(region.to_string()).or_default().total = bytes(value)?;
        } else if let Some(region) = key.strip_prefix("drm-memory-") {
            // The older name of `resident`, which amdgpu still prints beside the new one.
            regions.entry(region.to_string()).or_default().resident.get_or_insert(bytes(value)?);
        }
    }
    Ok(Some(Client { device: device.parse()?, client, driver: driver.to_string(), regions }))
}

fn bytes(value: &str) -> Result<u64, Error> {
    let wrong = || Error::malformed("fdinfo", "a size in bytes, KiB or MiB", value);
    let mut words = value.split_whitespace();
    let number: u64 = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some(_) => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// The clients of one process, each once.
///
/// # Errors
/// The process is gone or not ours to look into.
pub fn clients(root: &Root, pid: u32) -> Result<Vec<Client>, Error> {
    let path = root.path(&format!("proc/{pid}/fd"));
    let entries = std::fs::read_dir(&path).map_err(|source| Error::File { path, source })?;
    let mut found: BTreeMap<(Address, u64), Client> = BTreeMap::new();
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let opened = root.link(&format!("proc/{pid}/fd/{name}"));
        if !opened.is_some_and(|target| target.starts_with("/dev/dri/")) {
            continue;
        }
        // A descriptor may be closed meanwhile; one that makes no sense must not hide the others.
        let Ok(text) = root.text(&format!("proc/{pid}/fdinfo/{name}")) else { continue };
        if let Ok(Some(client)) = parse(&text) {
            found.insert((client.device, client.client), client);
        }
    }
    Ok(found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const I915: &str = "pos:\t0\nflags:\t0100002\ndrm-driver:\ti915\ndrm-client-id:\t21\ndrm-pdev:\t0000:03:00.0\n\
        drm-total-system0:\t512 KiB\ndrm-resident-system0:\t256 KiB\ndrm-total-local0:\t2 MiB\n\
        drm-resident-local0:\t1 MiB\ndrm-engine-render:\t123 ns\n";

    #[test]
    fn a_client_is_read_with_its_units() {
        let client = parse(I915).expect("well-formed").expect("a client");
        assert_eq!((client.client, client.device.to_string().as_str()), (21, "0000:03:00.0"));
        assert_eq!((client.on_device(), client.on_host()), (1 << 20, 256 << 10));
    }

    #[test]
    fn amdgpu_and_xe_name_their_regions_otherwise() {
        let head = "drm-driver: x\ndrm-client-id: 1\ndrm-pdev: 0000:03:00.0\n";
        for (lines, expected) in [
            ("drm-memory-vram:\t8 KiB\ndrm-memory-gtt:\t4 KiB\n", (8 << 10, 4 << 10)),
            ("drm-total-vram0:\t4096\ndrm-resident-vram0:\t2048\ndrm-resident-gtt:\t1024\n", (2048, 1024)),
            ("drm-total-vram0:\t4096\n", (4096, 0)),
        ] {
            let client = parse(&format!("{head}{lines}")).expect("well-formed").expect("a client");
            assert_eq!((client.on_device(), client.on_host()), expected, "{lines}");
        }
    }

    #[test]
    fn what_is_no_client_is_none_and_nonsense_an_error() {
        assert_eq!(parse("pos: 0\nflags: 02\n").expect("fine"), None);
        assert_eq!(parse("drm-driver: i915\n").expect("fine"), None);
        for bad in ["many KiB", "1 kB", "-1", "99999999999999999999", "18446744073709551615 MiB"] {
            assert!(parse(&I915.replace("1 MiB", bad)).is_err(), "{bad}");
        }
        assert!(parse(&I915.replace("21", "x")).is_err());
        assert!(parse(&I915.replace("0000:03:00.0", "there")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*", value in ".{0,20}") {
            let _ = parse(&text);
            if let Ok(Some(client)) = parse(&I915.replace("1 MiB", &value)) {
                let _ = (client.on_device(), client.on_host());
            }
        }
    }
}
