//! Numbers: the traits that bodies are written in, and the types that implement them.

mod bits;
pub mod cartesian;
mod cast;
mod complex;
mod dual;
mod filled;
pub(crate) mod machine;
mod reference;
pub(crate) mod scalar;
pub(crate) mod special;
mod truth;

pub use bits::{BitFunction, Bits};
pub use cast::Cast;
pub use dual::Dual;
pub use filled::Filled;
pub use reference::{FieldOperand, FieldReference, FloatOperand, NumOperand, NumReference, RealOperand};
pub use scalar::{Const, Element, Field, Float, Int, Machine, Mask, Num, Real, lit};
pub use truth::Truth;
