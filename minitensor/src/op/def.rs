//! [`OpDef`]: an operation as data. `#[custom_op]` generates one as a `static`.

use std::ops::Deref;
use std::sync::Arc;

pub use minitensor_schema::grammar::Mode;
pub use minitensor_schema::signature::{
    Arity, Attribute, Axis, Core, DTypeRule, Generic, Input, List, Output, Role, Signature, Text,
};
pub use minitensor_schema::{Combine, Property};

use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::error::Result;
use crate::op::Gradients;
use crate::op::call::Call;
use crate::op::call::shape_rule::{CoreShapes, Predicate};
use crate::op::kernel::KernelTable;
use crate::op::program::ProgramFn;
#[cfg(feature = "engine")]
use crate::plugin::host::LoadedOp;
use crate::tensor::Tensor;

/// The definition of one operation.
#[derive(Clone, Debug)]
pub struct OpDef {
    /// The name: `swish`, or `ns::swish` with a namespace.
    pub name: Text,
    /// Other names of the same op.
    pub aliases: List<Text>,
    /// The documentation in Markdown. The first line is a sentence.
    pub doc: Text,
    /// The input tensors, in order.
    pub inputs: List<Input>,
    /// The attributes, in order.
    pub attrs: List<Attribute>,
    /// The outputs, with saved outputs last.
    pub outputs: List<Output>,
    /// The dtype variables (`T`) that inputs and outputs refer to by position.
    pub generics: List<Generic>,
    /// The rule that determines the shapes of outputs from those of inputs.
    pub shape: ShapeRule,
    /// The conditions on dimensions and attributes.
    pub predicates: List<Predicate>,
    /// The `axis` clause, if the caller may choose the axes of the core dimension.
    pub axis: Option<Axis>,
    /// The `combine` clause, if the results for parts of a row combine to the result for the row.
    pub combine: Option<Combine>,
    /// The clauses `linear`, `symmetric` and `replaces`.
    pub properties: List<Property>,
    /// The computation.
    pub body: Body,
    /// The gradient.
    pub backward: Backward,
    /// The kernels, by kind of device.
    pub kernels: KernelTable,
    /// The first version of the op's package that has the op.
    pub since: u32,
    /// The location of the definition.
    pub location: Location,
}

/// The rule that determines output shapes from input shapes.
#[derive(Clone, Debug)]
pub enum ShapeRule {
    /// For element bodies: all inputs broadcast to one shape, which is that of every output.
    Broadcast,
    /// A `shape` clause: batch dimensions broadcast, and core dimensions are named.
    Core(CoreShapes),
    /// For tensor bodies: the body is run on tensors without data.
    Inferred,
}

/// The computation of an op, independent of devices. The [kernel table](KernelTable) contains the kernels.
#[derive(Clone, Debug)]
pub enum Body {
    /// One element at a time, with the program of the body.
    Element(Option<ProgramFn>),
    /// One core cell at a time. A row body has a program. The arguments of its function are the attributes of the kernel, then,
    /// for each optional input, whether it is given. The inputs of the program are those along the row. Its uniforms are the
    /// numbers for a row, then the `f64` attributes.
    Cell(Option<ProgramFn>),
    /// Whole tensors: calls of other ops.
    Tensor(TensorFn),
    /// Whole tensors, by a closure. For ops created at run time.
    Dynamic(Dynamic),
    /// Whole arrays, whose shapes and dtypes a plugin infers. Only kernels compute them.
    #[cfg(feature = "engine")]
    Arrays(LoadedOp),
}

#[cfg(feature = "engine")]
impl Body {
    /// Whether the body is a loop. Loops convert their inputs themselves.
    pub(crate) fn is_loop(&self) -> bool {
        matches!(self, Body::Element(_) | Body::Cell(_))
    }

    /// Whether the body is a function of whole tensors.
    pub(crate) fn is_over_tensors(&self) -> bool {
        matches!(self, Body::Tensor(_) | Body::Dynamic(_))
    }

    /// Whether the body may be code of an interpreter.
    pub(crate) fn is_interpreted(&self) -> bool {
        matches!(self, Body::Dynamic(body) if body.is_interpreted)
    }

    /// The program of the body.
    pub(crate) fn program(&self) -> Option<&ProgramFn> {
        if let Body::Element(program) | Body::Cell(program) = self { program.as_ref() } else { None }
    }
}

