//! Tensors: layouts, promotion, conversion, errors.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use std::sync::Arc;

use minitensor::kernels::Const;
use minitensor::op::{Arg, dispatch, infer};
use minitensor::{CustomOp, DType, Device, ErrorKind, GradientFunction, Result, Shape, Tensor, custom_op, registry};
use minitensor_ops::arithmetic::{add, clamp, multiply, remainder, subtract};
use minitensor_ops::indexing::{gather, slice};
use minitensor_ops::linalg::matmul;
use minitensor_ops::shape::{permute_dims, reshape};
use ndarray::{Array2, ShapeBuilder, array};

fn ramp(shape: &[usize]) -> Tensor {
    Tensor::from_vec((0..shape.iter().product::<usize>()).map(|i| i as f64).collect(), shape).expect("a ramp")
}

#[test]
fn an_ndarray_comes_and_goes_without_a_copy() -> Result<()> {
    for array in [
        array![[1.0, 2.0], [3.0, 4.0]],
        Array2::from_shape_vec((2, 2).f(), vec![1.0, 3.0, 2.0, 4.0]).expect("column-major"),
    ] {
        let address = array.as_ptr() as usize;
        let (expected, tensor) = (array.clone(), Tensor::from_ndarray(array));
        assert_eq!(tensor.data_ptr() as usize, address);
        let view = tensor.view::<f64>()?;
        assert_eq!(view.as_ptr() as usize, address);
        assert_eq!(view, expected.into_dyn());
    }
    let mut reversed = array![1.0, 2.0, 3.0];
    reversed.invert_axis(ndarray::Axis(0));
    let tensor = Tensor::from_ndarray(reversed.clone());
    assert_eq!(tensor.to_vec::<f64>()?, [3.0, 2.0, 1.0]);
    assert_eq!(tensor.view::<f64>()?, reversed.into_dyn());
    Ok(())
}

#[test]
fn views_share_memory_and_copies_do_not() -> Result<()> {
    let x = ramp(&[2, 3, 4]);
    let turned = permute_dims::call(&x, &[2, 0, 1])?;
    assert!(turned.shares_storage(&x) && !turned.is_contiguous());
    assert_eq!(turned.shape().dims(), [4, 2, 3]);
    let back = slice::call(&x, 1, None, None, -1)?;
    assert!(back.shares_storage(&x));
    assert_eq!(back.to_vec::<f64>()?[..4], [8.0, 9.0, 10.0, 11.0]);
    assert!(reshape::call(&x, &[6, -1])?.shares_storage(&x));
    assert!(!reshape::call(&turned, &[24])?.shares_storage(&x));
    assert_eq!(reshape::call(&turned, &[24])?.to_vec::<f64>()?[..3], [0.0, 4.0, 8.0]);
    // Adjacent axes that form one block can be joined in a view of a view.
    let rows = slice::call(&x, 0, Some(1), None, 1)?;
    assert!(reshape::call(&rows, &[12])?.shares_storage(&x));
    Ok(())
}

#[test]
fn the_promotion_table_is_symmetric_idempotent_and_follows_the_array_api() {
    use DType::*;
    for a in DType::ALL {
        assert_eq!(a.promote(*a), *a);
        for b in DType::ALL {
            assert_eq!(a.promote(*b), b.promote(*a), "{a} {b}");
            assert_eq!(a.promote(*b).promote(*a), a.promote(*b), "{a} {b}");
        }
    }
    for (a, b, both) in
        [(I8, U8, I16), (I16, U32, I64), (I64, U32, I64), (F32, F64, F64), (F64, C64, C128), (F32, C64, C64)]
    {
        assert_eq!(a.promote(b), both);
    }
}

#[test]
fn plain_numbers_are_weak() -> Result<()> {
    let op = add::op();
    for (dtype, number, expected) in [
        (DType::F16, Const::Float(0.5), DType::F16),
        (DType::I8, Const::Int(1), DType::I8),
        (DType::I8, Const::Float(0.5), DType::F32),
        (DType::F32, Const::Int(1), DType::F32),
        (DType::C64, Const::Float(1.0), DType::C64),
    ] {
        let x = Tensor::ones([2], dtype, Device::Cpu)?;
        assert_eq!(dispatch(&op, &[Arg::Tensor(&x), Arg::Number(number)], &[])?.single().dtype(), expected, "{dtype}");
    }
    let x = Tensor::ones([2], DType::I8, Device::Cpu)?;
    let error = dispatch(&op, &[Arg::Tensor(&x), Arg::Number(Const::Int(300))], &[]).unwrap_err();
    assert!(error.message().contains("300 does not fit into int8"), "{error}");
    Ok(())
}

