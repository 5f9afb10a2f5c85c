//! Programs: the computation of a body, as data.
//!
//! Running a body with [`Symbol`]s records a [`Program`]: a list of [`Instruction`]s, each of which uses earlier
//! ones. A program can be [evaluated](Program::at) with any type of number. Machine numbers are the reference. Dual numbers of
//! symbols differentiate the program ([`Program::vjp`]). Symbols rewrite it ([`Program::simplified`]) or inline it into
//! another program. [`Program::run`] runs it over memory, tile by tile. Programs can be displayed as text and LaTeX,
//! and serialized as JSON.

#[cfg(feature = "engine")]
mod at_once;
#[cfg(feature = "engine")]
mod buffers;
#[cfg(feature = "engine")]
mod choice;
#[cfg(feature = "engine")]
mod detached;
mod gradient;
mod instruction;
mod json;
mod latex;
#[cfg(feature = "engine")]
mod one_by_one;
#[cfg(feature = "engine")]
mod over_rows;
#[cfg(feature = "engine")]
mod plan;
mod primitive;
mod reuse;
mod reverse;
#[cfg(all(feature = "engine", target_arch = "x86_64"))]
mod routines;
#[cfg(feature = "engine")]
mod row_plan;
#[cfg(feature = "engine")]
mod rows;
mod scan;
#[cfg(feature = "engine")]
mod side_by_side;
mod simplify;
mod split;
#[cfg(feature = "engine")]
mod stages;
#[cfg(feature = "engine")]
mod storage;
mod symbol;
mod text;
#[cfg(feature = "engine")]
mod tile;
mod verify;
mod vjp;
#[cfg(all(feature = "engine", target_arch = "x86_64"))]
mod whole_rows;

pub use gradient::Variable;
pub use instruction::{Id, Instruction, ValueType};
#[cfg(feature = "engine")]
pub use over_rows::{OverRows, row_by_row};
#[cfg(feature = "engine")]
pub use plan::Plan;
#[cfg(feature = "engine")]
pub use primitive::Tile;
pub use primitive::{Algebra, Primitive, Scalar, ScalarValue};
#[cfg(feature = "engine")]
pub use row_plan::RowPlan;
pub use scan::Scan;
pub use simplify::make_ready;
pub use split::{Part, Split};
#[cfg(feature = "engine")]
pub use storage::Storage;
pub use symbol::{Symbol, SymbolMask};
#[cfg(feature = "engine")]
pub use tile::TILE;
pub use verify::Malformed;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use self::symbol::TooLong;
use crate::number::scalar::Element;

/// A function of elements. Inputs and outputs have one value per element; uniforms have one value for all elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    inputs: Vec<String>,
    uniforms: Vec<String>,
    instructions: Vec<Instruction>,
    outputs: Vec<(String, Id)>,
}

/// An output of a body that runs with symbols.
pub type Output = ScalarValue<Symbol>;

impl From<Symbol> for Output {
    fn from(symbol: Symbol) -> Self {
        ScalarValue::Number(symbol)
    }
}

impl From<SymbolMask> for Output {
    fn from(truth: SymbolMask) -> Self {
        ScalarValue::Mask(truth)
    }
}

impl Program {
    /// Records the program of a body by running it with symbols: `body(inputs, uniforms)` returns the outputs with
    /// their names.
    ///
    /// ```
    /// use minitensor_kernels::{Field, program::Program};
    ///
    /// let swish = Program::write(&["x"], &[], |x, _| vec![("out".into(), (x[0] * x[0].sigmoid()).into())]);
    /// assert_eq!(swish.to_string(), "out = x * sigmoid(x)");
    /// assert_eq!(swish.at(&[0.0], &[]).unwrap()[0].number(), Some(0.0));
    /// ```
    pub fn write(
        inputs: &[&str],
        uniforms: &[&str],
        body: impl FnOnce(&[Symbol], &[Symbol]) -> Vec<(String, Output)>,
    ) -> Program {
        Program::recorded(None, inputs, uniforms, body)
    }

    /// Like [`Program::write`], for a body whose length depends on attributes. It stops if it takes too many steps.
    ///
    /// # Errors
    /// If the body takes more steps than the longest program may have.
    pub fn write_bounded(
        inputs: &[&str],
        uniforms: &[&str],
        body: impl FnOnce(&[Symbol], &[Symbol]) -> Vec<(String, Output)>,
    ) -> Result<Program, Malformed> {
        let record = || Program::recorded(Some(verify::MOST_STEPS), inputs, uniforms, body);
        catch_unwind(AssertUnwindSafe(record)).map_err(|payload| match payload.is::<TooLong>() {
            true => Malformed::too_long(format_args!("takes more than {} steps", verify::MOST_STEPS)),
            false => resume_unwind(payload),
        })
    }

