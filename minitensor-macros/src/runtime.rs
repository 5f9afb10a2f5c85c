//! The path of the runtime in the expansion: in `minitensor` or in the SDK, depending on the dependencies of the crate.

use std::sync::OnceLock;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

/// `::minitensor::__private`, or the path of a `crate` clause.
pub fn path(explicit: Option<&Path>) -> TokenStream {
    if let Some(path) = explicit {
        return quote!(#path::__private);
    }
    static SDK: OnceLock<bool> = OnceLock::new();
    match SDK.get_or_init(only_the_sdk) {
        true => quote!(::minitensor_plugin_sdk::__private),
        false => quote!(::minitensor::__private),
    }
}

/// Whether the manifest depends on the SDK and not on minitensor itself. Dependencies of tests only count if there are no others.
fn only_the_sdk() -> bool {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").map(|dir| format!("{dir}/Cargo.toml"));
    let text = manifest.ok().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let names = |package: &str, of_tests: bool| depends(&text, package, of_tests);
    let of_tests = !names("minitensor-plugin-sdk", false) && !names("minitensor", false);
    names("minitensor-plugin-sdk", of_tests) && !names("minitensor", of_tests)
}

/// Whether a manifest names a package among its dependencies, or among those of its tests.
fn depends(manifest: &str, package: &str, of_tests: bool) -> bool {
    let mut is_section = false;
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            is_section = line.contains("dev-dependencies") == of_tests;
            return is_section && line.ends_with(&format!("dependencies.{package}]"));
        }
        is_section && line.strip_prefix(package).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
    })
}

#[cfg(test)]
mod tests {
    use super::depends;

    #[test]
    fn dependencies_of_tests_are_apart() {
        let manifest =
            "[dependencies]\nminitensor-plugin-sdk = \"0.1\"\n[dev-dependencies]\nminitensor = { path = \"..\" }\n";
        assert!(depends(manifest, "minitensor-plugin-sdk", false) && !depends(manifest, "minitensor", false));
        assert!(depends(manifest, "minitensor", true));
        assert!(depends("[dependencies.minitensor]\npath = \"..\"", "minitensor", false));
        assert!(depends("[target.'cfg(unix)'.dependencies]\nminitensor.workspace = true", "minitensor", false));
    }
}