#[test]
fn empty_and_0d_tensors_are_tensors() -> Result<()> {
    let empty = ramp(&[0, 3]);
    assert_eq!(add::call(&empty, &ramp(&[3]))?.shape().dims(), [0, 3]);
    assert_eq!(matmul::call(&ramp(&[2, 0]), &ramp(&[0, 3]))?.to_vec::<f64>()?, [0.0; 6]);
    let number = Tensor::scalar(2.0);
    assert_eq!(multiply::call(&number, &number)?.item::<f64>()?, 4.0);
    assert_eq!(minitensor_ops::reduction::sum::call(&empty, Some(&[0]), false, None)?.to_vec::<f64>()?, [0.0; 3]);
    let error = minitensor_ops::reduction::max::call(&empty, Some(&[0]), false).unwrap_err();
    assert!(error.message().contains("undefined for zero elements"), "{error}");
    Ok(())
}

#[test]
fn errors_say_what_was_expected_what_came_and_what_to_do() -> Result<()> {
    let (x, y) = (ramp(&[2, 3]), ramp(&[4]));
    let integers = Tensor::ones([2], DType::I64, Device::Cpu)?;
    let cases: Vec<(Result<Tensor>, ErrorKind, &[&str])> = vec![
        (add::call(&x, &y), ErrorKind::Value, &["op 'add'", "'y' of shape (4,)", "(2, 3)"]),
        (
            remainder::call(&Tensor::zeros([2], DType::C64, Device::Cpu)?, &x),
            ErrorKind::Type,
            &["op 'remainder'", "'x'", "complex64"],
        ),
        (clamp::call(&x, 2.0, 1.0), ErrorKind::Value, &["op 'clamp' needs lo <= hi", "lo = 2.0", "hi = 1.0"]),
        (clamp::call(&integers, 0.5, 9.0), ErrorKind::Value, &["'lo' must be an integer", "got 0.5"]),
        (
            gather::call(&x, &Tensor::from_vec(vec![7i64], [1, 1])?, 1),
            ErrorKind::Index,
            &["op 'gather'", "index 7", "size 3"],
        ),
        (reshape::call(&x, &[4, -1]), ErrorKind::Value, &["(2, 3)", "4", "multiple"]),
        (slice::call(&x, 2, None, None, 1), ErrorKind::Index, &["axis 2", "2 dimensions"]),
        (
            Tensor::zeros([usize::MAX / 2, 3], DType::F64, Device::Cpu),
            ErrorKind::Memory,
            &["more elements than memory"],
        ),
        (Tensor::zeros([usize::MAX, 0], DType::F64, Device::Cpu), ErrorKind::Memory, &["more elements than memory"]),
        (Tensor::empty([1 << 45], DType::F64, Device::Cpu), ErrorKind::Memory, &["cannot allocate"]),
    ];
    for (result, kind, words) in cases {
        let error = result.expect_err("an error");
        assert_eq!(error.kind(), kind, "{error}");
        words.iter().for_each(|w| assert!(error.message().contains(w), "expected «{w}» in: {error}"));
    }
    Ok(())
}

#[test]
fn inference_computes_nothing_and_agrees() -> Result<()> {
    let x = Tensor::empty([1 << 20, 1 << 20], DType::F32, Device::Meta)?;
    let out = infer(&registry::get("softmax")?, &[Arg::Tensor(&x)], &[minitensor::Attr::Int(-1)])?.remove(0);
    assert_eq!((out.shape().dims(), out.dtype(), out.device()), (&[1 << 20, 1 << 20][..], DType::F32, Device::Meta));
    assert!(out.to_vec::<f32>().is_err());
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_simd_level() -> Result<()> {
    use minitensor::kernels::simd::{Level, detected, set_level};
    let x = ramp(&[1003]);
    let run =
        || minitensor_ops::activation::gelu::call(&x, minitensor_ops::activation::Approximate::Tanh)?.to_vec::<f64>();
    set_level(Level::Baseline);
    let baseline = run()?;
    for level in Level::ALL {
        set_level(level);
        assert_eq!(run()?, baseline, "{}", level.name());
    }
    set_level(detected());
    Ok(())
}

/// The difference of two tensors, with a handwritten implementation of the trait.
struct Difference;

struct DifferenceGradient;

impl GradientFunction for DifferenceGradient {
    fn backward(&self, grad_output: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let negative = minitensor_ops::arithmetic::negative::call(grad_output)?;
        Ok(vec![Some(grad_output.clone()), Some(negative)])
    }
}

impl CustomOp for Difference {
    fn name(&self) -> &str {
        "handwritten::difference"
    }
    fn validate_inputs(&self, inputs: &[&Tensor]) -> Result<()> {
        if inputs[0].shape() != inputs[1].shape() {
            return Err(minitensor::MinitensorError::shape_mismatch(
                inputs[0].shape().dims().to_vec(),
                inputs[1].shape().dims().to_vec(),
            ));
        }
        Ok(())
    }
    fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        subtract::call(inputs[0], inputs[1])
    }
    fn create_gradient_function(&self, _: &[&Tensor], _: &Tensor) -> Option<Arc<dyn GradientFunction>> {
        Some(Arc::new(DifferenceGradient))
    }
    fn num_inputs(&self) -> usize {
        2
    }
    fn output_shape(&self, shapes: &[&Shape]) -> Result<Shape> {
        Ok(shapes[0].clone())
    }
    fn output_dtype(&self, dtypes: &[DType]) -> Result<DType> {
        Ok(dtypes[0])
    }
    fn output_device(&self, devices: &[&Device]) -> Result<Device> {
        Ok(*devices[0])
    }
}

