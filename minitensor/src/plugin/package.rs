//! The metadata and the life cycle of a plugin written in Rust: the line `plugin! {}`.

use std::sync::Arc;

use super::abi;
use super::{PluginInfo, VersionInfo};
use crate::error::Result;
use crate::op::CustomOp;

/// A plugin that runs code when it is loaded and unloaded, or has ops written as objects. A library whose ops are all defined
/// with `#[custom_op]` needs no implementation of this trait.
///
/// ```
/// use std::sync::Arc;
/// use minitensor::{CustomOp, CustomOpRegistry, Plugin, PluginInfo, Result, VersionInfo};
///
/// struct Example(PluginInfo);
///
/// impl Plugin for Example {
///     fn info(&self) -> &PluginInfo {
///         &self.0
///     }
///     fn initialize(&self, _registry: &CustomOpRegistry) -> Result<()> {
///         println!("here it is");
///         Ok(())
///     }
/// }
/// ```
pub trait Plugin: Send + Sync {
    /// The metadata. The name and the version must equal those of `plugin! {}`.
    fn info(&self) -> &PluginInfo;

    /// Called when the plugin is loaded. If it fails, no op of the plugin remains registered.
    ///
    /// # Errors
    /// Any error that prevents the plugin from working.
    fn initialize(&self, registry: &CustomOpRegistry) -> Result<()> {
        let _ = registry;
        Ok(())
    }

    /// Called when the plugin is unloaded. Graphs may still call its ops afterwards.
    ///
    /// # Errors
    /// The error is shown to the user as a warning. The plugin is unloaded nevertheless.
    fn cleanup(&self, registry: &CustomOpRegistry) -> Result<()> {
        let _ = registry;
        Ok(())
    }

    /// Ops written as objects. Ops defined with `#[custom_op]` are registered without this.
    fn custom_operations(&self) -> Vec<Arc<dyn CustomOp>> {
        Vec::new()
    }
}

/// The registry that a plugin adds ops to during initialization.
pub struct CustomOpRegistry {
    pub(crate) register: fn(Arc<dyn CustomOp>) -> Result<()>,
}

impl CustomOpRegistry {
    /// The registry of this process, for tests that do not load the plugin.
    #[cfg(feature = "engine")]
    pub fn global() -> CustomOpRegistry {
        CustomOpRegistry { register: |op| crate::registry::register(op).map(|_| ()) }
    }

    /// Registers an op.
    ///
    /// # Errors
    /// The definition is invalid, or the plugin is not being initialized.
    pub fn register(&self, op: Arc<dyn CustomOp>) -> Result<()> {
        (self.register)(op)
    }
}

/// The fields of `plugin! {}`. Omitted fields are taken from `Cargo.toml`.
#[derive(Clone, Copy)]
pub struct Package {
    /// The plugin's name.
    pub name: &'static str,
    /// Its version, `1.2.3`.
    pub version: &'static str,
    /// Its purpose.
    pub description: &'static str,
    /// Its author.
    pub author: &'static str,
    /// The oldest supported version of minitensor. By default that of the SDK.
    pub min_minitensor: &'static str,
    /// The newest supported version of minitensor. If empty, all versions compatible with the oldest are supported.
    pub max_minitensor: &'static str,
    /// Creates the plugin, if it runs code of its own.
    pub plugin: Option<fn() -> Box<dyn Plugin>>,
}

impl Package {
    /// The constant that the library exports.
    #[doc(hidden)]
    pub const fn constant(&self, init: Init, fini: Fini) -> abi::Plugin {
        abi::Plugin {
            magic: abi::MAGIC,
            abi_major: abi::MAJOR,
            abi_minor: abi::MINOR,
            struct_size: size_of::<abi::Plugin>() as u64,
            name: padded(self.name),
            version: padded(self.version),
            description: padded(self.description),
            author: padded(self.author),
            min_minitensor: padded(self.min_minitensor),
            max_minitensor: padded(self.max_minitensor),
            built_with: padded(env!("MINITENSOR_BUILT_WITH")),
            init: Some(init),
            fini: Some(fini),
        }
    }

