//! [`Device`]: where memory lies.

use std::fmt;

use crate::error::{Error, Result};

/// Where memory lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Device {
    /// Main memory.
    #[default]
    Cpu,
    /// Nowhere: a tensor of which only shape and dtype are known, for inference.
    Meta,
}

impl Device {
    /// The device of that name, if this build and this machine have it.
    pub fn parse(name: &str) -> Result<Device> {
        match name {
            "cpu" => Ok(Device::Cpu),
            "meta" => Ok(Device::Meta),
            other if other == "cuda" || other.starts_with("cuda:") => Err(Error::runtime(format!(
                "device '{other}' is not available: this build of minitensor runs on the CPU; use device='cpu'"
            ))),
            other => Err(Error::value(format!("unknown device '{other}'; the devices are 'cpu' and 'meta'"))),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Meta => "meta",
        })
    }
}
