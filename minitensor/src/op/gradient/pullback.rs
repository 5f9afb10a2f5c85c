//! [`Pullback`]: the derived gradient of one kind of call, and the tensors that such calls save for it.

use minitensor_kernels::program::Program;
use smallvec::SmallVec;

use crate::__private::vjp_program;
use crate::attr::{Attr, AttrKind};
use crate::autograd::{BackwardCall, is_grad_enabled};
use crate::backend::Wanted;
use crate::dispatch::{Produced, dispatch_wanted};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::op::call::Arg;
use crate::op::call::shape_rule::Dims;
use crate::op::def::{Arity, Backward, Body, DTypeRule, Derived, OpDef, OpRef, Role, ShapeRule};
use crate::op::gradient::Key;
use crate::op::{Argument, Arguments, CustomOpBuilder};
use crate::tensor::{Shape, Tensor};
use minitensor_kernels::Const;

/// The vector-Jacobian product of one kind of call, as an op, and its arguments.
pub struct Pullback {
    vjp: OpRef,
    slots: SmallVec<[Slot; 4]>,
    /// The outputs of `vjp` that are wanted, with one bit for each.
    wanted: u64,
    /// For each output of `vjp`, the input of which it is the gradient.
    gradients: SmallVec<[u16; 4]>,
    /// Whether `vjp` takes only the float attributes of the call, rather than its first attributes.
    takes_numbers: bool,
}

/// The argument of an input of the vector-Jacobian product.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    /// The cotangent of this output.
    Cotangent(u16),
    /// This input of the call; absent if it was not given.
    Input(u16),
    /// This output of the call.
    Output(u16),
    /// A substitute for an input that is not read: the cotangent of this output, which has a suitable dtype and shape.
    Like(u16),
    /// A substitute for an input that is not read, if no output is suitable: a number of the dtype of this input.
    Number(u16),
}

impl Pullback {
    /// # Errors
    /// If the op has no gradient, since its program has none.
    pub fn new(op: &OpDef, key: &Key, attrs: &[Attr]) -> Result<Pullback> {
        let pullback = Pullback::derived(op, key, attrs)?;
        if key.is_complex && !pullback.vjp.generics.iter().any(|g| g.dtypes.contains(DType::C64)) {
            return Err(Error::runtime(format!(
                "op '{}' has no gradient: none is derived for complex numbers; write it as a formula",
                op.name
            )));
        }
        Ok(pullback)
    }

    fn derived(op: &OpDef, key: &Key, attrs: &[Attr]) -> Result<Pullback> {
        match (&op.backward, &op.body) {
            (Backward::Derived(derived), Body::Cell(_)) => {
                let mut pullback = Pullback::compiled(op, derived, key);
                pullback.drop_unread_rows(op, key, attrs);
                Ok(pullback)
            }
            (Backward::Derived(derived), _) => {
                let pullback = Pullback::compiled(op, derived, key);
                let Ok(Some((forward, vjp))) = programs(op, key, attrs) else { return Ok(pullback) };
                Ok(pullback.reduced(op, key, &forward, vjp))
            }
            (_, Body::Cell(_)) => Pullback::of_rows(op, key, attrs),
            _ => {
                let programs = programs(op, key, attrs)?;
                let (forward, vjp) =
                    programs.ok_or_else(|| Error::runtime(format!("op '{}' has no program", op.name)))?;
                Pullback::interpreted(op, key, &forward, vjp)
            }
        }
    }

    /// The compiled vector-Jacobian product, with all cotangents and inputs.
    fn compiled(op: &OpDef, derived: &Derived, key: &Key) -> Pullback {
        let inputs = (0..op.inputs.len()).map(|i| Slot::Input(i as u16));
        let wanted = derived.wrt.iter().enumerate().filter(|(_, i)| key.needs(**i as usize)).map(|(k, _)| 1 << k).sum();
        Pullback {
            vjp: derived.vjp.clone(),
            slots: op.cotangents().map(|k| Slot::Cotangent(k as u16)).chain(inputs).collect(),
            wanted,
            gradients: derived.wrt.iter().map(|i| u16::from(*i)).collect(),
            takes_numbers: false,
        }
    }

