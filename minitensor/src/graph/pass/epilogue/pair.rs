//! [`Pair`]: two ops that are computed at a time, as one op.

use std::sync::Arc;

use minitensor_kernels::program::{Output, Program, Symbol};
use minitensor_kernels::{Const, Element};
use smallvec::SmallVec;

use crate::attr::Attr;
use crate::autograd::is_grad_enabled;
use crate::backend::Wanted;
use crate::backend::cpu::epilogue::{self, First, Then};
use crate::dispatch::{Produced, dispatch_wanted};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::by_name::reshape::reshape;
use crate::op::{Arg, Backward, Dynamic, Kernels, OpRef, internal_op};
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// One of two ops that are called together.
pub struct Part {
    pub op: OpRef,
    pub attrs: SmallVec<[Attr; 2]>,
    pub slots: SmallVec<[Slot; 4]>,
}

/// An argument of such an op.
pub enum Slot {
    None,
    Number(Const),
    /// The result of the first op.
    Result,
    /// An argument of the pair.
    Argument(usize),
}

impl Part {
    /// The arguments, which are tensors or absent; a number is a tensor of `numbers`.
    fn inputs<'a>(&self, args: &[&'a Tensor], numbers: &'a [Option<Tensor>]) -> SmallVec<[Option<&'a Tensor>; 8]> {
        let input = |(slot, number): (&Slot, &'a Option<Tensor>)| match slot {
            Slot::Argument(i) => Some(args[*i]),
            _ => number.as_ref(),
        };
        self.slots.iter().zip(numbers).map(input).collect()
    }

    /// The numbers among the arguments.
    fn numbers(&self, dtype: DType) -> Result<SmallVec<[Option<Tensor>; 8]>> {
        let number = |slot: &Slot| match slot {
            Slot::Number(number) => Tensor::from_number(*number, dtype, Device::Cpu).map(Some),
            _ => Ok(None),
        };
        self.slots.iter().map(number).collect()
    }

    /// Calls the op.
    fn call(&self, args: &[&Tensor], result: Option<&Tensor>, wanted: Wanted<'_>) -> Result<Produced> {
        let arg = |slot: &Slot| match slot {
            Slot::Number(number) => Arg::Number(*number),
            Slot::Argument(i) => Arg::Tensor(args[*i]),
            Slot::Result => result.map_or(Arg::None, Arg::Tensor),
            Slot::None => Arg::None,
        };
        let given: SmallVec<[Arg<'_>; 8]> = self.slots.iter().map(arg).collect();
        dispatch_wanted(&self.op, &given, &self.attrs, wanted)
    }
}

/// An op that computes in parts, and the element op after it.
pub struct Pair {
    pub first: Part,
    pub then: Part,
    /// The outputs of the element op that are computed.
    pub is_wanted: Vec<bool>,
    /// The size of the last axis of the result of the first op.
    pub width: usize,
    /// The shape and the dtype of this result, as the element op reads it.
    pub shape: Shape,
    pub dtype: DType,
}

impl Pair {
    /// Both as one op. Its name consists of theirs. Its documentation is the program of the element op.
    pub fn op(self) -> OpRef {
        let (first, then) = (&self.first.op.name, &self.then.op);
        let parts = then.name.strip_prefix("fused(").and_then(|name| name.strip_suffix(')')).unwrap_or(&then.name);
        let name = format!("fused({first}, {parts})");
        let doc = self.text();
        let run = move |given: &crate::op::Call<'_>| self.run(&given.variadic(0));
        let mut op = internal_op(name, Dynamic { run: Arc::new(run), is_interpreted: false }, Backward::Composite);
        if let (OpRef::Shared(op), Some(doc)) = (&mut op, doc)
            && let Some(op) = Arc::get_mut(op)
        {
            op.doc = doc.into();
        }
        op
    }

    /// The program of both, with the names `x0`, `x1`, … of the arguments.
    fn text(&self) -> Option<String> {
        let Pair { first, then, .. } = self;
        let count = first.slots.iter().chain(&then.slots).filter(|slot| matches!(slot, Slot::Argument(_))).count();
        let names: Vec<String> = (0..count).map(|i| format!("x{i}")).chain(["r".to_owned()]).collect();
        let is_given = |i: usize| !matches!(then.slots[i], Slot::None);
        let program = then.op.program(&then.attrs, is_given).ok().flatten()?;
        let program = Program::write(&names.iter().map(String::as_str).collect::<Vec<_>>(), &[], |x, _| {
            let argument = |slot: &Slot| match slot {
                Slot::None => None,
                Slot::Number(number) => Some(Symbol::constant(*number)),
                Slot::Result => Some(x[count]),
                Slot::Argument(i) => Some(x[*i]),
            };
            let results = program.at::<Symbol>(&then.slots.iter().filter_map(argument).collect::<Vec<_>>(), &[]);
            let names = program.outputs().iter().map(|(name, _)| name.clone());
            names.zip(results.unwrap_or_default()).collect::<Vec<(String, Output)>>()
        });
        let arguments = first.slots.iter().filter(|slot| matches!(slot, Slot::Argument(_))).count();
        Some(format!("r = {}({})\n{program}", first.op.name, names[..arguments].join(", ")))
    }

    fn run(&self, args: &[&Tensor]) -> Result<Vec<Tensor>> {
        // The gradient is that of both calls. Tensors on the device without values have only shapes.
        let is_alone = args.iter().all(|t| t.device() == Device::Cpu && !(is_grad_enabled() && t.requires_grad()));
        let outputs = match if is_alone { self.together(args)? } else { None } {
            Some(outputs) => outputs,
            None => self.one_by_one(args)?,
        };
        Ok(outputs.into_iter().zip(&self.is_wanted).filter(|(_, wanted)| **wanted).filter_map(|(t, _)| t).collect())
    }

    fn wanted(&self) -> Wanted<'static> {
        Wanted::these(self.is_wanted.iter().copied())
    }

    /// Computes both at a time. `None` if that is not possible for these tensors.
    fn together(&self, args: &[&Tensor]) -> Result<Option<Produced>> {
        let Pair { first, then, shape, dtype, width, .. } = self;
        let Some(kernel) = first.op.kernels_on(DeviceKind::Cpu).find_map(Kernels::parts) else { return Ok(None) };
        let (none, numbers) = (first.numbers(*dtype)?, then.numbers(*dtype)?);
        let of_parts = then.slots.iter().enumerate().filter(|(_, slot)| matches!(slot, Slot::Result));
        let of_parts: SmallVec<[usize; 2]> = of_parts.map(|(i, _)| i).collect();
        epilogue::run(
            &First { kernel, inputs: &first.inputs(args, &none), attrs: &first.attrs, width: *width },
            &Then {
                op: &then.op,
                inputs: &then.inputs(args, &numbers),
                of_parts: &of_parts,
                attrs: &then.attrs,
                wanted: self.wanted(),
                shape,
                dtype: *dtype,
            },
        )
    }

    fn one_by_one(&self, args: &[&Tensor]) -> Result<Produced> {
        let missing = || Error::runtime(format!("op '{}' returned nothing", self.first.op.name));
        let result = self.first.call(args, None, Wanted::ALL)?.into_iter().flatten().next().ok_or_else(missing)?;
        let result = reshape(&result, self.shape.iter().map(|n| *n as i64).collect())?;
        self.then.call(args, Some(&result), self.wanted())
    }
}
