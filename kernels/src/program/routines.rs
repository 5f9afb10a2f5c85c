//! [`Routines`]: the machine code of a program.

use std::sync::OnceLock;

use super::{Instruction, Plan, Primitive, Program, RowPlan, Scalar, ScalarValue, Storage, Tile};
use crate::code::{Condition, Form, Format, Id, Integer, Number, Op, Routine, RowOutputs, Whole, Width, push, record};
use crate::number::scalar::Float;
use crate::row::Reduction;
use crate::runtime::simd::{Level, level};

/// The machine code of a program, for each type of number and SIMD level. It is assembled at the first call.
#[derive(Debug, Default)]
pub struct Routines([[OnceLock<Option<Box<Routine>>>; Level::ALL.len()]; Coded::U64 as usize + 1]);

/// The types of numbers that have machine code.
#[derive(Clone, Copy, Debug)]
pub enum Coded {
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl Routines {
    /// The machine code for the current level. `None` if there is none: the interpreter runs the program.
    pub fn of<T: Tile>(&self, plan: &Plan) -> Option<&Routine> {
        let level = level();
        let code = T::CODE?;
        let place = &self.0[code.number as usize][level as usize - 1];
        place.get_or_init(|| (code.assemble)(plan, level).map(Box::new)).as_deref()
    }

    /// The machine code that has been assembled, that of the highest level first.
    pub fn all<T: Tile>(&self) -> impl Iterator<Item = &Routine> {
        let of_levels = T::CODE.map(|code| &self.0[code.number as usize]).into_iter().flatten();
        of_levels.rev().filter_map(|routine| routine.get()?.as_deref())
    }
}

/// How machine code for numbers of a type is made.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The type.
    pub number: Coded,
    /// Whether a program over elements has a form.
    pub has_form: fn(&Program) -> bool,
    /// Assembles the machine code of a program for a level.
    pub assemble: fn(&Plan, Level) -> Option<Routine>,
    /// Assembles machine code for whole rows, if that exists.
    pub assemble_whole: Option<AssembleWhole>,
}

/// Whether a program over elements has a form whose numbers are `N`s.
pub fn has_form<N: OfForm>(program: &Program) -> bool {
    let is_mask = vec![false; program.inputs.len()];
    let input = |k: usize| Op::Input(k as u32, Storage::Own);
    form_of::<N>(program, &is_mask, input, |k| Op::Uniform(k as u32), |_, _| None).is_some()
}

/// The machine code of a program whose numbers are `N`s.
pub fn assemble<N: Format + Float>(plan: &Plan, level: Level) -> Option<Routine>
where
    Number<N>: Scalar<Mask = Condition>,
{
    let program = plan.program();
    if N::WIDTH == Width::Double && plan.storage.iter().flatten().any(|storage| storage.is_of_singles()) {
        return None;
    }
    let input = |k: usize| Op::Input(k as u32, plan.storage[0][k]);
    let form = form_of::<Number<N>>(program, &plan.masks, input, |k| Op::Uniform(k as u32), |_, _| None)?;
    let identities: Vec<u64> = plan.rows.reductions.iter().map(|(r, _)| r.identity::<N>().bits()).collect();
    Routine::new(form, program.inputs.len(), &plan.storage[1], &plan.rows, &identities, N::WIDTH, level)
}

/// Assembles the machine code of a program whose numbers are the integers `I`.
pub fn assemble_integers<I: Whole>(plan: &Plan, level: Level) -> Option<Routine>
where
    Integer<I>: Scalar<Mask = Condition>,
{
    let program = plan.program();
    let is_plain = program.uniforms.is_empty() && plan.rows.reductions.is_empty();
    if !is_plain || plan.storage.iter().flatten().any(|storage| *storage != Storage::Own) {
        return None;
    }
    let input = |k: usize| Op::Input(k as u32, I::STORAGE);
    let form = form_of::<Integer<I>>(program, &plan.masks, input, |k| Op::Uniform(k as u32), |_, _| None)?;
    let outputs = vec![I::STORAGE; program.outputs.len()];
    Routine::new(form, program.inputs.len(), &outputs, &plan.rows, &[], I::WIDTH, level)
}

/// Assembles the machine code of a program for rows of `n` elements, each as a whole. It takes the inputs, then the numbers of the row
/// and the positions of elements as further inputs, and the attributes and the length of the row as uniforms. For an output that is marked
/// as a sum over rows, each row is added to the same memory.
pub type AssembleWhole = fn(&RowPlan, usize, &[bool], Level) -> Option<Routine>;

