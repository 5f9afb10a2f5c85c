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

/// Whether the manifest depends on the SDK and not on minitensor itself.
fn only_the_sdk() -> bool {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").map(|dir| format!("{dir}/Cargo.toml"));
    let text = manifest.ok().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let names = |package: &str| {
        text.lines().map(str::trim).any(|line| {
            let dependency = line.strip_prefix(package).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']));
            dependency || line.starts_with('[') && line.ends_with(&format!("dependencies.{package}]"))
        })
    };
    names("minitensor-plugin-sdk") && !names("minitensor")
}
