//! Evaluates a program over rows with numbers, which is the reference.

#[cfg(feature = "engine")]
use super::Storage;
use super::{Id, Instruction, Program, Scalar, ScalarValue, ValueType};
use crate::number::scalar::{Const, Real, lit};
use crate::row::{Reduction, RowFunction};

impl Program {
    /// True if it reduces rows or uses the position in a row.
    pub fn is_of_rows(&self) -> bool {
        self.instructions.iter().any(Instruction::is_of_rows)
    }

    /// For each output, whether it differs along a row, rather than being one number for the row.
    pub fn varying(&self) -> Vec<bool> {
        let varies = self.varying_instructions();
        self.outputs.iter().map(|(_, id)| varies[id.at()]).collect()
    }

    /// For each output, whether it is a number that depends on the largest or smallest element of a row. An empty row of integers has none.
    pub fn needs_elements(&self) -> Vec<bool> {
        let mut needs: Vec<bool> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let is_extreme = matches!(instruction, Instruction::Reduce(Reduction::Max | Reduction::Min, _));
            let is_number = instruction.kind() == ValueType::Number;
            needs.push(is_extreme || is_number && instruction.operands().iter().any(|(id, _)| needs[id.at()]));
        }
        self.outputs.iter().map(|(_, id)| needs[id.at()]).collect()
    }

    /// The same program with only the inputs at the positions `rows`. Those at the positions `numbers` are the first uniforms, in this
    /// order.
    ///
    /// # Panics
    /// If both lists together do not contain each input once.
    pub fn with_numbers(&self, rows: &[usize], numbers: &[usize]) -> Program {
        let is_each = (0..self.inputs.len()).all(|k| rows.contains(&k) != numbers.contains(&k));
        assert!(is_each && rows.len() + numbers.len() == self.inputs.len(), "inputs of a program");
        let place = |places: &[usize], k: u32| places.iter().position(|at| *at == k as usize).map(|at| at as u32);
        let moved = |instruction: &Instruction| match instruction {
            Instruction::Input(k) => match place(rows, *k) {
                Some(row) => Instruction::Input(row),
                None => Instruction::Uniform(place(numbers, *k).expect("an input that is not a row is a number")),
            },
            Instruction::Uniform(k) => Instruction::Uniform(numbers.len() as u32 + k),
            other => other.clone(),
        };
        let names = |places: &[usize]| places.iter().map(|k| self.inputs[*k].clone()).collect::<Vec<_>>();
        Program {
            inputs: names(rows),
            uniforms: names(numbers).into_iter().chain(self.uniforms.iter().cloned()).collect(),
            instructions: self.instructions.iter().map(moved).collect(),
            outputs: self.outputs.clone(),
        }
    }

    /// The same program in which the first uniforms are inputs, too: the reverse of [`Program::with_numbers`].
    ///
    /// # Panics
    /// If `rows` does not have one position for each input, or both lists together do not contain each position once.
    pub fn with_numbers_as_inputs(&self, rows: &[usize], numbers: &[usize]) -> Program {
        assert_eq!(rows.len(), self.inputs.len(), "inputs of a program");
        let moved = |instruction: &Instruction| match instruction {
            Instruction::Input(k) => Instruction::Input(rows[*k as usize] as u32),
            Instruction::Uniform(k) => match numbers.get(*k as usize) {
                Some(at) => Instruction::Input(*at as u32),
                None => Instruction::Uniform(k - numbers.len() as u32),
            },
            other => other.clone(),
        };
        let mut inputs = vec![String::new(); rows.len() + numbers.len()];
        for (at, name) in rows.iter().chain(numbers).zip(self.inputs.iter().chain(&self.uniforms)) {
            inputs[*at].clone_from(name);
        }
        Program {
            inputs,
            uniforms: self.uniforms[numbers.len()..].to_vec(),
            instructions: self.instructions.iter().map(moved).collect(),
            outputs: self.outputs.clone(),
        }
    }

    /// The same program in which the first uniforms are inputs, after the others.
    ///
    /// # Panics
    /// If there are fewer uniforms.
    pub fn with_inputs(&self, count: usize) -> Program {
        let rows = self.inputs.len() as u32;
        let moved = |instruction: &Instruction| match instruction {
            Instruction::Uniform(k) if (*k as usize) < count => Instruction::Input(rows + k),
            Instruction::Uniform(k) => Instruction::Uniform(k - count as u32),
            other => other.clone(),
        };
        Program {
            inputs: self.inputs.iter().chain(&self.uniforms[..count]).cloned().collect(),
            uniforms: self.uniforms[count..].to_vec(),
            instructions: self.instructions.iter().map(moved).collect(),
            outputs: self.outputs.clone(),
        }
    }

    /// The same program, in which inputs that are stored in another way are values of their own, so that a stage loads them.
    #[cfg(feature = "engine")]
    pub(super) fn loading(self, storage: &[Storage]) -> Program {
        let is_loaded = |i: &Instruction| matches!(i, Instruction::Input(k) if storage[*k as usize] != Storage::Own);
        if !self.instructions.iter().any(is_loaded) {
            return self;
        }
        let mut moved = Vec::with_capacity(self.instructions.len());
        let mut instructions = Vec::new();
        for instruction in self.instructions {
            let is_loaded = is_loaded(&instruction);
            instructions.push(instruction.moved(|id: Id| moved[id.at()]));
            if is_loaded {
                instructions.push(Instruction::Detach(Id(instructions.len() as u32 - 1)));
            }
            moved.push(Id(instructions.len() as u32 - 1));
        }
        let outputs = self.outputs.into_iter().map(|(name, id)| (name, moved[id.at()])).collect();
        Program { instructions, outputs, ..self }
    }

    /// Evaluates the program for one row. Every output has one element per position, including outputs with one value
    /// per row. `None` if `T` lacks a primitive or the arguments don't match the program.
    pub fn at_row<T: Scalar + Real>(
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
            let reduced = match instruction {
                Instruction::Reduce(reduction, id) => {
                    let all = values.iter().map(|at| at[id.at()].number()).collect::<Option<Vec<_>>>()?;
                    Some(reduced(*reduction, all))
                }
                Instruction::Row(function, operands) => {
                    let row = |id: &Id| values.iter().map(|at| at[id.at()].number()).collect::<Option<Vec<_>>>();
                    Some(rearranged(function, &operands.iter().map(row).collect::<Option<Vec<_>>>()?)?)
                }
                Instruction::Count => Some(vec![T::constant(Const::Float(n as f64)); n]),
                _ => None,
            };
            for (position, before) in values.iter_mut().enumerate() {
                let x: Vec<T> = inputs.iter().map(|x| x[position]).collect();
                let value = match (instruction, &reduced) {
                    (_, Some(numbers)) => ScalarValue::Number(numbers[position]),
                    (Instruction::Position, _) => ScalarValue::Number(T::constant(Const::Float(position as f64))),
                    _ => instruction.value(&x, uniforms, before)?,
                };
                before.push(value);
            }
        }
        Some(self.outputs.iter().map(|(_, id)| values.iter().map(|at| at[id.at()]).collect()).collect())
    }
}