/// Assembles the machine code of a program over rows whose numbers are `N`s.
pub fn assemble_whole<N: Format + Float>(plan: &RowPlan, n: usize, sums: &[bool], level: Level) -> Option<Routine>
where
    Number<N>: Scalar<Mask = Condition>,
{
    let (program, per_row) = (plan.program(), plan.per_row());
    let (inputs, attributes) = (program.inputs.len(), program.uniforms.len() - per_row);
    let [masks, _] = plan.masks();
    let [read, written] = plan.storage();
    if N::WIDTH == Width::Double && read.iter().chain(written).any(|storage| storage.is_of_singles()) {
        return None;
    }
    let input = |k: usize| Op::Input(k as u32, read[k]);
    let uniform = |k: usize| match k.checked_sub(per_row) {
        Some(attribute) => Op::Uniform(attribute as u32),
        None => Op::Input((inputs + k) as u32, Storage::One),
    };
    let leaf = |op| Number::<N>::of_node(push(op, N::WIDTH, &[]));
    let form = form_of::<Number<N>>(program, masks, input, uniform, |at, values| {
        Some(ScalarValue::Number(match &program.instructions[at] {
            Instruction::Reduce(reduction, x) if !reduction.is_running() => {
                let ScalarValue::Number(x) = values[x.at()] else { return None };
                Number::of_node(push(Op::Reduce(*reduction), N::WIDTH, &[x.0]))
            }
            Instruction::Position => leaf(Op::Input((inputs + per_row) as u32, Storage::Own)),
            Instruction::Count => leaf(Op::Uniform(attributes as u32)),
            _ => return None,
        }))
    })?;
    let identities = [Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min];
    let identities = identities.map(|reduction| reduction.identity::<N>().bits());
    let outputs = RowOutputs { stored: written, gives: plan.gives(), sums };
    Routine::whole(form, inputs + per_row + 1, outputs, n, identities, N::WIDTH, level)
}

/// A number of a form.
pub trait OfForm: Scalar<Mask = Condition> {
    /// The width in which it is computed.
    const WIDTH: Width;
    /// The number that a node computes.
    fn of_node(id: Id) -> Self;
    /// The node.
    fn id(self) -> Id;
}

impl<N: Format> OfForm for Number<N>
where
    Number<N>: Scalar<Mask = Condition>,
{
    const WIDTH: Width = N::WIDTH;
    fn of_node(id: Id) -> Self {
        Number::of_node(id)
    }
    fn id(self) -> Id {
        self.0
    }
}

impl<I: Whole> OfForm for Integer<I>
where
    Integer<I>: Scalar<Mask = Condition>,
{
    const WIDTH: Width = I::WIDTH;
    fn of_node(id: Id) -> Self {
        Integer::of_node(id)
    }
    fn id(self) -> Id {
        self.id
    }
}

/// The form of a program, with these operations for its inputs and uniforms. `instead` may return another value for an instruction.
fn form_of<N: OfForm>(
    program: &Program,
    masks: &[bool],
    input: impl Fn(usize) -> Op,
    uniform: impl Fn(usize) -> Op,
    instead: impl Fn(usize, &[ScalarValue<N>]) -> Option<ScalarValue<N>>,
) -> Option<Form> {
    let node = |op| push(op, N::WIDTH, &[]);
    let leaf = |op| N::of_node(node(op));
    let form = record(|| {
        let inputs: Vec<_> = (0..program.inputs.len()).map(|k| leaf(input(k))).collect();
        let uniforms: Vec<_> = (0..program.uniforms.len()).map(|k| leaf(uniform(k))).collect();
        let values = program.at_but(&inputs, &uniforms, |at, values| {
            // An input of truth values is read by this function only.
            if let Instruction::Apply(Primitive::Truthy, x) = &program.instructions[at]
                && let Instruction::Input(k) = program.instructions[x[0].at()]
                && masks[k as usize]
            {
                return Some(ScalarValue::Mask(Condition(node(Op::Test(k)))));
            }
            instead(at, values)
        });
        let id = |value: &ScalarValue<N>| match value {
            ScalarValue::Number(x) => x.id(),
            ScalarValue::Mask(m) => m.0,
        };
        Some(values?.iter().map(id).collect())
    })?;
    (!form.nodes.iter().any(|node| node.op == Op::Fmod)).then_some(form)
}
