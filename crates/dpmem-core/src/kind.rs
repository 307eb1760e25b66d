//! What a block is: its USM kind, its device, and the direction of a copy.

/// How many devices a ledger tells apart; index 0 stands for "no single device".
pub const MAX_DEVICES: usize = 64;

/// The kind of a USM allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Lives on one device.
    Device = 0,
    /// Lives on the host, reachable by every device of its context.
    Host = 1,
    /// Migrates between host and device.
    Shared = 2,
}

impl Kind {
    /// All kinds, in the order in which reports list them.
    pub const ALL: [Kind; 3] = [Kind::Device, Kind::Host, Kind::Shared];

    /// The word for it in reports and in the Python API.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Host => "host",
            Kind::Shared => "shared",
        }
    }

    /// The kind with that name, as `usm_type` spells it.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a copy to or from such memory crosses between host and device; shared memory counts as the device's.
    pub fn on_device(self) -> bool {
        self != Kind::Host
    }
}

/// A device as the ledger knows it: a small index, handed out by whoever knows the runtime's handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(u8);

impl DeviceId {
    /// Memory that belongs to no single device: host memory of a context with several.
    pub const NONE: DeviceId = DeviceId(0);

    /// The device at `index`; beyond [`MAX_DEVICES`] everything shares [`DeviceId::NONE`].
    pub fn new(index: usize) -> DeviceId {
        if index < MAX_DEVICES { DeviceId(index as u8) } else { DeviceId::NONE }
    }

    /// Its index, below [`MAX_DEVICES`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Which way a copy went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// From host memory to a device.
    HostToDevice = 0,
    /// From a device to host memory.
    DeviceToHost = 1,
    /// Between blocks of devices.
    DeviceToDevice = 2,
}

impl Direction {
    /// The direction of a copy, given the kinds of both ends (`None`: plain host memory). A copy between two host
    /// ends is none.
    pub fn of(source: Option<Kind>, target: Option<Kind>) -> Option<Direction> {
        let on_device = |kind: Option<Kind>| kind.is_some_and(Kind::on_device);
        match (on_device(source), on_device(target)) {
            (false, true) => Some(Direction::HostToDevice),
            (true, false) => Some(Direction::DeviceToHost),
            (true, true) => Some(Direction::DeviceToDevice),
            (false, false) => None,
        }
    }

    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Direction::HostToDevice => "host_to_device",
            Direction::DeviceToHost => "device_to_host",
            Direction::DeviceToDevice => "device_to_device",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::from_name("managed"), None);
    }

    #[test]
    fn direction_follows_the_ends() {
        assert_eq!(Direction::of(None, Some(Kind::Device)), Some(Direction::HostToDevice));
        assert_eq!(Direction::of(Some(Kind::Host), Some(Kind::Shared)), Some(Direction::HostToDevice));
        assert_eq!(Direction::of(Some(Kind::Device), Some(Kind::Host)), Some(Direction::DeviceToHost));
        assert_eq!(Direction::of(Some(Kind::Device), Some(Kind::Device)), Some(Direction::DeviceToDevice));
        assert_eq!(Direction::of(Some(Kind::Host), None), None);
    }

    #[test]
    fn devices_beyond_the_table_share_the_first_place() {
        assert_eq!(DeviceId::new(MAX_DEVICES), DeviceId::NONE);
        assert_eq!(DeviceId::new(MAX_DEVICES - 1).index(), MAX_DEVICES - 1);
    }
}
