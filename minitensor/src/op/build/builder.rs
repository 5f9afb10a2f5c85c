//! [`CustomOpBuilder`]: creates ops from closures, or from a program.

use std::borrow::Cow;
use std::sync::Arc;

use minitensor_kernels::program::{Program, ValueType};
use minitensor_schema::check;
use minitensor_schema::name::{check_op, check_word};

use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::clause;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::record;
use crate::op::CustomOp;
use crate::op::call::Call;
use crate::op::def::*;
use crate::op::kernel::{KernelTable, Kernels};
use crate::op::program::ProgramFn;
use crate::op::variants::{Choice, Variants, Write};
use crate::plugin::abi::most;
use crate::tensor::Tensor;
use crate::tuning;

type Forward = Arc<DynamicFn>;
type Validate = Arc<dyn Fn(&[&Tensor]) -> Result<()> + Send + Sync>;

/// Creates an op at run time, from closures or [from a program](CustomOpBuilder::from_program).
///
/// ```
/// use minitensor::{CustomOpBuilder, Tensor, registry};
///
/// let op = CustomOpBuilder::new("identity_of_two", 2)
///     .forward(|inputs| inputs[0].copied())
///     .backward(|call| Ok(vec![Some(call.cotangent(0)?), Some(call.cotangent(0)?)]))
///     .build()?;
/// registry::register(op)?;
/// # Ok::<(), minitensor::Error>(())
/// ```
pub struct CustomOpBuilder {
    pub(super) op: OpDef,
    forward: Option<Forward>,
    validate: Option<Validate>,
    pub(super) program: Option<Made>,
    gradient: Option<Gradient>,
    shape: Option<String>,
    properties: String,
}

/// Programs as the body of an op.
pub(super) struct Made {
    /// The first program, and the call that it is for.
    pub first: (Choice, Program),
    /// Writes the others; `None` if there is one program for all calls.
    pub write: Option<Box<Write>>,
}

enum Gradient {
    Closure(Mode, Arc<DynamicBackwardFn>),
    Formula(Mode, String),
}

impl CustomOpBuilder {
    /// An op with `inputs` tensor inputs. Up to three are named `x`, `y` and `z`; more are named `x0`, `x1`, ….
    #[track_caller]
    pub fn new(name: impl Into<String>, inputs: usize) -> CustomOpBuilder {
        let names = |i: usize| if inputs <= 3 { ["x", "y", "z"][i].to_string() } else { format!("x{i}") };
        let caller = std::panic::Location::caller();
        CustomOpBuilder {
            op: OpDef {
                name: Cow::Owned(name.into()),
                aliases: Cow::Borrowed(&[]),
                doc: Cow::Borrowed(""),
                inputs: (0..inputs).map(|i| input(names(i))).collect(),
                attrs: Cow::Borrowed(&[]),
                outputs: Cow::Owned(vec![Output {
                    name: Cow::Borrowed("out"),
                    dtype: DTypeRule::Any,
                    role: Role::Returned,
                    core: Core::Scalar,
                }]),
                generics: Cow::Borrowed(&[]),
                shape: ShapeRule::Inferred,
                predicates: Cow::Borrowed(&[]),
                axis: None,
                combine: None,
                properties: Cow::Borrowed(&[]),
                body: Body::Tensor(|_| Err(Error::runtime("the op has no body"))),
                backward: Backward::Composite,
                kernels: KernelTable::new(),
                since: 0,
                location: Location { file: Cow::Borrowed(caller.file()), line: caller.line() },
            },
            forward: None,
            validate: None,
            program: None,
            gradient: None,
            shape: None,
            properties: String::new(),
        }
    }

