//! Rules: one call of an op for all examples of a batch, whose axis is the first.

use minitensor_kernels::Const;
use smallvec::SmallVec;

use super::fold;
use crate::attr::Attr;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::graph::Call;
use crate::op::by_name::names;
use crate::op::{Arg, CoreShapes, OpDef, OpRef, ShapeRule};
use crate::tensor::{Region, Shape, Tensor, normalize_axis};

/// An argument of a call, for the batch.
#[derive(Clone)]
pub enum Given {
    None,
    Number(Const),
    /// A tensor, and whether its first axis is that of the examples.
    Tensor(Tensor, bool),
}

impl Given {
    pub fn is_batched(&self) -> bool {
        matches!(self, Given::Tensor(_, true))
    }

    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Given::None => Arg::None,
            Given::Number(value) => Arg::Number(*value),
            Given::Tensor(t, _) => Arg::Tensor(t),
        }
    }

    /// The number of dimensions of an example.
    pub fn rank(&self) -> Option<usize> {
        if let Given::Tensor(t, is_batched) = self { Some(t.ndim() - usize::from(*is_batched)) } else { None }
    }
}

/// A call for all examples.
pub struct Together {
    pub args: SmallVec<[Given; 4]>,
    pub attrs: SmallVec<[Attr; 2]>,
    /// If the results of all examples are folded: the shape of one, and the axis before which the examples are.
    pub result: Option<(Shape, usize)>,
}

/// The call for all examples. `results` are those of one example. `None` if there is no rule: each example needs a call.
///
/// # Errors
/// The error of a change of shape.
pub fn whole(call: &Call, given: &[Given], results: &[Option<&Tensor>], size: usize) -> Result<Option<Together>> {
    let attrs = call.attrs.clone();
    if let (OpRef::Static(_), [Some(result)]) = (&call.op, results) {
        for rule in [fold::rows, fold::groups, fold::tables] {
            if let Some(together) = rule(call, given, result, size)? {
                return Ok(Some(together));
            }
        }
    }
    match &call.op.shape {
        ShapeRule::Broadcast => {
            let args = aligned(&call.op, given, |_| Some(0))?;
            Ok(args.map(|args| Together { args, attrs, result: None }))
        }
        // A sum over all rows, such as the gradient of a weight that they share.
        ShapeRule::Core(shapes) if shapes.outputs.iter().any(|dims| !dims.batch) => Ok(None),
        ShapeRule::Core(shapes) if call.op.axis.is_none() => {
            let core = |i: usize| shapes.input(i).batch.then(|| shapes.input(i).core.len());
            let args = aligned(&call.op, given, core)?;
            Ok(args.map(|args| Together { args, attrs, result: None }))
        }
        ShapeRule::Core(shapes) => along_axes(&call.op, shapes, given, attrs, size),
        ShapeRule::Inferred => match call.op {
            OpRef::Static(op) => of_tensors(op, given, attrs, results.first().copied().flatten(), size),
            OpRef::Shared(_) => Ok(None),
        },
    }
}

/// All batched arguments with dimensions of size 1 between the batch and their own, so that they broadcast as the examples
/// do. `core` is the number of core dimensions of an input, `None` if it has no others.
fn aligned(op: &OpDef, given: &[Given], core: impl Fn(usize) -> Option<usize>) -> Result<Option<SmallVec<[Given; 4]>>> {
    let outer = |(i, arg): (usize, &Given)| Some(arg.rank()? as isize - core(i)? as isize);
    let most = given.iter().enumerate().filter_map(outer).max().unwrap_or(0);
    let mut args = SmallVec::new();
    for (i, arg) in given.iter().enumerate() {
        args.push(match (arg, outer((i, arg))) {
            (Given::Tensor(_, true), Some(own)) if own < 0 || own < most && op.parameter(i).mutated => return Ok(None),
            (Given::Tensor(_, true), None) => return Ok(None),
            (Given::Tensor(t, true), Some(own)) if own < most => {
                let ones = std::iter::repeat_n(1, (most - own) as usize);
                let sizes = t.shape()[..1].iter().copied().chain(ones).chain(t.shape()[1..].iter().copied());
                Given::Tensor(reshaped(t, sizes)?, true)
            }
            _ => arg.clone(),
        });
    }
    Ok(Some(args))
}

/// The call of an op whose caller chooses the axes: they are counted from the last dimension.
fn along_axes(
    op: &OpDef,
    shapes: &CoreShapes,
    given: &[Given],
    mut attrs: SmallVec<[Attr; 2]>,
    size: usize,
) -> Result<Option<Together>> {
    let Some(axis) = op.axis else { return Ok(None) };
    let with_core = given.iter().enumerate().filter(|(i, _)| !shapes.input(*i).core.is_empty());
    let mut ranks: SmallVec<[usize; 4]> = with_core.filter_map(|(_, arg)| arg.rank()).collect();
    ranks.dedup();
    let has_others = given.iter().enumerate().any(|(i, arg)| arg.is_batched() && !shapes.input(i).batch);
    let &[rank] = &ranks[..] else { return Ok(None) };
    if has_others || rank == 0 {
        return Ok(None);
    }
    let from_the_end = |a: i64| if a < 0 { a } else { a - rank as i64 };
    attrs[axis.attr as usize] = match &attrs[axis.attr as usize] {
        Attr::Int(a) => Attr::Int(from_the_end(*a)),
        Attr::Ints(list) => Attr::Ints(list.iter().map(|a| from_the_end(*a)).collect()),
        _ => Attr::Ints((-(rank as i64)..0).collect()),
    };
    let mut args = SmallVec::new();
    for (i, arg) in given.iter().enumerate() {
        args.push(match arg {
            Given::Tensor(t, false) if shapes.input(i).batch => Given::Tensor(repeated(t, size)?, true),
            other => other.clone(),
        });
    }
    Ok(Some(Together { args, attrs, result: None }))
}

