//! [`Device`]: the device of a tensor's memory.

use std::fmt;

use crate::error::{Error, Result};

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor and main memory.
    #[default]
    Cpu,
    /// No memory. Tensors have a shape and a dtype but no values; calls infer the shapes and dtypes of their outputs.
    Meta,
}

impl DeviceKind {
    /// All kinds.
    pub const ALL: [DeviceKind; 2] = [DeviceKind::Cpu, DeviceKind::Meta];

    /// The name, such as `cpu`.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Meta => "meta",
        }
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
    pub const Cpu: Device = Device { kind: DeviceKind::Cpu, index: 0 };
    /// [No memory](DeviceKind::Meta).
    pub const Meta: Device = Device { kind: DeviceKind::Meta, index: 0 };
}

impl Device {
    /// The kind.
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// The index among the devices of the same kind, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The device with that name, such as `cpu`, `cpu:0` or `meta`, if this build and this machine have it.
    pub fn parse(name: &str) -> Result<Device> {
        let (kind, index) = match name.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (name, None),
        };
        if kind == "cuda" {
            return Err(Error::runtime(format!(
                "device '{name}' is not available: this build of minitensor runs on the CPU; use device='cpu'"
            )));
        }
        let Some(kind) = DeviceKind::ALL.into_iter().find(|k| k.name() == kind) else {
            return Err(Error::value(format!("unknown device '{name}'; the devices are 'cpu' and 'meta'")));
        };
        match index {
            None | Some("0") => Ok(Device { kind, index: 0 }),
            Some(_) => Err(Error::value(format!(
                "unknown device '{name}'; there is one device of this kind, '{}'",
                kind.name()
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
