//! [`Checked`]: the dtypes and the device of a call, after all checks of its arguments.

use smallvec::{SmallVec, smallvec};

use crate::attr::Attr;
use crate::backend::without_values::common;
use crate::error::{Error, Result, counted};
use crate::graph::record;
use crate::op::by_name::names;
use crate::op::call::dtype_rule::DTypes;
use crate::op::{Arg, Arity, DTypeRule, OpDef, ShapeRule};
use crate::tensor::{Device, Tensor};

/// The inputs of a call; an optional one may be absent.
pub type Flat<'a> = SmallVec<[Option<&'a Tensor>; 4]>;

/// The result of the checks.
pub struct Checked<'a> {
    pub dtypes: DTypes,
    pub device: Device,
    pub args: &'a [Arg<'a>],
    /// Plain numbers as tensors.
    numbers: SmallVec<[Option<Tensor>; 4]>,
}

impl<'a> Checked<'a> {
    pub fn new(op: &OpDef, args: &'a [Arg<'a>], attrs: &[Attr]) -> Result<Checked<'a>> {
        check_count(op, args.len())?;
        let dtypes = op.resolve_dtypes(args, attrs)?;
        let device = device(op, args)?;
        let numbers = materialize(op, args, &dtypes, device)?;
        let checked = Checked { dtypes, device, args, numbers };
        check_writes(op, &checked.inputs())?;
        Ok(checked)
    }

    /// Those of inputs without values.
    pub fn without_values(&self) -> Checked<'static> {
        Checked { dtypes: self.dtypes.clone(), device: Device::Meta, args: &[], numbers: SmallVec::new() }
    }

    /// The arguments as tensors.
    pub fn inputs(&self) -> Flat<'_> {
        let tensor = |(arg, number): (&'a Arg<'a>, _)| match arg {
            Arg::Tensor(t) => Some(*t),
            _ => Option::as_ref(number),
        };
        self.args.iter().zip(&self.numbers).map(tensor).collect()
    }
}

fn check_count(op: &OpDef, got: usize) -> Result<()> {
    let variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let expected = op.inputs.len();
    if got == expected || (variadic && got + 1 >= expected) {
        return Ok(());
    }
    let at_least = if variadic { "at least " } else { "" };
    let expected = counted(if variadic { expected - 1 } else { expected }, "tensor");
    let names: Vec<_> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    Err(Error::type_(format!("op '{}' takes {at_least}{expected} ({}), got {got}", op.name, names.join(", "))))
}

fn device(op: &OpDef, args: &[Arg<'_>]) -> Result<Device> {
    let mut device = None;
    for (i, arg) in args.iter().enumerate() {
        match arg {
            Arg::Tensor(t) => {
                let before = device.unwrap_or(t.device());
                device = Some(common(before, t.device()).ok_or_else(|| elsewhere(op, i, t.device(), before))?);
            }
            Arg::None if op.parameter(i).arity == Arity::One => return Err(op.missing(&op.parameter(i).name)),
            _ => {}
        }
    }
    Ok(device.unwrap_or_default())
}

#[cold]
fn elsewhere(op: &OpDef, input: usize, device: Device, before: Device) -> Error {
    Error::runtime(format!(
        "op '{}': '{}' is on device '{device}', but the inputs before it are on device '{before}'; move them to one device with to()",
        op.name,
        op.parameter(input).name,
    ))
}

/// Plain numbers as tensors.
fn materialize(op: &OpDef, args: &[Arg<'_>], dtypes: &DTypes, device: Device) -> Result<SmallVec<[Option<Tensor>; 4]>> {
    let mut owned = smallvec![None; args.len()];
    for (i, arg) in args.iter().enumerate() {
        if let Arg::Number(n) = arg {
            let dtype = op.number_dtype(i, *n, dtypes);
            // In a loop, the number is not rounded to 16 bits.
            let is_converted = matches!(op.parameter(i).dtype, DTypeRule::Generic(_)) && op.body.is_loop();
            let dtype = if is_converted { dtype.compute() } else { dtype };
            owned[i] = Some(
                record::outside(|| Tensor::from_number(*n, dtype, device))
                    .map_err(|e| e.context(format!("op '{}', input '{}'", op.name, op.parameter(i).name)))?,
            );
        }
    }
    Ok(owned)
}

/// Whether a loop reads the same elements of two equal inputs at a time: both are elements, or cells of the same dimensions.
fn reads_alike(op: &OpDef, i: usize, j: usize) -> bool {
    match &op.shape {
        ShapeRule::Core(rule) => {
            let (a, b) = (rule.input(i), rule.input(j));
            a.batch == b.batch && a.core.len() == b.core.len()
        }
        _ => true,
    }
}

/// Copies of the inputs that share memory with an input that the call changes, so that it reads the values from before. `None` if there
/// are none. Two changed inputs are not copied.
pub fn copies(op: &OpDef, args: &[Arg<'_>]) -> Result<Option<SmallVec<[Option<Tensor>; 4]>>> {
    if op.inputs.iter().all(|i| !i.mutated) {
        return Ok(None);
    }
    let inputs: Flat<'_> = args.iter().map(|arg| if let Arg::Tensor(t) = arg { Some(*t) } else { None }).collect();
    let is_changed = |j: usize| op.parameter(j).mutated;
    let clashes = |j: usize, t: &Tensor| {
        let mut changed = inputs.iter().enumerate().filter(|(i, _)| is_changed(*i));
        changed.any(|(i, changed)| changed.is_some_and(|changed| overlaps(op, (i, changed), (j, t))))
    };
    let copy = |(j, t): (usize, &Option<&Tensor>)| match t.filter(|t| !is_changed(j) && clashes(j, t)) {
        Some(t) => names::CLONE.call(&[t.into()], &[]).map(Some),
        None => Ok(None),
    };
    let copies = inputs.iter().enumerate().map(copy).collect::<Result<SmallVec<[_; 4]>>>()?;
    Ok(copies.iter().any(Option::is_some).then_some(copies))
}

/// Whether an input shares memory with one that a call changes, and a loop reads other elements of it at a time.
fn overlaps(op: &OpDef, (i, changed): (usize, &Tensor), (j, t): (usize, &Tensor)) -> bool {
    let is_alike = || !op.parameter(j).mutated && changed.is_same_window(t) && reads_alike(op, i, j);
    j != i && changed.may_overlap(t) && !is_alike()
}

/// Checks that a changed input is writable, and overlaps no other argument, unless both are the same elements.
fn check_writes(op: &OpDef, inputs: &[Option<&Tensor>]) -> Result<()> {
    if op.inputs.iter().all(|i| !i.mutated) {
        return Ok(());
    }
    for (i, t) in inputs.iter().enumerate().filter_map(|(i, t)| t.filter(|_| op.parameter(i).mutated).map(|t| (i, t))) {
        let name = &op.parameter(i).name;
        if !t.storage().is_writable() {
            return Err(Error::value(format!(
                "op '{}' changes '{name}' in place, but its memory is read-only; copy it first",
                op.name
            )));
        }
        if t.overlaps_itself() {
            return Err(Error::value(format!(
                "op '{}' changes '{name}' in place, but several of its elements share memory (it was expanded); copy it first",
                op.name
            )));
        }
        for (j, other) in inputs.iter().enumerate().filter_map(|(j, o)| o.map(|o| (j, o))) {
            if overlaps(op, (i, t), (j, other)) {
                return Err(Error::value(format!(
                    "op '{}' changes '{name}' in place while '{}' shares memory with it; clone() one of them",
                    op.name,
                    op.parameter(j).name
                )));
            }
        }
    }
    Ok(())
}
