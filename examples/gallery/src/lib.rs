//! A gallery of ops from papers and libraries. Each op is one annotated function; its gradient is derived.
//!
//! Each module is a field: its file is the list of its ops. `docs/gallery.md` shows them with their formulas and plots.

#![forbid(unsafe_code)]

use minitensor_plugin_sdk::plugin;

pub mod activation;
pub mod attention;
pub mod distribution;
pub mod finance;
pub mod geometry;
pub mod loss;
pub mod normalization;
pub mod optimizer;
pub mod path;
pub mod physics;
pub mod quantization;
pub mod sampling;
pub mod sequence;
pub mod signal;

plugin! {}
