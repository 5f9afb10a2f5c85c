//! Whether NaN reaches the results.

use minitensor_kernels::program::{Instruction, Primitive, Program};
use minitensor_kernels::row::RowFunction;

use super::computed::computed;
use super::layouts::{compare, fail, results};
use super::programs::program;
use super::sample::Sample;
use super::values::{numbers, tensor_like};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Arity, Body, CoreShapes, OpRef, ShapeRule};
use crate::tensor::Tensor;

/// A NaN in an input of an element or row op must reach a result, unless the body asks whether numbers are NaN. The body of a cell op cannot be
/// read, and may leave out NaN on purpose, so cell ops are not checked.
pub fn nan_is_not_swallowed(op: &OpRef, sample: &Sample) -> Result<()> {
    let program = program(op, sample)?;
    if program.as_ref().is_some_and(asks_for_nan) {
        return Ok(());
    }
    if let (Body::Cell(_), ShapeRule::Core(rule)) = (&op.body, &op.shape) {
        return program.map_or(Ok(()), |program| in_rows(op, rule, sample, &program));
    }
    let element = matches!(op.body, Body::Element(_)) || matches!(op.shape, ShapeRule::Broadcast);
    let computed = computed(op);
    let unary = sample.inputs.len() == 1 && matches!(op.body, Body::Tensor(_) | Body::Arrays(_) | Body::Dynamic(_));
    for (i, t) in sample.inputs.iter().enumerate() {
        let Some(t) = t.as_ref().filter(|t| t.dtype() == DType::F64 && t.numel() > 0 && !computed.contains(&i)) else {
            continue;
        };
        let base = results(op, &sample.copied()?)?;
        let same_shape = base.iter().all(|o| o.shape() == t.shape());
        if (element || unary && same_shape) && op.parameter(i).arity != Arity::Optional {
            propagates(op, sample, i, &base, None)?;
        }
    }
    Ok(())
}

/// Tries the first row of a sample: with NaN in all elements of an input, and in each element alone.
fn in_rows(op: &OpRef, rule: &CoreShapes, sample: &Sample, program: &Program) -> Result<()> {
    let mut sample = sample.map(|i, t| {
        let batch = t.ndim() - rule.inputs[i].core.len();
        (0..batch).try_fold(t.clone(), |t, _| t.slice_view(0, 0, 1, 1)?.squeeze_view(0))?.copied()
    })?;
    if let Some(axis) = op.axis {
        sample.attrs[axis.attr as usize] = if axis.many { vec![-1i64].into() } else { (-1i64).into() };
    }
    // Rows along another axis need not fit.
    let Ok(base) = results(op, &sample.copied()?) else { return Ok(()) };
    let arguments = op.program_arguments();
    let uniforms: Vec<usize> = arguments.numbers.iter().chain(&arguments.positions).copied().collect();
    let computed = computed(op);
    let is_sorted = |i: &Instruction| matches!(i, Instruction::Row(RowFunction::Argsort, _));
    for (i, t) in sample.inputs.iter().enumerate() {
        let Some(t) = t.as_ref().filter(|t| t.dtype() == DType::F64) else { continue };
        let reads = |instruction: &Instruction| match instruction {
            Instruction::Input(k) => arguments.inputs[*k as usize] == i,
            Instruction::Uniform(k) => uniforms.get(*k as usize) == Some(&i),
            _ => false,
        };
        if computed.contains(&i) || !is_in_a_result(program, &reads) {
            continue;
        }
        propagates(op, &sample, i, &base, None)?;
        // Sorting moves NaN to the end, where an order statistic such as a median leaves it out.
        let alone = if program.instructions().iter().any(is_sorted) { 0 } else { t.numel() };
        (0..alone).try_for_each(|at| propagates(op, &sample, i, &base, Some(at)))?;
    }
    Ok(())
}