    /// Reduces the number of saved tensors. Inputs that are not read are dropped. An output replaces an input if the gradient is
    /// the same with either. A program that uses outputs instead of computing them again replaces `vjp`.
    fn reduced(mut self, op: &OpDef, key: &Key, forward: &Program, vjp: Program) -> Pullback {
        let cotangents = op.cotangents().count();
        if let Some(through) = through_outputs(op, key, forward, &vjp)
            && let Ok(interpreted) = Pullback::made(op, key, forward, &through)
        {
            return interpreted;
        }
        let swapped = swapped(op, forward, &vjp);
        let reads = inputs_read(&vjp, cotangents);
        for (i, input) in op.inputs.iter().enumerate().filter(|(i, _)| key.is_given(*i)) {
            let alike = op.cotangents().find(|k| op.outputs[*k].dtype == input.dtype);
            let slot = &mut self.slots[cotangents + i];
            *slot = match (reads.contains(&i), swapped, alike) {
                (true, Some((input, output)), _) if input == i => Slot::Output(output as u16),
                (true, ..) => continue,
                (false, _, Some(output)) => Slot::Like(output as u16),
                (false, _, None) => Slot::Number(i as u16),
            };
        }
        self
    }

    /// The pullback with the fewest saved tensors, for an op that has a program but no compiled vector-Jacobian product.
    fn interpreted(op: &OpDef, key: &Key, forward: &Program, vjp: Program) -> Result<Pullback> {
        if let Some(through) = through_outputs(op, key, forward, &vjp) {
            return Pullback::made(op, key, forward, &through);
        }
        let mut pullback = Pullback::made(op, key, forward, &vjp)?;
        if let Some((input, output)) = swapped(op, forward, &vjp) {
            let slots = pullback.slots.iter_mut().filter(|slot| **slot == Slot::Input(input as u16));
            slots.for_each(|slot| *slot = Slot::Output(output as u16));
        }
        Ok(pullback)
    }

    /// The pullback by a program. The program takes the cotangents, then the inputs of the op, then its outputs if it uses them.
    fn made(op: &OpDef, key: &Key, forward: &Program, vjp: &Program) -> Result<Pullback> {
        let cotangents: SmallVec<[usize; 2]> = op.cotangents().collect();
        let (first, last) = (cotangents.len(), cotangents.len() + forward.inputs().len());
        let taken: Vec<usize> =
            (0..first).chain((first..vjp.inputs().len()).filter(|at| vjp.reads().any(|r| r == *at))).collect();
        let dtypes = if key.is_complex { DTypeSet::of(&[DType::C64, DType::C128]) } else { DTypeSet::FLOAT };
        let mut builder = CustomOpBuilder::from_program(format!("{}.vjp", op.name), vjp.taking(&taken))?
            .dtypes(dtypes)
            .doc(format!("The vector-Jacobian product of `{}`.", op.name))
            .location(op.location.file.clone(), op.location.line);
        let mut slots = SmallVec::new();
        for (k, at) in taken.into_iter().enumerate() {
            slots.push(match at {
                at if at < first => Slot::Cotangent(cotangents[at] as u16),
                at if at < last => Slot::Input((at - first) as u16),
                at => Slot::Output((at - last) as u16),
            });
            let is_mask = |i: u16| op.inputs[i as usize].dtype == DTypeRule::Fixed(DType::Bool);
            if matches!(slots[k], Slot::Input(i) if is_mask(i)) {
                builder = builder.mask(k);
            }
        }
        let gradients = (0..op.inputs.len()).filter(|i| key.needs(*i)).map(|i| i as u16).collect();
        Ok(Pullback { vjp: builder.finish()?, slots, wanted: u64::MAX, gradients, takes_numbers: true })
    }