/// A body created at run time.
#[derive(Clone)]
pub struct Dynamic {
    /// The closure.
    pub run: Arc<DynamicFn>,
    /// Whether it may be code of an interpreter, which synchronizes threads itself.
    pub is_interpreted: bool,
}
/// The function of a [`Dynamic`] body.
pub type DynamicFn = dyn for<'a> Fn(&Call<'a>) -> Result<Vec<Tensor>> + Send + Sync;

impl std::fmt::Debug for Dynamic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dynamic")
    }
}

/// A body over whole tensors.
pub type TensorFn = for<'a> fn(&Call<'a>) -> Result<Vec<Tensor>>;

/// The gradient.
#[derive(Clone, Debug)]
pub enum Backward {
    /// There is no gradient. Differentiation returns an error with this reason.
    None(Text),
    /// No gradient is needed, since the dtype of no output is differentiable (integers, booleans).
    NotNeeded,
    /// The vector-Jacobian product of an element body, as an op. It takes the cotangents of the returned outputs, then the
    /// inputs, and returns the gradients of the inputs in [`Derived::wrt`].
    Derived(Derived),
    /// The vector-Jacobian product of the op's program. It is generated on demand, so that derivatives of any order exist.
    Program(Gradients),
    /// A function over tensors.
    Formula(Formula),
    /// The gradients of the ops that a tensor body calls, which are recorded.
    Composite,
}

/// A compiled vector-Jacobian product.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The op that computes it.
    pub vjp: OpRef,
    /// For each output of `vjp`, the input of which it is the gradient.
    pub wrt: List<u8>,
    /// The pullbacks, by kind of call.
    pub gradients: Gradients,
}

/// A hand-written gradient, or the hand-written tangents that it is the transpose of.
#[derive(Clone, Debug)]
pub struct Formula {
    /// Whether `run` computes gradients or tangents.
    pub mode: Mode,
    /// Computes the gradients of the inputs that need one, or the tangents of all returned and mutated outputs.
    pub run: BackwardBody,
    /// Inputs that the formula uses.
    pub saved_inputs: List<u8>,
    /// Outputs that the formula uses.
    pub saved_outputs: List<u8>,
    /// Inputs declared without a gradient (`x: none`, or `_` as the tangent).
    pub without: List<u8>,
}

/// The function of a [`Formula`].
#[derive(Clone)]
pub enum BackwardBody {
    /// Compiled.
    Static(BackwardFn),
    /// Created at run time.
    Shared(Arc<DynamicBackwardFn>),
    /// Created from the text of a `backward` or `jvp` clause.
    Clause(Arc<DynamicBackwardFn>, Arc<str>),
}

/// A gradient as a function. It returns one entry for each flat input, `None` if no gradient is needed. A function of tangents
/// returns one entry for each output, `None` if the tangent is zero.
pub type BackwardFn = for<'a> fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>>;

/// A gradient as a closure, with the result of a [`BackwardFn`].
pub type DynamicBackwardFn = dyn for<'a> Fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>> + Send + Sync;

impl BackwardBody {
    /// The gradients or tangents for one call.
    pub(crate) fn call(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        match self {
            BackwardBody::Static(run) => run(call),
            BackwardBody::Shared(run) | BackwardBody::Clause(run, _) => run(call),
        }
    }
}

impl std::fmt::Debug for BackwardBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackwardBody")
    }
}

/// The location of an op's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Source file.
    pub file: Text,
    /// Line, from 1; 0 if it is unknown.
    pub line: u32,
}

