//! [`Arguments`]: the arguments of a gradient by their roles.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::error::{Error, Result};
use crate::op::call::shape_rule::Bindings;
use crate::op::{CellArg, OpDef, ShapeRule};

/// The cores of an argument with elements `T`.
#[derive(Clone, Copy)]
pub struct Cores<'a, T> {
    arg: CellArg<'a>,
    is_contiguous: bool,
    elements: PhantomData<T>,
}

impl<'a, T> Cores<'a, T> {
    fn of(arg: &CellArg<'a>) -> Cores<'a, T> {
        let (mut expected, mut is_contiguous) = (1, true);
        for (size, stride) in arg.shape.iter().zip(arg.strides).rev() {
            is_contiguous &= *size == 1 || *stride == expected;
            expected *= *size as isize;
        }
        Cores { arg: *arg, is_contiguous, elements: PhantomData }
    }

    /// Whether the argument is given or, for an output, wanted.
    pub fn is_given(&self) -> bool {
        !self.arg.data.is_null()
    }

    /// Whether the elements of a cell follow one another.
    pub fn is_contiguous(&self) -> bool {
        self.is_contiguous
    }

    /// The address of an element of a cell.
    #[inline(always)]
    pub fn place(&self, cell: usize, at: usize) -> *mut T {
        let first = self.arg.data.wrapping_offset(cell as isize * self.arg.step).cast::<T>();
        if self.is_contiguous {
            return first.wrapping_add(at);
        }
        let (mut offset, mut rest) = (0, at);
        for (size, stride) in self.arg.shape.iter().zip(self.arg.strides).rev() {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        first.wrapping_offset(offset)
    }
}

/// A contiguous core.
pub struct Contiguous {
    pub sizes: SmallVec<[usize; 4]>,
    pub strides: SmallVec<[isize; 4]>,
}

impl Contiguous {
    fn of(sizes: &[usize]) -> Contiguous {
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(1, sizes.len());
        for d in (1..sizes.len()).rev() {
            strides[d - 1] = strides[d] * sizes[d].max(1) as isize;
        }
        Contiguous { sizes: sizes.into(), strides }
    }

    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The core at an address.
    pub fn at(&self, data: *mut u8) -> CellArg<'_> {
        CellArg { data, step: 0, is_large: false, shape: &self.sizes, strides: &self.strides }
    }
}

/// An input of the op.
pub enum Input<'a, T> {
    /// Numbers of the tape.
    Numbers(Box<Numbers<'a, T>>),
    /// Passed to the body unchanged.
    Other(CellArg<'a>),
}

/// An input with numbers of the tape.
pub struct Numbers<'a, T> {
    pub core: Contiguous,
    pub values: Cores<'a, T>,
    /// The direction of the second derivative.
    pub direction: Option<Cores<'a, T>>,
    pub gradient: Cores<'a, T>,
    /// Whether the gradient is the sum over all cells.
    pub is_shared: bool,
}

/// An output of the op.
pub struct Output<'a, T> {
    pub core: Contiguous,
    /// Whether its elements are numbers of the tape.
    pub is_number: bool,
    pub cotangent: Option<Cores<'a, T>>,
    /// The gradient of the cotangent, in a second derivative.
    pub gradient: Option<Cores<'a, T>>,
    /// The values, if the op itself is computed.
    pub values: Option<Cores<'a, T>>,
    /// Whether the values, or the gradient, are the sum over all cells.
    pub is_shared: bool,
}

/// The arguments of a gradient of an op.
pub struct Arguments<'a, T> {
    pub inputs: Vec<Input<'a, T>>,
    pub outputs: Vec<Output<'a, T>>,
    pub op: &'a OpDef,
}