    /// The pullback of a row op by its program, as another row op.
    fn of_rows(op: &OpDef, key: &Key, attrs: &[Attr]) -> Result<Pullback> {
        let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| key.needs(*i)).collect();
        let vjp = op.backward(attrs, |i| key.is_given(i), &wrt)?;
        let Some(Arguments { program, inputs, uniforms }) = vjp else {
            return Err(Error::runtime(format!("op '{}' has no program", op.name)));
        };
        let ShapeRule::Core(rule) = &op.shape else {
            return Err(Error::runtime(format!("op '{}' has no shape rule", op.name)));
        };
        // Inputs that are not read are not saved, but one row is needed for its length.
        let mut taken: Vec<usize> = (0..inputs.len()).filter(|at| program.reads().any(|read| read == *at)).collect();
        let is_batched = |at: &usize| match inputs[*at] {
            Argument::Input(i) => rule.inputs[i].batch && key.is_given(i),
            Argument::Cotangent(k) => rule.outputs[k].batch,
            Argument::Number(_) => false,
        };
        if !taken.iter().any(is_batched) {
            taken = (0..inputs.len())
                .filter(|at| taken.contains(at) || Some(*at) == (0..inputs.len()).find(is_batched))
                .collect();
        }
        let program = program.taking(&taken);
        let numbers = uniforms.iter().take_while(|argument| !matches!(argument, Argument::Number(_)));
        let all: Vec<Argument> = taken.iter().map(|at| inputs[*at]).chain(numbers.copied()).collect();
        let count = all.len() - taken.len();
        let names = program.inputs().iter().chain(&program.uniforms()[..count]);
        let dims = |argument: &Argument| match argument {
            Argument::Input(i) => &rule.inputs[*i],
            Argument::Cotangent(k) => &rule.outputs[*k],
            Argument::Number(_) => &rule.outputs[0],
        };
        let clause = |name: &String, dims: &Dims| {
            let row = if dims.core.is_empty() { "" } else { "n" };
            format!(
                "{name}: [{}]",
                [if dims.batch { ".." } else { "" }, row]
                    .iter()
                    .filter(|d| !d.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        };
        let given: Vec<String> = names.zip(&all).map(|(name, argument)| clause(name, dims(argument))).collect();
        let results: Vec<String> =
            program.outputs().iter().zip(&wrt).map(|((name, _), i)| clause(name, &rule.inputs[*i])).collect();
        let shape = format!("({}) -> ({})", given.join(", "), results.join(", "));
        let is_mask = |argument: &Argument| matches!(argument, Argument::Input(i) if op.inputs[*i].dtype == DTypeRule::Fixed(DType::Bool));
        let vjp =
            CustomOpBuilder::from_row_program(format!("{}.vjp", op.name), program.with_inputs(count), Some(&shape))?;
        let masks = (0..all.len()).filter(|k| is_mask(&all[*k]));
        let vjp = masks
            .fold(vjp, CustomOpBuilder::mask)
            .doc(format!("The vector-Jacobian product of `{}`.", op.name))
            .location(op.location.file.clone(), op.location.line);
        let other = (0..op.inputs.len()).find(|i| key.is_given(*i)).unwrap_or_default() as u16;
        let slot = |argument: Argument| match argument {
            Argument::Cotangent(k) => Slot::Cotangent(k as u16),
            Argument::Input(i) if !key.is_given(i) => Slot::Number(other),
            Argument::Input(i) => Slot::Input(i as u16),
            Argument::Number(_) => Slot::Number(0),
        };
        let slots = all.into_iter().map(slot).collect();
        let gradients = wrt.iter().map(|i| *i as u16).collect();
        Ok(Pullback { vjp: vjp.finish()?, slots, wanted: u64::MAX, gradients, takes_numbers: true })
    }

    /// Does not save rows that the gradient does not read, if a cotangent has the same shape.
    fn drop_unread_rows(&mut self, op: &OpDef, key: &Key, attrs: &[Attr]) {
        let ShapeRule::Core(rule) = &op.shape else { return };
        let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| key.needs(*i)).collect();
        let Ok(Some(vjp)) = op.backward(attrs, |i| key.is_given(i), &wrt) else { return };
        let cotangents = op.cotangents().count();
        for (i, input) in op.inputs.iter().enumerate().filter(|(i, _)| key.is_given(*i)) {
            let Some(at) = vjp.inputs.iter().position(|a| *a == Argument::Input(i)) else { continue };
            let (dims, is_read) = (&rule.inputs[i], vjp.program.reads().any(|r| r == at));
            let is_like = |k: &usize| {
                let (other, output) = (&rule.outputs[*k], &op.outputs[*k]);
                output.dtype == input.dtype && dims.batch && other.batch && other.core == dims.core
            };
            if let (false, Some(k)) = (is_read, op.cotangents().find(is_like)) {
                self.slots[cotangents + i] = Slot::Like(k as u16);
            }
        }
    }

