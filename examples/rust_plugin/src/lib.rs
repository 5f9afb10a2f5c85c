//! A plugin of three ops, which says what it does as it comes and goes.

use minitensor_plugin_sdk::prelude::*;
use minitensor_plugin_sdk::{CustomOpRegistry, Plugin, PluginInfo, VersionInfo};

/// The absolute value.
#[custom_op]
pub fn rust_abs<T: Real>(x: T) -> T {
    x.abs()
}

/// `x`, limited to `[low, high]`. Where `x` is outside, the gradient goes to the limit; a NaN anywhere stays one.
#[custom_op]
pub fn rust_clamp<T: Real>(x: T, low: T, high: T) -> T {
    x.maximum(low).minimum(high)
}

/// The Gaussian error linear unit, `x · Φ(x)` (Hendrycks and Gimpel, 2016).
#[custom_op]
pub fn rust_gelu<T: Float>(x: T) -> T {
    x * x.normal_cdf()
}

/// Without this struct, `plugin! {}` alone would do: the ops above are found by themselves.
struct Example {
    info: PluginInfo,
}

impl Example {
    fn new() -> Example {
        let info = PluginInfo {
            name: "rust_example_plugin".to_string(),
            version: VersionInfo::new(1, 0, 0),
            description: "Example Rust plugin".to_string(),
            author: "Rust Developer".to_string(),
            min_minitensor_version: VersionInfo::new(0, 1, 0),
            max_minitensor_version: None,
        };
        Example { info }
    }
}

impl Plugin for Example {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn initialize(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin initialized!");
        Ok(())
    }

    fn cleanup(&self, _registry: &CustomOpRegistry) -> Result<()> {
        println!("Rust plugin cleaned up!");
        Ok(())
    }
}

plugin! {
    name: "rust_example_plugin",
    description: "Example Rust plugin",
    author: "Rust Developer",
    min_minitensor: "0.1.0",
    plugin: Example::new(),
}