    /// Returns an error if the metadata of the plugin differs from the exported constant.
    #[doc(hidden)]
    pub fn check(&self, info: &PluginInfo) -> Result<()> {
        if info.name == self.name && info.version == VersionInfo::parse(self.version)? {
            return Ok(());
        }
        Err(crate::Error::value(format!(
            "its PluginInfo is '{}' {}, but `plugin! {{}}` declares '{}' {}; they must be equal",
            info.name, info.version, self.name, self.version
        )))
    }
}

type Init = unsafe extern "C" fn(*const abi::Host, *mut abi::ErrorSink) -> i32;
type Fini = unsafe extern "C" fn(*mut abi::ErrorSink) -> i32;

/// The text, padded with zeros. Evaluated at compile time.
const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut padded) = (text.as_bytes(), [0; N]);
    assert!(
        bytes.len() < N,
        "a string of plugin! {{}} is too long: the limits are 63 bytes for a name, 255 for a description and 127 for \
         an author"
    );
    let mut i = 0;
    while i < bytes.len() {
        assert!(bytes[i] != 0, "a string of plugin! {{}} contains a NUL");
        padded[i] = bytes[i];
        i += 1;
    }
    padded
}

/// Makes a library loadable by minitensor. Use it once in a crate whose `crate-type` is `cdylib`.
///
/// The fields are those of [`Package`](crate::plugin::Package). Omitted fields are taken from `Cargo.toml`.
///
/// ```
/// use minitensor::prelude::*;
///
/// /// `x³`.
/// #[custom_op]
/// pub fn cubed<T: Num>(x: T) -> T {
///     x * x * x
/// }
///
/// minitensor::plugin! { name: "math_extensions", description: "Additional mathematical operations" }
/// # fn main() {}
/// ```
///
/// With the feature `engine`, as in the tests of the crate itself, nothing is exported: the ops are registered without loading.
#[macro_export]
macro_rules! plugin {
    ($($field:ident: $value:expr),* $(,)?) => {
        const _: () = {
            // All fields may be given, and then the update is redundant.
            #[allow(clippy::needless_update)]
            static PACKAGE: $crate::plugin::Package = $crate::plugin::Package {
                $($field: $crate::plugin_field!($field $value),)*
                ..$crate::plugin::Package {
                    name: env!("CARGO_PKG_NAME"),
                    version: env!("CARGO_PKG_VERSION"),
                    description: env!("CARGO_PKG_DESCRIPTION"),
                    author: env!("CARGO_PKG_AUTHORS"),
                    min_minitensor: $crate::plugin::MINITENSOR,
                    max_minitensor: "",
                    plugin: None,
                }
            };
            $crate::plugin_export!(PACKAGE);
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! plugin_field {
    (plugin $make:expr) => {
        Some(|| -> ::std::boxed::Box<dyn $crate::Plugin> { ::std::boxed::Box::new($make) })
    };
    ($field:ident $value:expr) => {
        $value
    };
}

/// With the engine in the same library, ops are registered without loading, so nothing is exported.
#[cfg(feature = "engine")]
#[doc(hidden)]
#[macro_export]
macro_rules! plugin_export {
    ($package:ident) => {
        const _: &$crate::plugin::Package = &$package;
    };
}

#[cfg(not(feature = "engine"))]
#[doc(hidden)]
#[macro_export]
macro_rules! plugin_export {
    ($package:ident) => {
        use $crate::plugin::{abi, start};

        #[allow(non_upper_case_globals)]
        #[unsafe(no_mangle)]
        pub static minitensor_plugin: abi::Plugin = $package.constant(init, fini);

        unsafe extern "C" fn init(host: *const abi::Host, error: *mut abi::ErrorSink) -> i32 {
            // SAFETY: the host calls this function as the ABI requires.
            unsafe { start::init(&$package, host, error) }
        }

        unsafe extern "C" fn fini(error: *mut abi::ErrorSink) -> i32 {
            // SAFETY: the host calls this function as the ABI requires.
            unsafe { start::fini(error) }
        }
    };
}
