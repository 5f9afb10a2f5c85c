//! [`Routines`]: the machine code of a program.

use std::sync::OnceLock;

use super::{Instruction, Plan, Primitive, Scalar, ScalarValue, Tile};
use crate::code::{Condition, Format, Number, Op, Routine, Width, push, record};
use crate::number::scalar::Float;
use crate::runtime::simd::{Level, level};

/// The machine code of a program, for each type of number and SIMD level. It is assembled at the first call.
#[derive(Debug, Default)]
pub struct Routines([[OnceLock<Option<Routine>>; Level::ALL.len()]; 2]);

impl Routines {
    /// The machine code for the current level. `None` if there is none: the interpreter runs the program.
    pub fn of<T: Tile>(&self, plan: &Plan) -> Option<&Routine> {
        let level = level();
        let assemble = T::ROUTINE?;
        let place = &self.0[(size_of::<T>() == 8) as usize][level as usize - 1];
        place.get_or_init(|| assemble(plan, level)).as_ref()
    }

    /// The machine code that has been assembled, that of the highest level first.
    pub fn all<T: Tile>(&self) -> impl Iterator<Item = &Routine> {
        self.0[(size_of::<T>() == 8) as usize].iter().rev().filter_map(|routine| routine.get()?.as_ref())
    }
}

/// Assembles the machine code of a program for a level.
pub type Assemble = fn(&Plan, Level) -> Option<Routine>;

/// The machine code of a program whose numbers are `N`s.
pub fn assemble<N: Format + Float>(plan: &Plan, level: Level) -> Option<Routine>
where
    Number<N>: Scalar<Mask = Condition>,
{
    let program = plan.program();
    if N::WIDTH == Width::Double && plan.storage.iter().flatten().any(|storage| storage.is_of_singles()) {
        return None;
    }
    let leaf = |op| Number::<N>::of_node(push(op, N::WIDTH, &[]));
    let form = record(|| {
        let inputs: Vec<_> = (0..program.inputs.len()).map(|k| leaf(Op::Input(k as u32, plan.storage[0][k]))).collect();
        let uniforms: Vec<_> = (0..program.uniforms.len()).map(|k| leaf(Op::Uniform(k as u32))).collect();
        let values = program.at_but(&inputs, &uniforms, |at, _| {
            // An input of truth values is read by this function only.
            let Instruction::Apply(Primitive::Truthy, x) = &program.instructions[at] else { return None };
            let Instruction::Input(k) = program.instructions[x[0].at()] else { return None };
            plan.masks[k as usize].then(|| ScalarValue::Mask(Condition(leaf(Op::Test(k)).0)))
        });
        let node = |value: &ScalarValue<Number<N>>| match value {
            ScalarValue::Number(x) => x.0,
            ScalarValue::Mask(m) => m.0,
        };
        Some(values?.iter().map(node).collect())
    })?;
    if form.nodes.iter().any(|node| node.op == Op::Fmod) {
        return None;
    }
    let identities: Vec<u64> = plan.rows.reductions.iter().map(|(r, _)| r.identity::<N>().bits()).collect();
    Routine::new(form, program.inputs.len(), &plan.storage[1], &plan.rows, &identities, N::WIDTH, level)
}
