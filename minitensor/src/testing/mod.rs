//! Tests for authors of ops. [`gradcheck`] compares gradients with finite differences. [`opcheck`] tries an op with many
//! shapes, dtypes, layouts, special values, threads and attributes.

mod attributes;
mod batches;
mod computed;
mod formulas;
mod gradcheck;
mod gradients;
mod graphs;
mod layouts;
mod lazy;
mod nan;
mod opcheck;
mod parts;
mod precision;
mod programs;
mod properties;
mod rows;
mod sample;
mod sizes;
mod values;

pub use gradcheck::{GradCheck, gradcheck};
pub use opcheck::{Finding, Report, opcheck};
pub use sample::{Sample, samples};