impl<'a, T> Arguments<'a, T> {
    /// The arguments of the op itself: inputs, then outputs.
    pub fn of_op(op: &'a OpDef, args: &[CellArg<'a>]) -> Arguments<'a, T> {
        let (inputs, outputs) = args.split_at(op.inputs.len());
        let nothing = CellArg { data: std::ptr::null_mut(), step: 0, is_large: false, shape: &[], strides: &[] };
        let input = |(i, arg): (usize, &CellArg<'a>)| match op.is_differentiable(op.inputs[i].dtype) {
            false => Input::Other(*arg),
            true => Input::Numbers(Box::new(Numbers {
                core: Contiguous::of(arg.shape),
                values: Cores::of(arg),
                direction: None,
                gradient: Cores::of(&nothing),
                is_shared: false,
            })),
        };
        let output = |(k, arg): (usize, &CellArg<'a>)| Output {
            core: Contiguous::of(arg.shape),
            is_number: op.is_differentiable(op.outputs[k].dtype),
            cotangent: None,
            gradient: None,
            values: Some(Cores::of(arg)),
            is_shared: arg.step == 0,
        };
        let inputs = inputs.iter().enumerate().map(input).collect();
        Arguments { inputs, outputs: outputs.iter().enumerate().map(output).collect(), op }
    }

    /// The number of elements in the core of each input.
    pub fn cores(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().map(|input| if let Input::Numbers(numbers) = input { numbers.core.numel() } else { 0 })
    }

    /// Whether all inputs are numbers of the tape, or absent.
    pub fn are_numbers(&self) -> bool {
        self.inputs.iter().all(|input| match input {
            Input::Numbers(_) => true,
            Input::Other(arg) => arg.data.is_null(),
        })
    }

    /// Whether all cells have the same inputs besides numbers. A body may branch on them.
    pub fn others_are_shared(&self) -> bool {
        self.inputs.iter().all(|input| match input {
            Input::Numbers(_) => true,
            Input::Other(arg) => arg.data.is_null() || arg.step == 0,
        })
    }

    /// The arguments of a gradient, as [`cell_gradient`](super::cell_gradient) describes them.
    pub fn of_gradient(
        op: &'a OpDef,
        attrs: &[Attr],
        args: &[CellArg<'a>],
        has_directions: bool,
    ) -> Result<Arguments<'a, T>> {
        let ShapeRule::Core(rule) = &op.shape else {
            return Err(Error::runtime(format!("op '{}' has no shape rule", op.name)));
        };
        let is_variable = |i: &usize| op.is_differentiable(op.inputs[*i].dtype);
        let variables = (0..op.inputs.len()).filter(is_variable).count();
        let cotangents: SmallVec<[usize; 2]> = op.cotangents().collect();
        let mut rest = args;
        let mut take = |count: usize| -> Result<&[CellArg<'a>]> {
            let (taken, others) = rest.split_at_checked(count).ok_or_else(|| {
                Error::runtime(format!("the gradient of op '{}' has too few arguments: {}", op.name, args.len()))
            })?;
            rest = others;
            Ok(taken)
        };
        let directions = take(if has_directions { variables } else { 0 })?;
        let given = take(cotangents.len())?;
        let inputs = take(op.inputs.len())?;
        let of_cotangents = take(if has_directions { cotangents.len() } else { 0 })?;
        let of_inputs = take(variables)?;
        let mut bindings = Bindings::default();
        bindings.bind_names(
            rule,
            inputs.iter().enumerate().filter(|(_, arg)| !arg.data.is_null()).map(|(i, arg)| (i, arg.shape)),
        );
        for (arg, dims) in inputs.iter().zip(rule.inputs.iter()).filter(|(arg, _)| !arg.data.is_null()) {
            bindings.bind(&dims.core, arg.shape, attrs).map_err(Error::runtime)?;
        }
        let has_batch = rule.inputs.iter().any(|dims| dims.batch) || cotangents.iter().any(|k| rule.outputs[*k].batch);
        let mut at = 0..;
        let input = |(i, arg): (usize, &CellArg<'a>)| match is_variable(&i) {
            false => Input::Other(*arg),
            true => {
                let at = at.next().unwrap_or_default();
                Input::Numbers(Box::new(Numbers {
                    core: Contiguous::of(arg.shape),
                    values: Cores::of(arg),
                    direction: directions.get(at).map(Cores::of),
                    gradient: Cores::of(&of_inputs[at]),
                    is_shared: has_batch && !rule.inputs[i].batch,
                }))
            }
        };
        let inputs = inputs.iter().enumerate().map(input).collect();
        let output = |k: usize| {
            let at = cotangents.iter().position(|c| *c == k);
            let sizes = bindings.sizes(&rule.outputs[k].core, attrs).map_err(Error::runtime)?;
            Ok(Output {
                core: Contiguous::of(&sizes),
                is_number: op.is_differentiable(op.outputs[k].dtype),
                cotangent: at.and_then(|at| given.get(at)).map(Cores::of),
                gradient: at.and_then(|at| of_cotangents.get(at)).map(Cores::of),
                values: None,
                is_shared: has_batch && !rule.outputs[k].batch,
            })
        };
        let outputs = (0..op.outputs.len()).map(output).collect::<Result<_>>()?;
        Ok(Arguments { inputs, outputs, op })
    }
}
