//! Machine code for programs, assembled at run time.
//!
//! | step | file |
//! |---|---|
//! | A program is evaluated at numbers that record each operation. Elementary functions are recorded from the source that rustc compiles | `number.rs`, `integer.rs` |
//! | The record is a form: instructions that a CPU has, for one element | `form.rs` |
//! | With AVX2, operations that it lacks are replaced | `lower.rs` |
//! | With AVX-512, products with a condition are one operation | `masked.rs` |
//! | Values are assigned to registers, and instructions are chosen from a table | `assemble.rs`, `values.rs`, `x86.rs` |
//! | Half floats are widened when they are loaded, and rounded when they are stored | `halves.rs` |
//! | Integers of 8 and 16 bits are widened and truncated | `narrow.rs` |
//! | Every other number of memory is loaded by two loads and a permutation | `every_other.rs` |
//! | Reductions are accumulated within a loop | `accumulator.rs` |
//! | A loop over rows runs it for one row after the other | `rows.rs` |
//! | Short rows are computed as a whole, in registers | `row_form.rs`, `whole_row.rs` |
//! | The last elements of a row, if they are no whole block, have masks | `tail.rs` |
//! | The instructions are encoded, by the crate `iced-x86` | `emit.rs` |
//! | The code is written to pages of memory, which then become executable and are not writable any more | `routine.rs` |
//!
//! All results have the same bits as those of the interpreter, because both perform the same operations. Only the sign and
//! payload of NaN may differ. A program is interpreted on other CPUs, at the baseline, and if it has a function without a
//! form.

#[cfg(target_arch = "x86_64")]
mod accumulator;
#[cfg(target_arch = "x86_64")]
mod assemble;
#[cfg(target_arch = "x86_64")]
mod emit;
#[cfg(target_arch = "x86_64")]
mod every_other;
mod form;
#[cfg(target_arch = "x86_64")]
mod halves;
#[cfg(target_arch = "x86_64")]
mod integer;
#[cfg(target_arch = "x86_64")]
mod lower;
#[cfg(target_arch = "x86_64")]
mod masked;
#[cfg(target_arch = "x86_64")]
mod narrow;
mod number;
#[cfg(target_arch = "x86_64")]
mod output;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod routine;
#[cfg(target_arch = "x86_64")]
mod row_form;
#[cfg(target_arch = "x86_64")]
mod rows;
#[cfg(target_arch = "x86_64")]
mod tail;
#[cfg(target_arch = "x86_64")]
mod values;
#[cfg(target_arch = "x86_64")]
mod whole_row;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub use form::Id;
pub use form::{Form, Node, Op, Rounding, Width, push, record};
#[cfg(target_arch = "x86_64")]
pub use integer::{Integer, Whole};
pub use number::{Condition, Format, Number};
#[cfg(target_arch = "x86_64")]
pub use routine::Routine;
#[cfg(target_arch = "x86_64")]
pub use whole_row::RowOutputs;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