    fn recorded(
        most: Option<usize>,
        inputs: &[&str],
        uniforms: &[&str],
        body: impl FnOnce(&[Symbol], &[Symbol]) -> Vec<(String, Output)>,
    ) -> Program {
        let (instructions, outputs) = symbol::record(most, || {
            let x: Vec<Symbol> =
                (0..inputs.len()).map(|k| Symbol(symbol::push(Instruction::Input(k as u32)))).collect();
            let u: Vec<Symbol> =
                (0..uniforms.len()).map(|k| Symbol(symbol::push(Instruction::Uniform(k as u32)))).collect();
            body(&x, &u)
        });
        let id = |output: Output| match output {
            ScalarValue::Number(Symbol(id)) | ScalarValue::Mask(SymbolMask(id)) => id,
        };
        let owned = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
        let outputs = outputs.into_iter().map(|(name, output)| (name, id(output))).collect();
        Program { inputs: owned(inputs), uniforms: owned(uniforms), instructions, outputs }.without_dead()
    }

    /// The same program with other names for its inputs, uniforms and outputs.
    ///
    /// # Panics
    /// If the number of names differs from the number of inputs, uniforms or outputs.
    pub fn with_names(mut self, [inputs, uniforms, outputs]: &[Vec<&str>; 3]) -> Program {
        fn rename<'a>(places: impl ExactSizeIterator<Item = &'a mut String>, names: &[&str]) {
            assert_eq!(places.len(), names.len(), "the number of names must be {}, got {}", places.len(), names.len());
            places.zip(names).for_each(|(place, name)| *place = (*name).to_owned());
        }
        rename(self.inputs.iter_mut(), inputs);
        rename(self.uniforms.iter_mut(), uniforms);
        rename(self.outputs.iter_mut().map(|(name, _)| name), outputs);
        self
    }

    /// Whether no value depends on the places of the elements in their row.
    pub fn ignores_places(&self) -> bool {
        !self.instructions.iter().any(|instruction| match instruction {
            Instruction::Position | Instruction::Row(..) => true,
            Instruction::Reduce(reduction, _) => reduction.is_running(),
            _ => false,
        })
    }

    /// The names of the inputs.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// The names of the uniforms.
    pub fn uniforms(&self) -> &[String] {
        &self.uniforms
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The outputs: their names and the instructions that compute them.
    pub fn outputs(&self) -> &[(String, Id)] {
        &self.outputs
    }

    /// Evaluates the program. `None` if the number type lacks a primitive of the program, or if the number of arguments
    /// is wrong.
    pub fn at<T: Scalar>(&self, inputs: &[T], uniforms: &[T]) -> Option<Vec<ScalarValue<T>>> {
        self.at_but(inputs, uniforms, |_, _| None)
    }

    /// Like [`Program::at`], but `instead` may return another value for an instruction, computed from earlier values.
    pub(crate) fn at_but<T: Scalar>(
        &self,
        inputs: &[T],
        uniforms: &[T],
        instead: impl Fn(usize, &[ScalarValue<T>]) -> Option<ScalarValue<T>>,
    ) -> Option<Vec<ScalarValue<T>>> {
        if inputs.len() != self.inputs.len() || uniforms.len() != self.uniforms.len() {
            return None;
        }
        let mut values: Vec<ScalarValue<T>> = Vec::with_capacity(self.instructions.len());
        for (at, instruction) in self.instructions.iter().enumerate() {
            let value = match instead(at, &values) {
                Some(value) => value,
                None => instruction.value(inputs, uniforms, &values)?,
            };
            values.push(value);
        }
        Some(self.outputs.iter().map(|(_, id)| values[id.at()]).collect())
    }

    /// Removes the instructions that no output needs; inputs stay.
    fn without_dead(mut self) -> Program {
        let mut alive = vec![false; self.instructions.len()];
        self.outputs.iter().for_each(|(_, id)| alive[id.at()] = true);
        for at in (0..self.instructions.len()).rev() {
            if alive[at] {
                self.instructions[at].operands().iter().for_each(|(id, _)| alive[id.at()] = true);
            }
        }
        let mut moved = vec![Id(0); self.instructions.len()];
        let mut instructions = Vec::new();
        for (at, instruction) in
            std::mem::take(&mut self.instructions).into_iter().enumerate().filter(|(at, _)| alive[*at])
        {
            moved[at] = Id(instructions.len() as u32);
            instructions.push(instruction.moved(|id| moved[id.at()]));
        }
        self.outputs.iter_mut().for_each(|(_, id)| *id = moved[id.at()]);
        self.instructions = instructions;
        self
    }
}

impl<T: Element> ScalarValue<T> {
    /// The number, if it is one.
    pub fn number(&self) -> Option<T> {
        if let ScalarValue::Number(x) = self { Some(*x) } else { None }
    }

    /// The truth value, if it is one.
    pub fn mask(&self) -> Option<T::Mask> {
        if let ScalarValue::Mask(m) = self { Some(*m) } else { None }
    }
}