    /// Whether a call saves this input.
    pub fn saves_input(&self, input: usize) -> bool {
        self.slots.contains(&Slot::Input(input as u16))
    }

    /// Whether a call saves this output.
    pub fn saves_output(&self, output: usize) -> bool {
        self.slots.contains(&Slot::Output(output as u16))
    }

    /// The gradients of the inputs that need one.
    pub fn run(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let mut tensors: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
        for slot in &self.slots {
            tensors.push(match *slot {
                Slot::Cotangent(k) => Some(call.cotangent(k.into())?),
                Slot::Input(i) => call.optional_input(i.into())?,
                Slot::Output(k) => Some(call.output(k.into())?),
                // Without the history of the cotangent, since its values are not used.
                Slot::Like(k) if is_grad_enabled() => Some(call.cotangent(k.into())?.detach()),
                Slot::Like(k) => Some(call.cotangent(k.into())?),
                Slot::Number(i) => Some(Tensor::from_number(Const::Int(0), call.dtype(i.into()), call.device())?),
            });
        }
        if let ShapeRule::Core(_) = self.vjp.shape {
            self.replace_placeholders(call, &mut tensors)?;
        }
        let mut gradients = vec![None; call.num_inputs()];
        for (i, gradient) in self.gradients.iter().zip(self.outputs(call.op(), call.attrs(), &tensors)?) {
            gradients[*i as usize] = gradient;
        }
        Ok(gradients)
    }

    /// The gradients of the inputs that need one, of a call that is not recorded and whose tensors have one shape. `None` if an output is
    /// needed that is not known.
    pub fn of_tensors(
        &self,
        op: &OpDef,
        attrs: &[Attr],
        inputs: &[Option<Tensor>],
        known: &[Option<Tensor>],
        cotangents: &[Option<Tensor>],
    ) -> Result<Option<Vec<Tensor>>> {
        let mut tensors: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
        for slot in &self.slots {
            tensors.push(match *slot {
                Slot::Cotangent(k) | Slot::Like(k) => cotangents[usize::from(k)].clone(),
                Slot::Input(i) => inputs[usize::from(i)].clone(),
                Slot::Output(k) => match (known.get(usize::from(k)), &cotangents[usize::from(k)]) {
                    (Some(Some(t)), Some(g)) if (g.shape(), g.dtype()) == (t.shape(), t.dtype()) => Some(t.clone()),
                    _ => return Ok(None),
                },
                Slot::Number(_) => return Ok(None),
            });
        }
        Ok(Some(self.outputs(op, attrs, &tensors)?.into_iter().flatten().collect()))
    }