/// Replaces one element, or all elements, of an input by NaN. If another number there changes a result, then a result must be NaN.
fn propagates(op: &OpRef, sample: &Sample, i: usize, base: &[Tensor], only: Option<usize>) -> Result<()> {
    let with = |f: &dyn Fn(f64) -> f64| {
        let changed = sample.map(|j, t| match i == j {
            true => {
                let values = numbers(t)?.into_iter().enumerate();
                tensor_like(t, values.map(|(k, v)| if only.is_none_or(|at| at == k) { f(v) } else { v }).collect())
            }
            false => t.copied(),
        })?;
        results(op, &changed)
    };
    let outputs = with(&|_| f64::NAN)?;
    let floats: Vec<&Tensor> = outputs.iter().filter(|o| o.dtype() == DType::F64).collect();
    let values = floats.iter().map(|o| numbers(o)).collect::<Result<Vec<_>>>()?;
    if floats.is_empty() || values.iter().flatten().any(|v| v.is_nan()) {
        return Ok(());
    }
    // Whether the input has any effect for these values of the other inputs.
    let moved = with(&|v| v * 1.5 + 0.25)?;
    if compare(base, &moved, 1e-12, "").is_ok() {
        return Ok(());
    }
    let place = only.filter(|_| sample.inputs[i].as_ref().is_some_and(|t| t.numel() > 1));
    let place = place.map_or_else(String::new, |at| format!(", element {at},"));
    fail(format!(
        "a NaN in '{}'{place} does not propagate: the output is {}; a comparison with NaN is false, so write the condition so \
         that NaN takes the branch that returns it, or ask for it with isnan if it is replaced on purpose",
        op.parameter(i).name,
        floats[0]
    ))
}

/// Whether the body distinguishes NaN from other numbers on purpose: by a function, or as the number that does not equal itself.
fn asks_for_nan(program: &Program) -> bool {
    program.instructions().iter().any(|instruction| match instruction {
        Instruction::Apply(Primitive::Isnan | Primitive::Isfinite, _) => true,
        Instruction::Apply(Primitive::Equal, x) => x[0] == x[1],
        Instruction::Row(RowFunction::Scan(scan), _) => asks_for_nan(scan.step()),
        _ => false,
    })
}

/// Whether a number that `reads` selects enters the arithmetic of a result. Conditions, and positions in a row, only choose numbers. A
/// condition on the whole row that chooses between functions of different inputs may do so on purpose if it is false for NaN.
fn is_in_a_result(program: &Program, reads: &dyn Fn(&Instruction) -> bool) -> bool {
    let mut all: Vec<Traits> = Vec::with_capacity(program.instructions().len());
    for instruction in program.instructions() {
        let operands: Vec<Traits> = instruction.operands().iter().map(|(id, _)| all[id.at()]).collect();
        let enters = match instruction {
            Instruction::Apply(primitive, _) if primitive.is_test() => false,
            Instruction::And(..) | Instruction::Or(..) | Instruction::Not(_) => false,
            Instruction::Row(RowFunction::Argsort, _) => false,
            Instruction::Row(RowFunction::Take | RowFunction::Put, _) => operands[0].enters,
            Instruction::Row(RowFunction::Scan(scan), _) => {
                let is_read = |k: usize| {
                    let is_it = |i: &Instruction| *i == Instruction::Input((scan.states() + k) as u32);
                    k < scan.states() || is_in_a_result(scan.step(), &is_it)
                };
                operands.iter().enumerate().any(|(k, x)| x.enters && is_read(k))
            }
            Instruction::Select(..) => {
                let [condition, a, b] = [operands[0], operands[1], operands[2]];
                let is_choice = !condition.varies && a.is_of_inputs && b.is_of_inputs;
                if is_choice { a.enters && b.enters } else { a.enters || b.enters }
            }
            _ => operands.iter().any(|x| x.enters),
        };
        let varies = match instruction {
            Instruction::Input(_) | Instruction::Position | Instruction::Row(..) => true,
            Instruction::Reduce(reduction, _) => reduction.is_running(),
            _ => operands.iter().any(|x| x.varies),
        };
        let is_input = matches!(instruction, Instruction::Input(_) | Instruction::Uniform(_));
        let is_of_inputs = is_input || operands.iter().any(|x| x.is_of_inputs);
        all.push(Traits { enters: reads(instruction) || enters, varies, is_of_inputs });
    }
    program.outputs().iter().any(|(_, id)| all[id.at()].enters)
}

/// Properties of the value of an instruction.
#[derive(Clone, Copy)]
struct Traits {
    /// Whether the number is part of its arithmetic.
    enters: bool,
    /// Whether it differs along a row.
    varies: bool,
    /// Whether it depends on inputs or attributes.
    is_of_inputs: bool,
}