#[test]
fn an_op_written_by_hand_against_the_trait_is_an_op_like_any_other() -> Result<()> {
    let op = registry::register(Arc::new(Difference))?;
    let sample = minitensor::testing::Sample { inputs: vec![Some(ramp(&[2, 2])), Some(ramp(&[2, 2]))], attrs: vec![] };
    minitensor::testing::opcheck(&op, &[sample]).into_result()?;
    let error = dispatch(&op, &[Arg::Tensor(&ramp(&[2])), Arg::Tensor(&ramp(&[3]))], &[]).unwrap_err();
    assert!(error.message().contains("[2]") && error.message().contains("[3]"), "{error}");
    registry::unregister("handwritten::difference")?;
    Ok(())
}

#[test]
fn the_macro_implements_the_trait() -> Result<()> {
    let op: Arc<dyn CustomOp> = Arc::new(minitensor_ops::activation::swish {});
    let x = ramp(&[3]);
    assert_eq!((op.name(), op.num_inputs()), ("swish", 1));
    assert_eq!(op.output_shape(&[x.shape()])?, *x.shape());
    assert_eq!(op.output_dtype(&[DType::F16])?, DType::F16);
    assert_eq!(op.output_dtype(&[DType::I64])?, DType::F32);
    assert_eq!(op.output_device(&[&Device::Cpu])?, Device::Cpu);
    op.validate_inputs(&[&x])?;
    assert!(op.validate_inputs(&[]).is_err());
    let y = op.forward(&[&x])?;
    let gradient = op.create_gradient_function(&[&x], &y).expect("differentiable");
    let g = gradient.backward(&Tensor::ones([3], DType::F64, Device::Cpu)?)?;
    assert_eq!(g.len(), 1);
    assert_eq!(g[0].as_ref().expect("a gradient").to_vec::<f64>()?[0], 0.5);
    Ok(())
}

#[test]
fn printing_is_aligned_shortened_and_says_dtype_and_history() -> Result<()> {
    assert_eq!(ramp(&[2, 2]).to_string(), "tensor([[0., 1.],\n        [2., 3.]], dtype=float64)");
    let x = Tensor::from_vec(vec![1.5f32, -100.25], [2])?.with_requires_grad()?;
    assert_eq!(x.to_string(), "tensor([   1.5000, -100.2500], requires_grad=True)");
    assert!(multiply::call(&x, &x)?.to_string().contains("grad_fn=<multiply>"));
    let large = ramp(&[100, 100]).to_string();
    assert!(large.contains("...") && large.lines().count() < 12, "{large}");
    assert_eq!(Tensor::from_vec(Vec::<f32>::new(), [0, 2])?.to_string(), "tensor([], dtype=float32, shape=(0, 2))");
    Ok(())
}

/// A composite op with a `dtype` clause.
#[custom_op(dtype = (x: T) -> T where T: Float)]
pub fn twice_exp(x: &Tensor) -> Result<Tensor> {
    let e = minitensor_ops::exponential::exp::call(x)?;
    add::call(&e, &e)
}

/// A composite op that calls another.
#[custom_op]
pub fn four_exp(x: &Tensor) -> Result<Tensor> {
    let e = twice_exp::call(x)?;
    add::call(&e, &e)
}

#[test]
fn a_composite_op_with_a_dtype_clause_computes_halves_within_another() -> Result<()> {
    let x = Tensor::from_vec(vec![0.0, 1.0], [2])?.cast(DType::F16)?;
    let y = four_exp::call(&x)?;
    assert_eq!(y.dtype(), DType::F16);
    assert_eq!(y.cast(DType::F64)?.to_vec::<f64>()?, [4.0, 10.875]);
    Ok(())
}
