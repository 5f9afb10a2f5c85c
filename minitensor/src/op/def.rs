//! [`OpDef`]: an operation as data. `#[custom_op]` writes one as a `static`; everything else reads it.

use std::ops::Deref;
use std::sync::Arc;

#[cfg(feature = "engine")]
use minitensor_kernels::program::Plan;

pub use minitensor_schema::signature::{
    Arity, Attribute, Axis, Core, DTypeRule, Generic, Input, List, Output, Role, Signature, Text,
};

use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::error::Result;
use crate::op::Gradients;
use crate::op::call::Call;
use crate::op::kernel::{Kernels, ProgramFn};
use crate::op::shape_rule::{CoreShapes, Predicate};
#[cfg(feature = "engine")]
use crate::plugin::host::Loaded;
use crate::tensor::Tensor;

/// One operation: all that is known of it.
#[derive(Clone, Debug)]
pub struct OpDef {
    /// `swish`, or with a namespace `ns::swish`.
    pub name: Text,
    /// Other names of the same op.
    pub aliases: List<Text>,
    /// Markdown; the first line is a sentence.
    pub doc: Text,
    /// The tensors it takes, in order.
    pub inputs: List<Input>,
    /// What it is told besides, in order.
    pub attrs: List<Attribute>,
    /// What it gives, saved outputs last.
    pub outputs: List<Output>,
    /// The dtype variables (`T`) that inputs and outputs refer to by position.
    pub generics: List<Generic>,
    /// How the shapes of outputs follow from those of inputs.
    pub shape: ShapeRule,
    /// What must hold of dimensions and attributes.
    pub predicates: List<Predicate>,
    /// Along which axis a core dimension lies, if the caller may choose.
    pub axis: Option<Axis>,
    /// The computation.
    pub body: Body,
    /// The gradient.
    pub backward: Backward,
    /// The version of the op's package that had it first.
    pub since: u32,
    /// Where it is defined.
    pub location: Location,
}

/// How output shapes follow from input shapes.
#[derive(Clone, Debug)]
pub enum ShapeRule {
    /// All inputs broadcast to one shape, which every output has: element bodies.
    Broadcast,
    /// Batch dimensions broadcast, core dimensions are named: a `shape` clause.
    Core(CoreShapes),
    /// The parts of the body tell: tensor bodies, run over tensors without data.
    Traced,
}

/// The computation.
#[derive(Clone, Debug)]
pub enum Body {
    /// One element at a time.
    Element(ElementBody),
    /// One element at a time, by a program: ops made at run time.
    #[cfg(feature = "engine")]
    Program(Arc<Plan>),
    /// One core cell at a time.
    Cell(CellBody),
    /// Whole tensors.
    Tensor(TensorFn),
    /// Whole arrays, by a function of a library.
    #[cfg(feature = "engine")]
    Arrays(Loaded),
    /// Whole tensors, by a closure: ops made at run time.
    Dynamic(Dynamic),
}

#[cfg(feature = "engine")]
impl Body {
    /// Whether a loop computes it, which converts its inputs itself.
    pub(crate) fn is_loop(&self) -> bool {
        matches!(self, Body::Element(_) | Body::Program(_) | Body::Cell(_))
    }
}

/// A body made at run time.
#[derive(Clone)]
pub struct Dynamic {
    /// The closure.
    pub run: Arc<DynamicFn>,
    /// Whether it may be code of an interpreter, which takes care of threads itself.
    pub is_interpreted: bool,
}
/// Its function.
pub type DynamicFn = dyn for<'a> Fn(&Call<'a>) -> Result<Vec<Tensor>> + Send + Sync;

impl std::fmt::Debug for Dynamic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dynamic")
    }
}

/// Loops over elements, by dtype.
#[derive(Clone, Copy, Debug)]
pub struct ElementBody {
    /// The loops.
    pub kernels: Kernels<ElementKernel>,
    /// Writes the body's program, for attributes as the kernel gets them.
    pub program: Option<ProgramFn>,
}

/// Computes `n` elements; every pointer is to `n` contiguous elements in the compute dtype.
pub type ElementKernel = unsafe fn(attrs: &[Attr], n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()>;

/// Core cells, by dtype.
#[derive(Clone, Copy, Debug)]
pub struct CellBody {
    /// The loops.
    pub kernels: Kernels<CellKernel>,
    /// Writes the program of a row body, for attributes as the kernel gets them and then, for each optional input, whether it
    /// is there. Its inputs are those along the row, its uniforms the numbers for a row and then the `f64` attributes.
    pub program: Option<ProgramFn>,
}

/// Computes so many cells, from the cores of its inputs, then of its outputs.
pub type CellKernel = unsafe fn(attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()>;

/// The cores of one argument.
#[derive(Clone, Copy, Debug)]
pub struct CellArg<'a> {
    /// The first element of the first core; null for an optional input that is absent, or an output that isn't wanted.
    pub data: *mut u8,
    /// How many bytes the next cell's core is away.
    pub step: isize,
    /// Whether all cells together are [too large](minitensor_kernels::LARGE) for the cache.
    pub is_large: bool,
    /// Core dimensions.
    pub shape: &'a [usize],
    /// In elements, one for each core dimension.
    pub strides: &'a [isize],
}

/// A body over whole tensors.
pub type TensorFn = for<'a> fn(&Call<'a>) -> Result<Vec<Tensor>>;

