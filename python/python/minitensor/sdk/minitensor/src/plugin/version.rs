//! Versions, and what is known of a plugin.

use std::fmt;

use crate::error::{Error, Result};

/// A version by its three numbers, as semantic versioning understands them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionInfo {
    /// Goes up where something breaks.
    pub major: u32,
    /// Goes up where something is added, and before 1.0.0 where something breaks.
    pub minor: u32,
    /// Goes up where something is mended.
    pub patch: u32,
}

impl VersionInfo {
    /// A version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> VersionInfo {
        VersionInfo { major, minor, patch }
    }

    /// The version that a text such as `1.2.3` means; what stands behind the numbers, as in `1.2.3-rc.1`, is left out.
    ///
    /// ```
    /// use minitensor::plugin::VersionInfo;
    /// assert_eq!(VersionInfo::parse("1.2.3")?, VersionInfo::new(1, 2, 3));
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<VersionInfo> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default().split('.').map(|n| n.parse().ok());
        match numbers.collect::<Option<Vec<u32>>>().as_deref() {
            Some([major, minor, patch]) => Ok(VersionInfo::new(*major, *minor, *patch)),
            _ => Err(Error::value(format!("'{text}' is no version; write three numbers, such as '1.2.3'"))),
        }
    }

    /// The version of this minitensor.
    pub fn current() -> VersionInfo {
        VersionInfo::parse(env!("CARGO_PKG_VERSION")).expect("a crate has a version")
    }

    /// Whether this version has all that another one has: it is not older, and the major version is the same. Before 1.0.0 the minor
    /// version must be the same, too, as everything may change with it.
    pub fn is_compatible_with(self, min_required: VersionInfo) -> bool {
        let same_line = self.major == min_required.major && (self.major > 0 || self.minor == min_required.minor);
        same_line && self >= min_required
    }
}

impl fmt::Display for VersionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its name, by which it is loaded once.
    pub name: String,
    /// Its version.
    pub version: VersionInfo,
    /// What it is for.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// The oldest minitensor that it supports.
    pub min_minitensor_version: VersionInfo,
    /// The newest minitensor that it supports; without one, those that are compatible with the oldest.
    pub max_minitensor_version: Option<VersionInfo>,
}