    /// Writes the first program: the one for `choice`, or for the defaults of attributes and no optional inputs.
    pub(super) fn first(
        &mut self,
        choice: Option<Choice>,
        write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static,
    ) -> Result<Made> {
        if let Some(text) = self.shape.take() {
            clause::shape(&self.op, &text)?.apply_to(&mut self.op);
        }
        let op = &self.op;
        if !op.inputs.is_empty() && op.inputs.iter().all(|input| input.arity == Arity::Optional) {
            return Err(Error::value(format!("op '{}': expected at least one input that is not optional", op.name)));
        }
        let choice = choice.unwrap_or_else(|| Choice::example(op));
        let program = record::apart(|| write(&choice.attrs, &choice.given)).and_then(|program| {
            program.verify().map_err(|e| Error::value(e.to_string()))?;
            Ok(program)
        });
        let program = program.map_err(|e| e.context(format!("op '{}'", op.name)))?;
        let has_choice = Choice::exists(op);
        Ok(Made { first: (choice, program), write: has_choice.then(|| Box::new(write) as Box<Write>) })
    }

    /// The computation of one output from the inputs.
    pub fn forward(self, f: impl Fn(&[&Tensor]) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        self.body(move |call| {
            let inputs: Vec<&Tensor> = call.inputs().iter().copied().flatten().collect();
            f(&inputs).map(|t| vec![t])
        })
    }

