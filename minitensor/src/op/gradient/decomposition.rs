//! Gradients of any order, from the program of a body. The program is run on recorded tensors, with one op for each step.

use std::sync::{Arc, LazyLock};

use minitensor_kernels::program::{Id, Instruction, Primitive, Program, Scalar, Symbol};
use minitensor_kernels::row::{Reduction, RowFunction};
use minitensor_kernels::{Const, Num};

use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::CustomOpBuilder;
use crate::op::by_name::names;
use crate::op::call::Value;
use crate::op::def::{Arity, Body, Core, DTypeRule, OpDef, OpRef};
use crate::op::{OpName, dispatch_one, registry};
use crate::tensor::{Device, DeviceKind, Tensor};
use minitensor_kernels::Kept;

/// The gradient of an op whose row body has a program. It consists of recorded ops, so it has a gradient itself.
pub fn gradient(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let op = call.op();
    let mut inputs: Vec<Option<Tensor>> =
        (0..call.num_inputs()).map(|i| call.optional_input(i)).collect::<Result<_>>()?;
    let attrs = &call.attrs()[..op.attrs.len().min(call.attrs().len())];
    let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| is_float(op.inputs[*i].dtype) && call.needs(*i)).collect();
    let vjp = op.backward(attrs, |i| inputs[i].is_some(), &wrt);
    let vjp = vjp.map_err(|e| e.context(format!("op '{}' has no further derivative", op.name)))?;
    let vjp = vjp.ok_or_else(|| Error::runtime(format!("op '{}' has no program", op.name)))?;
    let gives: Vec<bool> = op.cotangents().map(|k| op.outputs[k].core == Core::Slice).collect();
    let mut cotangents: Vec<Tensor> = op.cotangents().map(|k| call.cotangent(k)).collect::<Result<_>>()?;
    let dtype = cotangents.iter().map(Tensor::dtype).find(|d| d.is_differentiable()).unwrap_or(DType::F64).compute();
    let device = call.device();
    // Half floats are a storage format. They are computed in float32.
    let widened = |t: &Tensor| match t.dtype() {
        DType::F16 | DType::Bf16 => crate::op::by_name::names::ASTYPE.call(&[t.into(), dtype.into()], &[]),
        _ => Ok(t.clone()),
    };
    for t in cotangents.iter_mut().chain(inputs.iter_mut().flatten()) {
        *t = widened(t)?;
    }
    // The cotangent of an output that was not computed has a placeholder dtype.
    for cotangent in cotangents.iter_mut().filter(|t| !t.dtype().is_differentiable()) {
        *cotangent = Tensor::from_number(Const::Int(0), dtype, device)?;
    }
    let arguments = Arguments::of(op, &gives, &cotangents, &inputs, attrs, (dtype, device))?;
    let results = arguments.run(&vjp.program)?;
    let mut gradients = vec![None; call.num_inputs()];
    for (i, gradient) in wrt.into_iter().zip(results) {
        let is_one_per_row = op.inputs[i].core != Core::Slice && gradient.ndim() > 0;
        gradients[i] = Some(match is_one_per_row {
            true => op_named("squeeze").call(&[(&gradient).into(), (-1i64).into()], &[])?,
            false => gradient,
        });
    }
    Ok(gradients)
}

/// The outputs of a program of an op's body, for these inputs.
pub(crate) fn run(
    op: &OpDef,
    program: &Program,
    inputs: &[Option<Tensor>],
    attrs: &[Attr],
    at: (DType, Device),
) -> Result<Vec<Tensor>> {
    let arguments = match op.body {
        Body::Cell(_) => Arguments::of(op, &[], &[], inputs, attrs, at)?,
        _ => Arguments::of_elements(op, inputs, attrs, at)?,
    };
    arguments.run(program)
}

/// Creates the static ops of this module, which are otherwise created at their first use.
pub(crate) fn make_ready() {
    LazyLock::force(&CHAIN);
}