/// A handle to an op. It stays valid after the op is unregistered.
#[derive(Clone, Debug)]
pub enum OpRef {
    /// Generated by `#[custom_op]`.
    Static(&'static OpDef),
    /// Created at run time.
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

/// What the arguments of an op's program are. The inputs of a row program are the inputs along the row. Its uniforms are the numbers
/// for a row, then positions in the row, then the `f64` attributes.
#[derive(Clone, Debug)]
pub struct ProgramArguments {
    /// The inputs of the op that are inputs of the program.
    pub inputs: Vec<usize>,
    /// The inputs of the op that are numbers for a row.
    pub numbers: Vec<usize>,
    /// The inputs of the op that are positions in the row.
    pub positions: Vec<usize>,
    /// The `f64` attributes.
    pub floats: Vec<usize>,
}

impl OpDef {
    /// The inputs, attributes and outputs, for the checks of the schema.
    pub fn schema(&self) -> Signature<'_> {
        Signature { inputs: &self.inputs, attrs: &self.attrs, outputs: &self.outputs, generics: &self.generics }
    }

    /// Whether tensors with this dtype rule can have a gradient.
    pub fn is_differentiable(&self, rule: DTypeRule) -> bool {
        self.schema().is_differentiable(rule)
    }

    /// The clauses `linear`, `symmetric` and `replaces`, as text.
    pub fn properties_text(&self) -> String {
        let (mut groups, mut clauses) = (Vec::new(), Vec::new());
        for property in self.properties.iter() {
            match property {
                Property::Linear(group) => {
                    let names: Vec<&str> = group.iter().map(|i| self.inputs[usize::from(*i)].name.as_ref()).collect();
                    groups.push(if let [one] = names[..] { one.into() } else { format!("({})", names.join(", ")) });
                }
                Property::Symmetric => clauses.push("symmetric".into()),
                Property::Replaces(text) => clauses.push(format!("replaces = {text}")),
            }
        }
        match &groups[..] {
            [] => {}
            [one] => clauses.insert(0, format!("linear = {one}")),
            several => clauses.insert(0, format!("linear = [{}]", several.join(", "))),
        }
        clauses.join(", ")
    }

    /// The fewest elements for a thread, if the definition tunes it.
    pub fn grain(&self, attrs: &[Attr]) -> Option<usize> {
        let is_grain = |a: &Attribute| a.kind.is_tuned() && a.name == "grain";
        match self.attrs.iter().zip(attrs).find(|(a, _)| is_grain(a)) {
            Some((_, Attr::Int(grain))) => usize::try_from(*grain).ok(),
            _ => None,
        }
    }

    /// Whether it returns a variable number of tensors: its only output is named `outs`.
    pub fn gives_list(&self) -> bool {
        matches!(self.outputs.as_ref(), [one] if one.name == "outs")
    }

    /// Whether an output may be an input, changed in place: a required input of the same dtype and dimensions that no other output
    /// changes.
    pub(crate) fn may_change(&self, output: usize, input: usize) -> bool {
        let (Some(own), Some(of)) = (self.outputs.get(output), self.inputs.get(input)) else { return false };
        let is_alike = match &self.shape {
            // All cells would change one without a batch.
            ShapeRule::Core(rule) => {
                let has_batch = rule.inputs[input].batch || rule.inputs.iter().all(|dims| !dims.batch);
                has_batch && rule.outputs[output] == rule.inputs[input]
            }
            _ => true,
        };
        let is_other = |(k, o): (usize, &Output)| k != output && o.role == Role::Mutates(input as u8);
        of.arity == Arity::One && of.dtype == own.dtype && is_alike && !self.outputs.iter().enumerate().any(is_other)
    }

    /// How many of the first `count` attributes are those of the body. `axis` and `keepdims` follow them.
    pub(crate) fn own_attrs(&self, count: usize) -> usize {
        self.axis.map_or(count, |axis| count.min(axis.attr.into()))
    }

    /// The arguments of the op's program.
    pub fn program_arguments(&self) -> ProgramArguments {
        let is_of_rows = matches!(self.shape, ShapeRule::Core(_));
        let is_along = |i: &usize| !is_of_rows || self.inputs[*i].core == Core::Slice;
        let is_number = |i: &usize| match self.inputs[*i].dtype {
            DTypeRule::Fixed(dtype) => dtype.is_differentiable(),
            rule => matches!(rule, DTypeRule::Generic(_)),
        };
        let (inputs, others): (Vec<usize>, Vec<usize>) = (0..self.inputs.len()).partition(is_along);
        let (numbers, positions) = others.into_iter().partition(is_number);
        let floats = (0..self.attrs.len()).filter(|k| self.attrs[*k].kind == AttrKind::Float).collect();
        ProgramArguments { inputs, numbers, positions, floats }
    }

    /// The names of the inputs, uniforms and outputs of the op's program.
    pub fn program_names(&self) -> [Vec<&str>; 3] {
        let ProgramArguments { inputs, numbers, positions, floats } = self.program_arguments();
        let input = |i: &usize| self.inputs[*i].name.as_ref();
        let attrs = floats.iter().map(|k| self.attrs[*k].name.as_ref());
        [
            inputs.iter().map(input).collect(),
            numbers.iter().chain(&positions).map(input).chain(attrs).collect(),
            self.outputs.iter().map(|o| o.name.as_ref()).collect(),
        ]
    }

    /// The outputs whose cotangents a [`Derived`] gradient takes.
    pub fn cotangents(&self) -> impl Iterator<Item = usize> + '_ {
        let takes_part = |o: &Output| o.role != Role::Saved && self.is_differentiable(o.dtype);
        (0..self.outputs.len()).filter(move |k| takes_part(&self.outputs[*k]))
    }
}