    /// The computation of any number of outputs from inputs and attributes.
    pub fn body(mut self, f: impl for<'a> Fn(&Call<'a>) -> Result<Vec<Tensor>> + Send + Sync + 'static) -> Self {
        self.forward = Some(Arc::new(f));
        self
    }

    /// The gradient: one entry for each input, from cotangents, inputs and outputs, by position. Without it, the gradient is
    /// derived from the ops that the forward closure calls.
    pub fn backward(
        mut self,
        f: impl for<'a> Fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Self {
        self.gradient = Some(Gradient::Closure(Mode::Reverse, Arc::new(f)));
        self
    }

    /// The gradient as a formula, in the syntax of `#[custom_op(backward = …)]`. The inputs and outputs that it uses are saved.
    /// It can be differentiated again, since it consists of ops. `none` declares that there is no gradient.
    ///
    /// ```
    /// use minitensor::{CustomOpBuilder, op::OpName};
    ///
    /// static SIN: OpName = OpName::new("sin");
    /// let op = CustomOpBuilder::new("my_sin", 1)
    ///     .forward(|inputs| SIN.call(&[inputs[0].into()], &[]))
    ///     .formula("|d| { x: d * cos(x) }")
    ///     .build()?;
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn formula(self, text: impl Into<String>) -> Self {
        self.formula_in(Mode::Reverse, text)
    }

    /// The tangents of the outputs as a formula in the tangents of the inputs, in the syntax of `#[custom_op(jvp = …)]`. The gradient
    /// is its transpose.
    ///
    /// ```
    /// use minitensor::{CustomOpBuilder, op::OpName};
    ///
    /// static SIN: OpName = OpName::new("sin");
    /// let op = CustomOpBuilder::new("my_sin", 1)
    ///     .forward(|inputs| SIN.call(&[inputs[0].into()], &[]))
    ///     .jvp_formula("|dx| { out: dx * cos(x) }")
    ///     .build()?;
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn jvp_formula(self, text: impl Into<String>) -> Self {
        self.formula_in(Mode::Forward, text)
    }

    pub(super) fn formula_in(mut self, mode: Mode, text: impl Into<String>) -> Self {
        self.gradient = Some(Gradient::Formula(mode, text.into()));
        self
    }

    /// The tangents of the outputs, from the [tangents](BackwardCall::tangent) of the inputs: one entry for each output, `None` if it is
    /// zero. The closure calls ops on the tangents, in which it is linear. The gradient is its transpose.
    pub fn jvp(
        mut self,
        f: impl for<'a> Fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Self {
        self.gradient = Some(Gradient::Closure(Mode::Forward, Arc::new(f)));
        self
    }

    /// The dimensions of inputs and outputs, and the conditions on them, in the syntax of `#[custom_op(shape = …)]`. The inputs
    /// are checked before the computation, and the outputs after it. An output marked `[save]` is only for the gradient.
    ///
    /// ```
    /// use minitensor::{CustomOp, CustomOpBuilder, Tensor};
    ///
    /// let op = CustomOpBuilder::new("first_half", 1)
    ///     .forward(|inputs| inputs[0].slice_view(-1, 0, inputs[0].shape()[inputs[0].ndim() - 1] / 2, 1))
    ///     .shape("(x: [.., n]) -> [.., n / 2] where n > 0")
    ///     .build()?;
    /// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [4])?;
    /// assert_eq!(op.forward(&[&x])?.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn shape(mut self, text: impl Into<String>) -> Self {
        self.shape = Some(text.into());
        self
    }

    /// States identities that the results satisfy, in the syntax of the clauses `linear`, `symmetric` and `replaces`.
    ///
    /// ```
    /// use minitensor::{CustomOpBuilder, op::OpName};
    ///
    /// static REVERSED: OpName = OpName::new("flip");
    /// let op = CustomOpBuilder::new("reversed", 1)
    ///     .forward(|inputs| REVERSED.call(&[inputs[0].into()], &[]))
    ///     .properties("linear = x")
    ///     .build()?;
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn properties(mut self, text: impl Into<String>) -> Self {
        self.properties = text.into();
        self
    }

    /// Declares that the op has no gradient. Differentiation returns an error with this reason.
    pub fn no_backward(mut self, why: impl Into<String>) -> Self {
        (self.op.backward, self.gradient) = (Backward::None(Cow::Owned(why.into())), None);
        self
    }

    /// A check of the inputs before the computation.
    pub fn validate(mut self, f: impl Fn(&[&Tensor]) -> Result<()> + Send + Sync + 'static) -> Self {
        self.validate = Some(Arc::new(f));
        self
    }

    /// The documentation, in Markdown.
    pub fn doc(mut self, doc: impl Into<String>) -> Self {
        self.op.doc = Cow::Owned(doc.into());
        self
    }

    /// The names of the inputs.
    pub fn inputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.op.inputs = names.into_iter().map(|n| input(n.into())).collect();
        self
    }

    /// Declares that the last input takes any number of tensors.
    pub fn variadic(mut self) -> Self {
        if let Some(last) = self.op.inputs.to_mut().last_mut() {
            last.arity = Arity::Variadic;
        }
        self
    }

    /// Declares that the input at `index` may be omitted.
    pub fn optional(mut self, index: usize) -> Self {
        self.op.inputs.to_mut()[index].arity = Arity::Optional;
        self
    }

    /// Adds an attribute. Without a default it is required.
    pub fn attr(mut self, name: impl Into<String>, kind: AttrKind, default: Option<Attr>) -> Self {
        let optional = default == Some(Attr::None);
        self.op.attrs.to_mut().push(Attribute { name: Cow::Owned(name.into()), kind, optional, default });
        self
    }

    /// Conditions on attributes, such as `b >= 0.0`, as in the clause `where`.
    pub fn conditions(self, text: &str) -> Self {
        self.shape(format!("where {text}"))
    }

    /// Sets the default of an attribute, which is then not required.
    pub fn default(mut self, attr: &str, value: impl Into<Attr>) -> Self {
        if let Some(attr) = self.op.attrs.to_mut().iter_mut().find(|a| a.name == attr) {
            attr.default = Some(value.into());
        }
        self
    }

    /// Adds an attribute that only changes the speed. If a caller does not pass it, the fastest of these positive integers is
    /// measured, once for each [class](crate::tuning) of calls.
    pub fn tune(mut self, name: impl Into<String>, candidates: &[i64]) -> Self {
        let kind = AttrKind::Tuned(tuning::candidates(candidates));
        let (name, default) = (Cow::Owned(name.into()), Some(Attr::None));
        self.op.attrs.to_mut().push(Attribute { name, kind, optional: true, default });
        self
    }

    /// The names of the outputs.
    pub fn outputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let output = |name: S| Output {
            name: Cow::Owned(name.into()),
            dtype: DTypeRule::Any,
            role: Role::Returned,
            core: Core::Scalar,
        };
        self.op.outputs = names.into_iter().map(output).collect();
        self
    }

    /// The location of the definition, for messages.
    pub fn location(mut self, file: impl Into<String>, line: u32) -> Self {
        self.op.location = Location { file: Cow::Owned(file.into()), line };
        self
    }

    /// Creates the op. An error if it is incomplete, or if its names are not valid in Python.
    pub fn build(self) -> Result<Arc<dyn CustomOp>> {
        check_op(&self.op.name)?;
        let counts =
            [("inputs", self.op.inputs.len()), ("attributes", self.op.attrs.len()), ("outputs", self.op.outputs.len())];
        if let Some((what, count)) = counts.iter().find(|(_, count)| *count > most::PARTS) {
            let name = &self.op.name;
            return Err(Error::value(format!(
                "op '{name}' has {count} {what}, expected at most {}; use a list",
                most::PARTS
            )));
        }
        let inputs = self.op.inputs.iter().map(|i| (&i.name, "an input"));
        let outputs = self.op.outputs.iter().map(|o| (&o.name, "an output"));
        for (name, what) in inputs.chain(self.op.attrs.iter().map(|a| (&a.name, "an attribute"))).chain(outputs) {
            check_word(name, what).map_err(|e| Error::from(e).context(format!("op '{}'", self.op.name)))?;
        }
        if let Some(problem) = check::signature(&self.op.schema()).first() {
            return Err(Error::from(problem.sentence.clone()).context(format!("op '{}'", self.op.name)));
        }
        let op = self.finish()?;
        op.check_defaults()?;
        Ok(Arc::new(op))
    }

    pub(crate) fn finish(mut self) -> Result<OpRef> {
        if let Some(text) = &self.shape {
            clause::shape(&self.op, text)?.apply_to(&mut self.op);
        }
        self.op.properties = clause::properties(&self.op, &self.properties)?;
        match self.gradient.take() {
            Some(Gradient::Closure(mode, run)) => self.op.backward = looking_at_all(&self.op, mode, run),
            Some(Gradient::Formula(mode, text)) => self.op.backward = clause::formula(&self.op, mode, &text)?,
            None => {}
        }
        self.op.body = match (self.forward, self.validate, self.program) {
            (None, _, Some(Made { first, write })) => match self.op.shape {
                ShapeRule::Core(_) => {
                    let rows = Arc::new(Variants::new(&self.op, first, write)?);
                    self.op.kernels = KernelTable::cpu(Kernels::Rows(rows.clone()));
                    Body::Cell(Some(ProgramFn::Rows(rows)))
                }
                _ => {
                    let elements = Arc::new(Variants::new(&self.op, first, write)?);
                    self.op.kernels = KernelTable::cpu(Kernels::Programs(elements.clone()));
                    Body::Element(Some(ProgramFn::Elements(elements)))
                }
            },
            (None, ..) => {
                let name = &self.op.name;
                return Err(Error::value(format!("op '{name}' has no forward; set it with .forward(…)")));
            }
            (Some(forward), None, _) => Body::Dynamic(Dynamic { run: forward, is_interpreted: true }),
            (Some(forward), Some(validate), _) => {
                let run = Arc::new(move |call: &Call<'_>| {
                    validate(&call.inputs().iter().copied().flatten().collect::<Vec<_>>())?;
                    forward(call)
                });
                Body::Dynamic(Dynamic { run, is_interpreted: true })
            }
        };
        Ok(OpRef::Shared(Arc::new(self.op)))
    }
}

/// The gradient of a closure. All inputs and outputs are saved, since the closure may use any of them.
fn looking_at_all(op: &OpDef, mode: Mode, run: Arc<DynamicBackwardFn>) -> Backward {
    let all = |count: usize| (0..count).map(|i| i as u8).collect();
    Backward::Formula(Formula {
        mode,
        run: BackwardBody::Shared(run),
        saved_inputs: all(op.inputs.len()),
        saved_outputs: all(op.outputs.len()),
        without: Cow::Borrowed(&[]),
    })
}

/// The dtype of a value of a program.
pub(super) fn dtype_of(kind: ValueType) -> DTypeRule {
    match kind {
        ValueType::Number => DTypeRule::Generic(0),
        ValueType::Mask => DTypeRule::Fixed(DType::Bool),
    }
}

fn input(name: String) -> Input {
    Input { name: Cow::Owned(name), arity: Arity::One, dtype: DTypeRule::Any, mutated: false, core: Core::Scalar }
}