    /// The outputs of the vector-Jacobian product.
    fn outputs(&self, op: &OpDef, attrs: &[Attr], tensors: &[Option<Tensor>]) -> Result<Produced> {
        let args: SmallVec<[Arg<'_>; 4]> = tensors.iter().map(|t| t.as_ref().into()).collect();
        if !self.takes_numbers {
            // Without `axis` and `keepdims`: here the axis is the last one.
            return dispatch_wanted(&self.vjp, &args, &attrs[..self.vjp.attrs.len()], Wanted::of(self.wanted));
        }
        let numbers = op.attrs.iter().zip(attrs).filter(|(a, _)| a.kind == AttrKind::Float);
        // The program does not read a number that is not given.
        let numbers: SmallVec<[Attr; 2]> =
            numbers.map(|(_, v)| if *v == Attr::None { Attr::Float(0.0) } else { v.clone() }).collect();
        dispatch_wanted(&self.vjp, &args, &numbers, Wanted::of(self.wanted))
    }
}

impl Pullback {
    /// The cotangent of an output that was not computed is a placeholder. A loop over cells needs zeros instead, with the sizes of
    /// the core.
    fn replace_placeholders(&self, call: &BackwardCall<'_>, tensors: &mut [Option<Tensor>]) -> Result<()> {
        let is_placeholder = |t: &Tensor| !t.dtype().is_differentiable();
        let Some(like) = tensors.iter().flatten().find(|t| !is_placeholder(t)).cloned() else { return Ok(()) };
        for (slot, t) in self.slots.iter().zip(tensors) {
            if let (Slot::Cotangent(k), Some(t)) = (slot, t)
                && is_placeholder(t)
            {
                let core: Shape = call.output_core((*k).into())?.into_iter().collect();
                *t = Tensor::zeros(core, like.dtype(), like.device())?;
            }
        }
        Ok(())
    }
}

/// The programs of an element op and of its vector-Jacobian product, which takes all cotangents and inputs.
fn programs(op: &OpDef, key: &Key, attrs: &[Attr]) -> Result<Option<(Program, Program)>> {
    let Some(forward) = op.program(attrs, |i| key.is_given(i))? else { return Ok(None) };
    let cotangents: Vec<usize> = op.cotangents().collect();
    let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| key.needs(*i)).collect();
    let vjp = vjp_program(&forward, &cotangents, &wrt, key.is_complex);
    let vjp = vjp.map_err(|e| e.context(format!("op '{}' has no gradient", op.name)))?;
    Ok(Some((forward, vjp)))
}

/// The inputs of the op that its vector-Jacobian product reads.
fn inputs_read(vjp: &Program, cotangents: usize) -> SmallVec<[usize; 4]> {
    vjp.reads().filter_map(|at| at.checked_sub(cotangents)).collect()
}

/// The outputs that may replace inputs: numbers of the compute dtype.
fn candidates(op: &OpDef) -> impl Iterator<Item = usize> + '_ {
    let is_number = |k: &usize| matches!(op.outputs[*k].dtype, DTypeRule::Generic(_));
    op.cotangents().filter(move |k| op.outputs[*k].role != Role::Saved && is_number(k))
}

/// An input, and an output that can replace it without changing the gradient.
fn swapped(op: &OpDef, forward: &Program, vjp: &Program) -> Option<(usize, usize)> {
    let cotangents = op.cotangents().count();
    let reads = inputs_read(vjp, cotangents);
    let pairs = candidates(op).flat_map(|k| reads.iter().map(move |i| (*i, k)));
    let fits = |(i, k): &(usize, usize)| {
        let (input, output) = (&op.inputs[*i], &op.outputs[*k]);
        input.dtype == output.dtype && input.arity == Arity::One && vjp.is_same_at_output(cotangents, forward, *i, *k)
    };
    pairs.into_iter().find(fits)
}

/// The vector-Jacobian product that also uses outputs. `None` unless it saves at least one input less and no more tensors in
/// total, and avoids the computation of a function. Not for narrow formats: an output has lost digits by rounding.
fn through_outputs(op: &OpDef, key: &Key, forward: &Program, vjp: &Program) -> Option<Program> {
    if key.is_narrow || op.generics.len() != 1 {
        return None;
    }
    let (cotangents, outputs): (usize, Vec<usize>) = (op.cotangents().count(), (0..op.outputs.len()).collect());
    let through = vjp.through_outputs(cotangents, forward, &outputs)?;
    let (before, after) = (inputs_read(vjp, cotangents), inputs_read(&through, cotangents));
    let is_input = |at: &&usize| **at < op.inputs.len();
    let fewer = after.iter().filter(is_input).count() < before.len();
    let (steps, own_steps) = (through.dear_steps(), vjp.dear_steps());
    let is_better = steps < own_steps || steps == own_steps && !after.iter().any(|at| is_input(&at));
    (fewer && after.len() <= before.len() && is_better).then_some(through)
}
