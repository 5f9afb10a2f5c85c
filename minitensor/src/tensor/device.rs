//! [`Device`]: the device of a tensor's memory.

use std::fmt;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// A kind of device, such as `cpu`. Kinds are compared by number; each has a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DeviceKind(u8);

/// The names of the kinds that have been added, by number.
static ADDED: [OnceLock<&'static str>; 30] = [const { OnceLock::new() }; 30];
/// The names of the kinds that every build has.
const BUILT_IN: [&str; 2] = ["cpu", "meta"];

#[allow(non_upper_case_globals)]
impl DeviceKind {
    /// The processor and main memory.
    pub const Cpu: DeviceKind = DeviceKind(0);
    /// No memory. Tensors have a shape and a dtype but no values; calls infer the shapes and dtypes of their outputs.
    pub const Meta: DeviceKind = DeviceKind(1);

    /// The kind with this name. It is added if it is new: kernels for a device may be loaded before the device itself.
    ///
    /// # Errors
    /// If the name is not made of lowercase letters, digits and `_`, or if there are too many kinds.
    pub fn named(name: &str) -> Result<DeviceKind> {
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_letter) || name.len() > 32 {
            return Err(Error::value(format!(
                "the name of a kind of device consists of at most 32 lowercase letters, digits and '_', got {name:?}"
            )));
        }
        if let Some(kind) = DeviceKind::find(name) {
            return Ok(kind);
        }
        for (at, slot) in ADDED.iter().enumerate() {
            // Another thread may have taken the slot, even with the same name.
            if *slot.get_or_init(|| String::leak(name.to_owned())) == name {
                return Ok(DeviceKind((BUILT_IN.len() + at) as u8));
            }
        }
        Err(Error::runtime(format!("too many kinds of devices, expected at most {}", BUILT_IN.len() + ADDED.len())))
    }

    /// The kind with this name, if it has been added.
    pub fn find(name: &str) -> Option<DeviceKind> {
        DeviceKind::all().find(|kind| kind.name() == name)
    }

    /// All kinds.
    pub fn all() -> impl Iterator<Item = DeviceKind> {
        let added = ADDED.iter().take_while(|slot| slot.get().is_some()).count();
        (0..BUILT_IN.len() + added).map(|number| DeviceKind(number as u8))
    }

    /// The name, such as `cpu`.
    pub fn name(self) -> &'static str {
        let added = |at: usize| ADDED.get(at).and_then(OnceLock::get).copied();
        let at = usize::from(self.0);
        BUILT_IN.get(at).copied().or_else(|| added(at - BUILT_IN.len())).unwrap_or("unknown")
    }

    /// The number of the kind in this process.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The device of a tensor's memory: a kind, and an index among the devices of that kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Device {
    kind: DeviceKind,
    index: u32,
}

/// The devices that every machine has, named like their kinds.
#[allow(non_upper_case_globals)]
impl Device {
    /// Main memory.
    pub const Cpu: Device = Device::new(DeviceKind::Cpu, 0);
    /// [No memory](DeviceKind::Meta).
    pub const Meta: Device = Device::new(DeviceKind::Meta, 0);

    /// A device. It need not exist; creating a tensor there fails if it does not.
    pub const fn new(kind: DeviceKind, index: u32) -> Device {
        Device { kind, index }
    }

    /// The kind.
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// The index among the devices of the same kind, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// An error if the CPU cannot read tensors on this device.
    pub(crate) fn expect_cpu(self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            Device::Meta => Err(Error::not_implemented(
                "the tensor is on device 'meta', which holds shapes and dtypes but no values",
            )),
            device => Err(Error::runtime(format!(
                "the tensor is on device '{device}', whose memory the CPU does not read; copy it with to('cpu')"
            ))),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.index {
            0 => Ok(()),
            index => write!(f, ":{index}"),
        }
    }
}