/// The gradient.
#[derive(Clone, Debug)]
pub enum Backward {
    /// There is none; differentiating raises, with this reason.
    None(Text),
    /// No output can carry a gradient (integers, booleans), so none is needed.
    NotNeeded,
    /// The vector-Jacobian product of an element body, itself an op: it takes the cotangents of the returned
    /// outputs, then the inputs, and gives the gradients of the inputs that [`Derived::wrt`] lists.
    Derived(Derived),
    /// The vector-Jacobian product of the op's program, made when it is needed, so that there are derivatives of any order.
    Program(Gradients),
    /// A function over tensors.
    Formula(Formula),
    /// By recording the ops that a tensor body is made of.
    Traced,
}

/// A compiled vector-Jacobian product.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The op that computes it.
    pub vjp: OpRef,
    /// Which inputs its outputs belong to.
    pub wrt: List<u8>,
    /// What a call of it needs, for each kind of call.
    pub gradients: Gradients,
}

/// A written gradient.
#[derive(Clone, Debug)]
pub struct Formula {
    /// Computes the gradients of the inputs that need one.
    pub run: BackwardBody,
    /// Inputs that the formula mentions.
    pub saved_inputs: List<u8>,
    /// Outputs that the formula mentions.
    pub saved_outputs: List<u8>,
    /// Inputs declared without a gradient (`x: none`).
    pub without: List<u8>,
}

/// The function of a written gradient.
#[derive(Clone)]
pub enum BackwardBody {
    /// Compiled.
    Static(BackwardFn),
    /// Made at run time.
    Shared(Arc<DynamicBackwardFn>),
}

/// A gradient as a function: one entry for each flat input, `None` where no gradient is needed.
pub type BackwardFn = for<'a> fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>>;

/// The same as a closure.
pub type DynamicBackwardFn = dyn for<'a> Fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>> + Send + Sync;

impl BackwardBody {
    /// The gradients for one call.
    pub(crate) fn call(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        match self {
            BackwardBody::Static(run) => run(call),
            BackwardBody::Shared(run) => run(call),
        }
    }
}

impl std::fmt::Debug for BackwardBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackwardBody")
    }
}

/// Where an op is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Source file.
    pub file: Text,
    /// Line, from 1; 0 where it isn't known.
    pub line: u32,
}

/// A handle to an op that stays valid whatever becomes of the registry.
#[derive(Clone, Debug)]
pub enum OpRef {
    /// Written by `#[custom_op]`.
    Static(&'static OpDef),
    /// Made at run time.
    Shared(Arc<OpDef>),
}

impl Deref for OpRef {
    type Target = OpDef;
    #[inline(always)]
    fn deref(&self) -> &OpDef {
        match self {
            OpRef::Static(op) => op,
            OpRef::Shared(op) => op,
        }
    }
}

impl OpDef {
    /// Its tensors, attributes and outputs, for the checks of the schema.
    pub fn schema(&self) -> Signature<'_> {
        Signature { inputs: &self.inputs, attrs: &self.attrs, outputs: &self.outputs, generics: &self.generics }
    }

    /// Whether tensors of such a dtype can have a gradient.
    pub fn is_differentiable(&self, rule: DTypeRule) -> bool {
        self.schema().is_differentiable(rule)
    }

    /// Whether it gives any number of tensors: its one output is named `outs`.
    pub fn gives_list(&self) -> bool {
        matches!(self.outputs.as_ref(), [one] if one.name == "outs")
    }

    /// The names of the inputs, uniforms and outputs of the op's program. The program of a row takes what goes along the row as
    /// inputs; its uniforms are the numbers for a row, then positions in the row, then the `f64` attributes.
    pub fn program_names(&self) -> [Vec<&str>; 3] {
        let is_row = matches!(self.body, Body::Cell(_));
        let is_along = |i: &&Input| !is_row || i.core == Core::Slice;
        let is_number = |i: &&Input| matches!(i.dtype, DTypeRule::Generic(_));
        let numbers = self.inputs.iter().filter(|i| !is_along(i) && is_number(i));
        let positions = self.inputs.iter().filter(|i| !is_along(i) && !is_number(i));
        let floats = self.attrs.iter().filter(|a| a.kind == AttrKind::Float);
        let uniforms = numbers.chain(positions).map(|i| &i.name).chain(floats.map(|a| &a.name));
        [
            self.inputs.iter().filter(is_along).map(|i| i.name.as_ref()).collect(),
            uniforms.map(|name| name.as_ref()).collect(),
            self.outputs.iter().map(|o| o.name.as_ref()).collect(),
        ]
    }

    /// The outputs whose cotangents a [`Derived`] gradient takes.
    pub fn cotangents(&self) -> impl Iterator<Item = usize> + '_ {
        let takes_part = |o: &Output| o.role != Role::Saved && self.is_differentiable(o.dtype);
        (0..self.outputs.len()).filter(move |k| takes_part(&self.outputs[*k]))
    }
}