/// The call of a built-in op over whole tensors. `result` is that of one example.
fn of_tensors(
    op: &OpDef,
    given: &[Given],
    mut attrs: SmallVec<[Attr; 2]>,
    result: Option<&Tensor>,
    size: usize,
) -> Result<Option<Together>> {
    let mut args: SmallVec<[Given; 4]> = given.iter().cloned().collect();
    let rank = given.first().and_then(Given::rank).unwrap_or(0);
    match op.name.as_ref() {
        "astype" | "clone" | "conj" | "contiguous" | "device::copy" | "imag" | "real" | "zeros_like" => {}
        "complex" => match aligned(op, given, |_| Some(0))? {
            Some(aligned) => args = aligned,
            None => return Ok(None),
        },
        "reshape" | "expand" => {
            let Some(result) = result else { return Ok(None) };
            if let Given::Tensor(t, true) = &args[0]
                && rank < result.ndim()
                && op.name == "expand"
            {
                let ones = std::iter::repeat_n(1, result.ndim() - rank);
                let sizes = [size].into_iter().chain(ones).chain(t.shape()[1..].iter().copied());
                args[0] = Given::Tensor(reshaped(t, sizes)?, true);
            }
            attrs[0] = with_size(size, result.shape());
        }
        "permute_dims" => {
            let Attr::Ints(axes) = &attrs[0] else { return Ok(None) };
            let moved = axes.iter().map(|a| Ok(normalize_axis(*a, rank)? as i64 + 1));
            let axes = std::iter::once(Ok(0)).chain(moved).collect::<Result<Vec<i64>>>()?;
            attrs[0] = Attr::Ints(axes.into());
        }
        "squeeze" => {
            let axes: Vec<i64> = match (&attrs[0], &given[0]) {
                (Attr::Ints(axes), _) => axes.iter().map(|a| a + i64::from(*a >= 0)).collect(),
                (Attr::Int(axis), _) => vec![axis + i64::from(*axis >= 0)],
                (_, Given::Tensor(t, _)) => (1..t.ndim()).filter(|d| t.shape()[*d] == 1).map(|d| d as i64).collect(),
                _ => return Ok(None),
            };
            attrs[0] = Attr::Ints(axes.into());
        }
        "unsqueeze" | "slice" => shift(&mut attrs[0]),
        "unslice" => {
            let Attr::Ints(sizes) = &attrs[0] else { return Ok(None) };
            attrs[0] = Attr::Ints(std::iter::once(size as i64).chain(sizes.iter().copied()).collect());
            shift(&mut attrs[1]);
        }
        "concat" => {
            shift(&mut attrs[0]);
            for arg in &mut args {
                if let Given::Tensor(t, false) = arg {
                    *arg = Given::Tensor(repeated(t, size)?, true);
                }
            }
        }
        // The margins are those of the last axes.
        "pad" => {}
        "region::part" | "region::spread" | "region::cleared" | "region::replaced" => {
            let (Attr::Ints(ints), Given::Tensor(t, is_batched)) = (&attrs[0], &args[0]) else { return Ok(None) };
            let region = Region::read(ints)?;
            let whole = (*is_batched && op.name != "region::spread").then_some(t);
            attrs[0] = Attr::Ints(region.batched(size, whole).to_ints().into());
            for arg in &mut args {
                if let Given::Tensor(t, false) = arg {
                    *arg = Given::Tensor(repeated(t, size)?, true);
                }
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(Together { args, attrs, result: None }))
}

/// An axis after a new first one.
fn shift(axis: &mut Attr) {
    if let Attr::Int(a) = axis {
        *a += i64::from(*a >= 0);
    }
}

fn with_size(size: usize, shape: &Shape) -> Attr {
    Attr::Ints(std::iter::once(size as i64).chain(shape.iter().map(|n| *n as i64)).collect())
}

/// The tensor in another shape.
pub fn reshaped(t: &Tensor, sizes: impl Iterator<Item = usize>) -> Result<Tensor> {
    let sizes: Vec<i64> = sizes.map(|n| n as i64).collect();
    match is_grad_enabled() {
        true => names::RESHAPE.call(&[t.into(), sizes.into()], &[]),
        false => t.reshape_view(&sizes),
    }
}

/// The tensor for each example, without a copy.
pub fn repeated(t: &Tensor, size: usize) -> Result<Tensor> {
    names::EXPAND.call(&[t.into(), with_size(size, t.shape()).into()], &[])
}