/// The result of the reduction at each element of a row: the same everywhere, or a running result.
fn reduced<T: Real>(reduction: Reduction, mut row: Vec<T>) -> Vec<T> {
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

/// The result of a function of rows, by its definition. It compares positions as numbers, since `T` may have no integers. `None` if `T` lacks
/// a primitive of a step.
fn rearranged<T: Scalar + Real>(function: &RowFunction, x: &[Vec<T>]) -> Option<Vec<T>> {
    let n = x[0].len();
    let one_if = |mask: T::Mask| T::select(mask, T::one(), T::zero());
    let scanned = |step: &dyn Fn(usize, T) -> T| {
        let mut result: Vec<T> = Vec::with_capacity(n);
        (0..n).for_each(|i| result.push(if i == 0 { x[0][0] } else { step(i, result[i - 1]) }));
        result
    };
    Some(match (function, x) {
        (RowFunction::Scan(scan), x) => {
            let mut result: Vec<T> = Vec::with_capacity(n);
            let mut before: Vec<T> = Vec::new();
            for i in 0..n {
                let operands: Vec<T> = x.iter().map(|x| x[i]).collect();
                before = if i == 0 { operands[..scan.states()].to_vec() } else { scan.at(&before, &operands)? };
                result.push(before[scan.output]);
            }
            result
        }
        (RowFunction::Shift(places), [x]) => {
            let from = |i: usize| i64::try_from(i).ok()?.checked_sub(*places)?.try_into().ok();
            (0..n).map(|i| from(i).and_then(|at: usize| x.get(at).copied()).unwrap_or_else(T::zero)).collect()
        }
        (RowFunction::Reverse, [x]) => x.iter().rev().copied().collect(),
        (RowFunction::Cummax, [x]) => scanned(&|i, before| before.maximum(x[i])),
        (RowFunction::Recurrence, [x, a]) => scanned(&|i, before| a[i] * before + x[i]),
        (RowFunction::Argsort, [x]) => {
            let precedes = |j: usize, i: usize| {
                let is_tie = x[j].equal(x[i]) | (x[j].isnan() & x[i].isnan());
                let is_less = x[j].less(x[i]) | (x[i].isnan() & !x[j].isnan());
                if j < i { is_less | is_tie } else { is_less }
            };
            let count = |i: usize| (0..n).filter(|j| *j != i).fold(T::zero(), |c, j| c + one_if(precedes(j, i)));
            let ranks: Vec<T> = (0..n).map(count).collect();
            let at = |rank: usize| {
                ranks.iter().enumerate().fold(T::zero(), |at, (i, r)| T::select(r.equal(lit(rank)), lit(i), at))
            };
            (0..n).map(at).collect()
        }
        (RowFunction::Take, [x, index]) => {
            let at = |index: &T| {
                x.iter().enumerate().fold(T::zero(), |found, (j, x)| T::select(index.equal(lit(j)), *x, found))
            };
            index.iter().map(at).collect()
        }
        (RowFunction::Put, [x, index]) => {
            let sum = |j: usize| {
                x.iter()
                    .zip(index)
                    .fold(T::zero(), |sum, (x, index)| sum + T::select(index.equal(lit(j)), *x, T::zero()))
            };
            (0..n).map(sum).collect()
        }
        _ => unreachable!("a program has the right number of operands"),
    })
}