/// A derivative times a tangent. It is 0 if the tangent is 0, even if the derivative is infinite.
static CHAIN: LazyLock<OpRef> = LazyLock::new(|| {
    let body = Program::write(&["derivative", "tangent"], &[], |x, _| vec![("out".into(), x[0].chain(x[1]).into())]);
    let op = CustomOpBuilder::from_program("chain", body).and_then(CustomOpBuilder::finish);
    op.expect("it is a program of numbers")
});

/// A function of whole rows as a row op.
fn row_function(function: &RowFunction) -> Result<OpRef> {
    static KNOWN: Kept<RowFunction, OpRef> = Kept::new();
    if let Some(op) = KNOWN.find(|known| known == function) {
        return Ok(OpRef::clone(op));
    }
    let names: Vec<String> = (0..function.arity()).map(|k| format!("x{k}")).collect();
    let body = Program::write(&names.iter().map(String::as_str).collect::<Vec<_>>(), &[], |x, _| {
        let y = Symbol::apply_row_function(function, x).expect("symbols have all functions");
        vec![("out".into(), y.into())]
    });
    let op = CustomOpBuilder::from_row_program(function.name(), body, None)?.finish()?;
    KNOWN.keep(function.clone(), Arc::new(op.clone()));
    Ok(op)
}

fn is_float(rule: DTypeRule) -> bool {
    match rule {
        DTypeRule::Fixed(dtype) => dtype.is_differentiable(),
        rule => matches!(rule, DTypeRule::Generic(_)),
    }
}

fn op_named(name: &'static str) -> OpName {
    OpName::new(name)
}

/// The `f64` attributes, as tensors. One that is not given is NaN.
fn floats(op: &OpDef, attrs: &[Attr], (dtype, device): (DType, Device)) -> Result<Vec<Tensor>> {
    let number = |value: &Attr| if let Attr::Float(v) = value { *v } else { f64::NAN };
    let floats = op.attrs.iter().zip(attrs).filter(|(attr, _)| attr.kind == AttrKind::Float);
    floats.map(|(_, value)| Tensor::from_number(Const::Float(number(value)), dtype, device)).collect()
}

/// The arguments of a program: tensors with the row as their last axis. That axis has size 1 if there is one number per row.
struct Arguments {
    inputs: Vec<Tensor>,
    uniforms: Vec<Tensor>,
    dtype: DType,
    device: Device,
    /// The length of a row.
    n: usize,
}

/// There are no ops of bits.
fn of_bits() -> Error {
    Error::runtime("further derivatives of a row op that takes positions and computes with bits are not available")
}

impl Arguments {
    fn of(
        op: &OpDef,
        gives: &[bool],
        cotangents: &[Tensor],
        inputs: &[Option<Tensor>],
        attrs: &[Attr],
        (dtype, device): (DType, Device),
    ) -> Result<Arguments> {
        let number = |value: f64| Tensor::from_number(Const::Float(value), dtype, device);
        let lifted = |t: &Tensor| op_named("unsqueeze").call(&[t.into(), (-1i64).into()], &[]);
        let (mut rows, mut uniforms) = (Vec::new(), Vec::new());
        for (cotangent, gives) in cotangents.iter().zip(gives) {
            match gives {
                true => rows.push(cotangent.clone()),
                false => uniforms.push(lifted(cotangent)?),
            }
        }
        let mut positions = Vec::new();
        for (input, t) in op.inputs.iter().zip(inputs) {
            match (t, input.core) {
                // The program never reads an absent input.
                (None, Core::Slice) => rows.push(number(0.0)?),
                (None, _) => uniforms.push(number(0.0)?),
                (Some(t), Core::Slice) => rows.push(t.clone()),
                (Some(t), _) if is_float(input.dtype) => uniforms.push(lifted(t)?),
                (Some(t), _) => positions.push(lifted(&t.detach().cast(dtype)?)?),
            }
        }
        uniforms.extend(positions);
        uniforms.extend(floats(op, attrs, (dtype, device))?);
        let of_row = |input: &crate::op::def::Input| input.core == Core::Slice && input.arity == Arity::One;
        let row = op.inputs.iter().zip(inputs).find_map(|(input, t)| t.as_ref().filter(|_| of_row(input)));
        let n = row.and_then(|t| t.shape().last().copied()).unwrap_or(1);
        Ok(Arguments { inputs: rows, uniforms, dtype, device, n })
    }

