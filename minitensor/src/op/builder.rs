//! [`CustomOpBuilder`]: an op from closures, or from a program.

use std::borrow::Cow;
use std::sync::Arc;

use minitensor_kernels::program::{Kind, Plan, Program};
use minitensor_schema::check;
use minitensor_schema::name::{check_op, check_word};

use super::call::Call;
use super::custom_op::CustomOp;
use super::def::*;
use super::gradients::Gradients;
use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::clause;
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::plugin::abi::most;
use crate::tensor::Tensor;

type Forward = Arc<DynamicFn>;
type Validate = Arc<dyn Fn(&[&Tensor]) -> Result<()> + Send + Sync>;

/// Makes an op at run time: from closures, or [from a program](CustomOpBuilder::from_program).
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
    op: OpDef,
    forward: Option<Forward>,
    validate: Option<Validate>,
    program: Option<Program>,
    gradient: Option<Gradient>,
    shape: Option<String>,
}

enum Gradient {
    Closure(Arc<DynamicBackwardFn>),
    Formula(String),
}

impl CustomOpBuilder {
    /// An op of that name that takes `inputs` tensors, called `x`, `y`, `z`, … or, past three, `x0`, `x1`, ….
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
                shape: ShapeRule::Traced,
                predicates: Cow::Borrowed(&[]),
                axis: None,
                body: Body::Tensor(|_| Err(Error::runtime("the op has no body"))),
                backward: Backward::Traced,
                since: 0,
                location: Location { file: Cow::Borrowed(caller.file()), line: caller.line() },
            },
            forward: None,
            validate: None,
            program: None,
            gradient: None,
            shape: None,
        }
    }

    /// An element op that a program computes: its inputs are the program's, its attributes the program's uniforms, its
    /// outputs numbers or truth values. They broadcast, promote and have dtypes as those of an op written in Rust; it takes every
    /// dtype that has all the functions of the program, and has derivatives of any order.
    ///
    /// ```
    /// use minitensor::kernels::{Field, program::Program};
    /// use minitensor::{CustomOpBuilder, Tensor, registry};
    ///
    /// let body = Program::write(&["x", "y"], &["scale"], |v, u| vec![("out".into(), (v[0] * v[1].exp() * u[0]).into())]);
    /// registry::register(CustomOpBuilder::from_program("scaled_exp", body)?.build()?)?;
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// What is no program, one that gathers rows, and one whose functions no dtype has all of.
    #[track_caller]
    pub fn from_program(name: impl Into<String>, program: Program) -> Result<CustomOpBuilder> {
        let mut builder = CustomOpBuilder::new(name, 0);
        let wrong = |what: String| Error::value(format!("op '{}': {what}", builder.op.name));
        program.verify().map_err(|e| wrong(e.to_string()))?;
        let dtypes = crate::backend::cpu::programs::dtypes(&program);
        if dtypes == DTypeSet::of(&[]) {
            return Err(wrong(format!("no dtype has all functions of its program: {program}")));
        }
        let output = |(name, id): &(String, minitensor_kernels::program::Id)| Output {
            name: Cow::Owned(name.clone()),
            dtype: match program.nodes()[id.at()].kind() {
                Kind::Number => DTypeRule::Generic(0),
                Kind::Mask => DTypeRule::Fixed(DType::Bool),
            },
            role: Role::Returned,
            core: Core::Scalar,
        };
        let op = &mut builder.op;
        op.inputs = program.inputs().iter().map(|name| input(name.clone())).collect();
        op.inputs.to_mut().iter_mut().for_each(|input| input.dtype = DTypeRule::Generic(0));
        op.outputs = program.outputs().iter().map(output).collect();
        op.generics = Cow::Owned(vec![Generic { name: Cow::Borrowed("T"), dtypes }]);
        op.shape = ShapeRule::Broadcast;
        let gives_numbers = op.outputs.iter().any(|output| output.dtype == DTypeRule::Generic(0));
        op.backward = if gives_numbers { Backward::Program(Gradients::new()) } else { Backward::NotNeeded };
        let uniforms = program.uniforms().to_vec();
        let builder = CustomOpBuilder { program: Some(program), ..builder };
        Ok(uniforms.into_iter().fold(builder, |builder, name| builder.attr(name, AttrKind::Float, None)))
    }

    /// The dtypes that an op made from a program takes, of those that it can.
    pub fn dtypes(mut self, dtypes: DTypeSet) -> Self {
        self.op.generics.to_mut().iter_mut().for_each(|g| g.dtypes = g.dtypes.intersection(dtypes));
        self
    }

    /// The input at `index` of an op made from a program holds truth values. The program may ask nothing else of it than whether it
    /// is [truthy](minitensor_kernels::program::Primitive::Truthy).
    pub fn mask(mut self, index: usize) -> Self {
        self.op.inputs.to_mut()[index].dtype = DTypeRule::Fixed(DType::Bool);
        self
    }

    /// The computation, from the inputs.
    pub fn forward(self, f: impl Fn(&[&Tensor]) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        self.body(move |call| {
            let inputs: Vec<&Tensor> = call.inputs().iter().copied().flatten().collect();
            f(&inputs).map(|t| vec![t])
        })
    }

    /// The computation, from inputs and attributes, to any number of outputs.
    pub fn body(mut self, f: impl for<'a> Fn(&Call<'a>) -> Result<Vec<Tensor>> + Send + Sync + 'static) -> Self {
        self.forward = Some(Arc::new(f));
        self
    }

    /// The gradient: one entry for each input, from cotangents, inputs and outputs, by position. Without one, the gradient
    /// follows from the ops that the forward closure is made of.
    pub fn backward(
        mut self,
        f: impl for<'a> Fn(&BackwardCall<'a>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Self {
        self.gradient = Some(Gradient::Closure(Arc::new(f)));
        self
    }

    /// The gradient as a formula, in the words that `#[custom_op(backward = …)]` takes: what it mentions is saved, and it can be
    /// differentiated again, since it is made of ops. `none` says that there is none.
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
    pub fn formula(mut self, text: impl Into<String>) -> Self {
        self.gradient = Some(Gradient::Formula(text.into()));
        self
    }

    /// The dimensions of inputs and outputs, and what must hold of them, in the words that `#[custom_op(shape = …)]` takes. They
    /// are checked before the computation, and what it gives after it. An output with `[save]` before it is for the gradient only.
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

    /// Differentiating raises, with this reason.
    pub fn no_backward(mut self, why: impl Into<String>) -> Self {
        (self.op.backward, self.gradient) = (Backward::None(Cow::Owned(why.into())), None);
        self
    }

    /// A check of the inputs before the computation.
    pub fn validate(mut self, f: impl Fn(&[&Tensor]) -> Result<()> + Send + Sync + 'static) -> Self {
        self.validate = Some(Arc::new(f));
        self
    }

    /// What it does, in Markdown.
    pub fn doc(mut self, doc: impl Into<String>) -> Self {
        self.op.doc = Cow::Owned(doc.into());
        self
    }

    /// The names of the inputs.
    pub fn inputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.op.inputs = names.into_iter().map(|n| input(n.into())).collect();
        self
    }

    /// The last input takes any number of tensors.
    pub fn variadic(mut self) -> Self {
        if let Some(last) = self.op.inputs.to_mut().last_mut() {
            last.arity = Arity::Variadic;
        }
        self
    }

    /// The input at `index` may be left out.
    pub fn optional(mut self, index: usize) -> Self {
        self.op.inputs.to_mut()[index].arity = Arity::Optional;
        self
    }

    /// One more attribute; without a default it is required.
    pub fn attr(mut self, name: impl Into<String>, kind: AttrKind, default: Option<Attr>) -> Self {
        let optional = default == Some(Attr::None);
        self.op.attrs.to_mut().push(Attribute { name: Cow::Owned(name.into()), kind, optional, default });
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

    /// Where it is defined, for messages.
    pub fn location(mut self, file: impl Into<String>, line: u32) -> Self {
        self.op.location = Location { file: Cow::Owned(file.into()), line };
        self
    }

    /// The op, if it is complete, and Python can spell its names and call it by them.
    pub fn build(self) -> Result<Arc<dyn CustomOp>> {
        check_op(&self.op.name)?;
        let counts =
            [("inputs", self.op.inputs.len()), ("attributes", self.op.attrs.len()), ("outputs", self.op.outputs.len())];
        if let Some((what, count)) = counts.iter().find(|(_, count)| *count > most::PARTS) {
            let name = &self.op.name;
            return Err(Error::value(format!("op '{name}' has {count} {what}; {} is the limit, use a list", most::PARTS)));
        }
        let inputs = self.op.inputs.iter().map(|i| (&i.name, "an input"));
        let outputs = self.op.outputs.iter().map(|o| (&o.name, "an output"));
        for (name, what) in inputs.chain(self.op.attrs.iter().map(|a| (&a.name, "an attribute"))).chain(outputs) {
            check_word(name, what).map_err(|e| Error::from(e).context(format!("op '{}'", self.op.name)))?;
        }
        if let Some(problem) = check::signature(&self.op.schema()).first() {
            return Err(Error::from(problem.sentence.clone()).context(format!("op '{}'", self.op.name)));
        }
        Ok(Arc::new(self.finish()?))
    }

    pub(crate) fn finish(mut self) -> Result<OpRef> {
        if let Some(text) = &self.shape {
            clause::shape(&self.op, text)?.apply_to(&mut self.op);
        }
        match self.gradient.take() {
            Some(Gradient::Closure(run)) => self.op.backward = looking_at_all(&self.op, run),
            Some(Gradient::Formula(text)) => self.op.backward = clause::backward(&self.op, &text)?,
            None => {}
        }
        self.op.body = match (self.forward, self.validate, self.program) {
            (None, _, Some(program)) => {
                let is_mask = |i: &usize| self.op.inputs[*i].dtype == DTypeRule::Fixed(DType::Bool);
                let masks: Vec<usize> = (0..self.op.inputs.len()).filter(is_mask).collect();
                let plan = Plan::new(program, &masks);
                Body::Program(Arc::new(plan.map_err(|e| Error::value(format!("op '{}': {e}", self.op.name)))?))
            }
            (None, ..) => {
                let name = &self.op.name;
                return Err(Error::value(format!("op '{name}' has no forward; give it one with .forward(…)")));
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

/// A gradient as a closure, which may look at everything.
fn looking_at_all(op: &OpDef, run: Arc<DynamicBackwardFn>) -> Backward {
    let all = |count: usize| (0..count).map(|i| i as u8).collect();
    Backward::Formula(Formula {
        run: BackwardBody::Shared(run),
        saved_inputs: all(op.inputs.len()),
        saved_outputs: all(op.outputs.len()),
        without: Cow::Borrowed(&[]),
    })
}

fn input(name: String) -> Input {
    Input { name: Cow::Owned(name), arity: Arity::One, dtype: DTypeRule::Any, mutated: false, core: Core::Scalar }
}
