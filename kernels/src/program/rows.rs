//! Runs a program over rows: with numbers, which is the reference, and over memory, where each step is one compiled
//! loop.

use super::tile::{Plan, Shared, Work};
use super::{Instruction, Malformed, Program, Scalar, ScalarValue, Tile, ValueType};
use crate::number::scalar::{Const, Float, Machine};
use crate::reduce::rows;
use crate::row::{Reduction, Rows};
use crate::runtime::threads::parallel_for;

/// The minimum work per thread, in elements times steps.
const GRAIN: usize = 128 * 1024;

impl Program {
    /// True if it reduces rows or uses the position in a row.
    pub fn is_of_rows(&self) -> bool {
        self.instructions.iter().any(|instruction| {
            matches!(instruction, Instruction::Reduce(..) | Instruction::Position | Instruction::Count)
        })
    }

    /// Evaluates the program for one row. Every output has one element per position, including outputs with one value
    /// per row. `None` if `T` lacks a primitive or the arguments don't match the program.
    pub fn at_row<T: Scalar + Float>(
        &self,
        inputs: &[&[T]],
        uniforms: &[T],
        n: usize,
    ) -> Option<Vec<Vec<ScalarValue<T>>>> {
        if inputs.len() != self.inputs.len()
            || uniforms.len() != self.uniforms.len()
            || inputs.iter().any(|x| x.len() != n)
        {
            return None;
        }
        let mut values: Vec<Vec<ScalarValue<T>>> = vec![Vec::with_capacity(self.instructions.len()); n];
        for instruction in &self.instructions {
            let gathered = match instruction {
                Instruction::Reduce(reduction, id) => {
                    let all = values.iter().map(|at| at[id.at()].number()).collect::<Option<Vec<_>>>()?;
                    Some(gathered(*reduction, all))
                }
                Instruction::Count => Some(vec![T::constant(Const::Float(n as f64)); n]),
                _ => None,
            };
            for (position, before) in values.iter_mut().enumerate() {
                let x: Vec<T> = inputs.iter().map(|x| x[position]).collect();
                let value = match (instruction, &gathered) {
                    (_, Some(numbers)) => ScalarValue::Number(numbers[position]),
                    (Instruction::Position, _) => ScalarValue::Number(T::constant(Const::Float(position as f64))),
                    _ => instruction.value(&x, uniforms, before)?,
                };
                before.push(value);
            }
        }
        Some(self.outputs.iter().map(|(_, id)| values.iter().map(|at| at[id.at()]).collect()).collect())
    }

    /// Runs the program over `rows` rows of `n` elements, on several threads if there is enough work. Every output has
    /// one element per position, including outputs with one value per row.
    ///
    /// # Errors
    /// If `T` lacks a primitive of the program.
    ///
    /// # Panics
    /// If the number of inputs, uniforms or outputs differs from the program's.
    ///
    /// # Safety
    /// The program [verifies](Program::verify). Every operand has `rows` rows. Rows of inputs and outputs have `n`
    /// contiguous elements; rows of uniforms have one. Outputs overlap nothing.
    pub unsafe fn run_rows<T: Tile + Float>(
        &self,
        n: usize,
        rows: usize,
        inputs: &[Rows<*const T>],
        uniforms: &[Rows<*const T>],
        outputs: &[Rows<*mut T>],
    ) -> Result<(), Malformed> {
        assert_eq!((inputs.len(), uniforms.len()), (self.inputs.len(), self.uniforms.len()), "arguments of a program");
        assert_eq!(outputs.len(), self.outputs.len(), "outputs of a program");
        let probe = vec![T::one(); self.uniforms.len()];
        let one = [T::one()];
        self.at_row(&vec![&one[..]; self.inputs.len()], &probe, 1)
            .ok_or_else(|| Malformed(format!("{} lacks one of its primitives", std::any::type_name::<T>())))?;
        if let Some((name, _)) =
            self.outputs.iter().find(|(_, id)| self.instructions[id.at()].kind() == ValueType::Mask)
        {
            return Err(Malformed(format!("output '{name}' is a truth value, but the outputs of rows are numbers")));
        }
        let plan = Plan::new(self.clone(), &[])?;
        let shared = (Shared(inputs), Shared(uniforms), Shared(outputs));
        parallel_for(rows, GRAIN / (plan.steps.len() * n).max(1), |range| {
            let (inputs, uniforms, outputs) = (shared.0.all(), shared.1.all(), shared.2.all());
            for row in range {
                // SAFETY: the caller's contract: every uniform has that row.
                let uniforms: Vec<T> = uniforms.iter().map(|u| unsafe { *u.row(row) }).collect();
                let inputs: Vec<*const u8> = inputs.iter().map(|x| x.row(row).cast()).collect();
                let outputs: Vec<*mut u8> = outputs.iter().map(|y| y.row(row).cast()).collect();
                // SAFETY: as above, for these rows.
                unsafe {
                    let work =
                        Work { plan: &plan, inputs: Shared(&inputs), uniforms: &uniforms, outputs: Shared(&outputs) };
                    work.run(0..n, n)
                }
            }
        });
        Ok(())
    }
}

/// The result of the reduction at each element of a row: the same everywhere, or a running result.
fn gathered<T: Float>(reduction: Reduction, mut row: Vec<T>) -> Vec<T> {
    let mut so_far = reduction.identity::<T>();
    reduction.along(&mut row, |row| {
        for x in row {
            so_far = reduction.combine(so_far, *x);
            *x = so_far;
        }
    });
    if !reduction.is_running() {
        row.fill(so_far);
    }
    row
}

/// Reduces a register of `n` elements, and fills another with the result.
///
/// # Safety
/// Both registers have room for `n` elements.
pub(super) unsafe fn reduce_rows<T: Float + Machine>(
    reduction: Reduction,
    n: usize,
    input: *const u8,
    output: *mut u8,
) {
    // SAFETY: the caller's contract.
    let (row, filled) = unsafe {
        (std::slice::from_raw_parts(input.cast::<T>(), n), std::slice::from_raw_parts_mut(output.cast::<T>(), n))
    };
    if reduction.is_running() {
        filled.copy_from_slice(row);
        return reduction.accumulate(filled);
    }
    filled.fill(match reduction {
        Reduction::Prod => rows::prod(row),
        Reduction::Max => rows::max(row).unwrap_or_else(|| reduction.identity()),
        Reduction::Min => rows::min(row).unwrap_or_else(|| reduction.identity()),
        _ => rows::sum_map(row, |x| x),
    });
}