    fn of_elements(
        op: &OpDef,
        inputs: &[Option<Tensor>],
        attrs: &[Attr],
        (dtype, device): (DType, Device),
    ) -> Result<Arguments> {
        let number = |t: &Option<Tensor>| match t {
            // The program never reads an absent input.
            None => Tensor::from_number(Const::Int(0), dtype, device),
            Some(t) if t.dtype() != dtype => t.cast(dtype),
            Some(t) => Ok(t.clone()),
        };
        let inputs = inputs.iter().map(number).collect::<Result<_>>()?;
        Ok(Arguments { inputs, uniforms: floats(op, attrs, (dtype, device))?, dtype, device, n: 1 })
    }

    fn run(&self, program: &Program) -> Result<Vec<Tensor>> {
        let mut values: Vec<Tensor> = Vec::with_capacity(program.instructions().len());
        for instruction in program.instructions() {
            let value = self.step(instruction, &values)?;
            values.push(value);
        }
        Ok(program.outputs().iter().map(|(_, id)| values[id.at()].clone()).collect())
    }

    fn step(&self, instruction: &Instruction, before: &[Tensor]) -> Result<Tensor> {
        let at = |id: &Id| Value::from(&before[id.at()]);
        let number = |value: Const| Tensor::from_number(value, self.dtype, self.device);
        let op =
            |name: &'static str, x: &[&Id]| op_named(name).call(&x.iter().map(|id| at(id)).collect::<Vec<_>>(), &[]);
        Ok(match instruction {
            Instruction::Input(k) => self.inputs[*k as usize].clone(),
            Instruction::Uniform(k) => self.uniforms[*k as usize].clone(),
            Instruction::Constant(value) => number(*value)?,
            Instruction::Count => number(Const::Float(self.n as f64))?,
            Instruction::Epsilon => {
                number(Const::Float(if self.dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }))?
            }
            Instruction::Bits(_) => return Err(of_bits()),
            Instruction::Truth(value) => Tensor::from_number(Const::Bool(*value), DType::Bool, self.device)?,
            Instruction::Position => {
                let positions: Vec<f64> = (0..self.n).map(|i| i as f64).collect();
                Tensor::from_vec(positions, [self.n])?.cast(self.dtype)?
            }
            Instruction::Apply(primitive, x) => match (primitive, x.as_slice()) {
                (Primitive::Truthy, [x]) => {
                    op_named("not_equal").call(&[at(x), (&number(Const::Int(0))?).into()], &[])?
                }
                (Primitive::MulAdd, [x, y, z]) => {
                    let product = op("multiply", &[x, y])?;
                    op_named("add").call(&[(&product).into(), at(z)], &[])?
                }
                (primitive, x) if self.is_defined_by_others(*primitive) => {
                    let (zero, one) = (number(Const::Int(0))?, number(Const::Int(1))?);
                    match (primitive, x) {
                        (Primitive::Chain, [x, y]) => {
                            let is_zero = op_named("equal").call(&[at(y), (&zero).into()], &[])?;
                            let product = op("multiply", &[x, y])?;
                            op_named("where").call(&[(&is_zero).into(), (&zero).into(), (&product).into()], &[])?
                        }
                        (Primitive::Recip, [x]) => op_named("divide").call(&[(&one).into(), at(x)], &[])?,
                        (Primitive::Rsqrt, [x]) => {
                            op_named("divide").call(&[(&one).into(), (&op("sqrt", &[x])?).into()], &[])?
                        }
                        (Primitive::Silu, [x]) => {
                            op_named("multiply").call(&[at(x), (&op("sigmoid", &[x])?).into()], &[])?
                        }
                        (_, x) => op("multiply", &[&x[0], &x[0]])?,
                    }
                }
                (Primitive::Chain, [x, y]) => {
                    dispatch_one(&CHAIN, &[(&before[x.at()]).into(), (&before[y.at()]).into()], &[])?
                }
                (Primitive::Float16, [x]) => self.rounded(&before[x.at()], DType::F16)?,
                (Primitive::Bfloat16, [x]) => self.rounded(&before[x.at()], DType::Bf16)?,
                (primitive, _) if primitive.is_of_bits() => return Err(of_bits()),
                (Primitive::Pow, [x, y]) => op("power", &[x, y])?,
                (Primitive::Recip, [x]) => op("reciprocal", &[x])?,
                (primitive, x) => op(primitive.name(), &x.iter().collect::<Vec<_>>())?,
            },
            Instruction::Powi(x, n) => {
                op_named("power").call(&[at(x), (&number(Const::Int(i128::from(*n)))?).into()], &[])?
            }
            Instruction::Polygamma(..) => {
                return Err(Error::runtime("further derivatives of digamma are not available"));
            }
            Instruction::Select(mask, a, b) => op("where", &[mask, a, b])?,
            Instruction::And(a, b) => op("logical_and", &[a, b])?,
            Instruction::Or(a, b) => op("logical_or", &[a, b])?,
            Instruction::Not(a) => op("logical_not", &[a])?,
            Instruction::Detach(x) => before[x.at()].detach(),
            Instruction::Row(function, x) => {
                let rows = x.iter().map(|x| self.along(&before[x.at()])).collect::<Result<Vec<_>>>()?;
                dispatch_one(&row_function(function)?, &rows.iter().map(Into::into).collect::<Vec<_>>(), &[])?
            }
            Instruction::Reduce(reduction, x) => {
                let x = self.along(&before[x.at()])?;
                if self.n == 0 && !reduction.is_running() {
                    return self.of_nothing(*reduction, &x);
                }
                let last = || Value::from(vec![-1i64]);
                let flipped = |x: &Tensor| op_named("flip").call(&[x.into(), last()], &[]);
                match reduction {
                    Reduction::Cumsum => op_named("cumsum").call(&[(&x).into(), (-1i64).into()], &[])?,
                    Reduction::ReverseCumsum => {
                        flipped(&op_named("cumsum").call(&[(&flipped(&x)?).into(), (-1i64).into()], &[])?)?
                    }
                    _ => op_named(reduction.name()).call(&[(&x).into(), last(), true.into()], &[])?,
                }
            }
        })
    }

    /// Numbers that are rounded to those of another dtype.
    fn rounded(&self, x: &Tensor, to: DType) -> Result<Tensor> {
        let rounded = names::ASTYPE.call(&[x.into(), to.into()], &[])?;
        names::ASTYPE.call(&[(&rounded).into(), self.dtype.into()], &[])
    }

    /// Whether a primitive is computed by others here: the device has no kernel of its op.
    fn is_defined_by_others(&self, primitive: Primitive) -> bool {
        let name = match primitive {
            Primitive::Chain => "",
            Primitive::Recip => "reciprocal",
            Primitive::Rsqrt | Primitive::Silu | Primitive::Square => primitive.name(),
            _ => return false,
        };
        let kind = self.device.kind();
        let has_kernel = || registry::get(name).is_ok_and(|op| op.kernels.on(kind).next().is_some());
        kind != DeviceKind::Cpu && kind != DeviceKind::Meta && !has_kernel()
    }

    /// The result of a reduction of empty rows. It is computed here because the ops reject an extremum of no elements.
    fn of_nothing(&self, reduction: Reduction, x: &Tensor) -> Result<Tensor> {
        let identity = match reduction {
            Reduction::Prod => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => 0.0,
        };
        let mut sizes = x.shape().to_vec();
        sizes.last_mut().into_iter().for_each(|n| *n = 1);
        Tensor::full(sizes, Const::Float(identity), self.dtype, self.device)
    }

    /// Expands the last axis to the length of the row.
    fn along(&self, t: &Tensor) -> Result<Tensor> {
        if t.shape().last() == Some(&self.n) {
            return Ok(t.clone());
        }
        let mut sizes: Vec<i64> = t.shape().iter().map(|s| *s as i64).collect();
        match sizes.last_mut() {
            Some(last) => *last = self.n as i64,
            None => sizes.push(self.n as i64),
        }
        crate::op::by_name::names::EXPAND.call(&[t.into(), sizes.into()], &[])
    }
}
