//! Gradients as functions of tensors, compared with recorded gradients.

use minitensor::autograd::{Options, grad};
use minitensor::op::{Arg, Value, bind, functional_gradient, results_read};
use minitensor::{DType, Result, Tensor, dispatch, registry};
use minitensor_ops as _;

fn numbers(shape: &[usize], from: f64) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    Tensor::from_vec((0..count).map(|i| (from + i as f64 * 0.7).sin() + 1.5).collect::<Vec<f64>>(), shape)
}

fn assert_same(a: &[Tensor], b: &[Tensor]) -> Result<()> {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        for (x, y) in a.to_vec::<f64>()?.iter().zip(b.to_vec::<f64>()?) {
            assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{x} is not {y}");
        }
    }
    Ok(())
}

/// Compares the first and the second derivatives of an op with one result.
fn check(name: &str, inputs: &[Tensor]) -> Result<()> {
    let op = registry::get(name)?;
    let attrs = bind(&op, &inputs.iter().map(Value::from).collect::<Vec<_>>(), &[])?.1;
    let leaves: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    leaves.iter().try_for_each(|t| t.set_requires_grad(true))?;
    let output = dispatch(&op, &leaves.iter().map(Arg::Tensor).collect::<Vec<_>>(), &attrs)?.single();
    let known = [Some(output.detach())];
    let dims: Vec<usize> = output.shape().to_vec();
    let cotangent = numbers(&dims, 0.3)?;
    cotangent.set_requires_grad(true)?;
    let create = Options { create_graph: true, ..Options::default() };
    let first = grad(&[output], &leaves, &[Some(cotangent.clone())], create)?;
    let first: Vec<Tensor> = first.into_iter().flatten().collect();

    let given = |extra: &[&Tensor]| -> Vec<Option<Tensor>> {
        extra.iter().map(|t| Some(t.detach())).chain(inputs.iter().cloned().map(Some)).collect()
    };
    let all = vec![true; inputs.len()];
    assert_same(&functional_gradient(&op, &attrs, &[&all], &given(&[&cotangent]), &[])?, &first)?;
    assert_same(&functional_gradient(&op, &attrs, &[&all], &given(&[&cotangent]), &known)?, &first)?;

    let seconds: Vec<Tensor> = first.iter().map(|t| numbers(t.shape(), 0.9)).collect::<Result<_>>()?;
    let wrt: Vec<Tensor> = [cotangent.clone()].into_iter().chain(leaves.iter().cloned()).collect();
    let cotangents: Vec<Option<Tensor>> = seconds.iter().cloned().map(Some).collect();
    let second = grad(&first, &wrt, &cotangents, Options::default())?;
    let second: Vec<Tensor> = second
        .into_iter()
        .zip(&wrt)
        .map(|(g, t)| g.map_or_else(|| Tensor::full(t.shape().clone(), 0.0.into(), DType::F64, t.device()), Ok))
        .collect::<Result<_>>()?;
    let extra: Vec<&Tensor> = seconds.iter().chain([&cotangent]).collect();
    let more = vec![true; inputs.len() + 1];
    assert_same(&functional_gradient(&op, &attrs, &[&all, &more], &given(&extra), &[])?, &second)?;
    assert_same(&functional_gradient(&op, &attrs, &[&all, &more], &given(&extra), &known)?, &second)
}

#[test]
fn they_equal_the_recorded_ones() -> Result<()> {
    let (x, y, row) = (numbers(&[3, 4], 0.0)?, numbers(&[3, 4], 2.0)?, numbers(&[4], 1.0)?);
    check("swish", std::slice::from_ref(&x))?;
    check("exp", std::slice::from_ref(&x))?;
    check("multiply", &[x.clone(), y])?;
    check("divide", &[x.clone(), row])?;
    check("softmax", std::slice::from_ref(&x))?;
    check("sum", std::slice::from_ref(&x))?;
    check("cumsum", std::slice::from_ref(&x))?;
    check("matmul", &[x.clone(), numbers(&[4, 2], 3.0)?])?;
    check("layer_norm", &[x, numbers(&[4], 1.0)?, numbers(&[4], 2.0)?])
}

#[test]
fn a_known_result_is_used_instead_of_a_call() -> Result<()> {
    let x = numbers(&[3, 4], 0.0)?;
    let cotangent = numbers(&[3, 4], 0.3)?;
    for name in ["softmax", "exp", "sqrt"] {
        let op = registry::get(name)?;
        assert_eq!(results_read(&op), [true], "{name}");
        let attrs = bind(&op, &[Value::from(&x)], &[])?.1;
        let of = |known: &[Option<Tensor>]| {
            functional_gradient(&op, &attrs, &[&[true]], &[Some(cotangent.clone()), Some(x.clone())], known)
        };
        // The gradient is that at the result which is passed.
        let other = Some(numbers(&[3, 4], 5.0)?);
        assert_ne!(of(&[])?[0].to_vec::<f64>()?, of(&[other])?[0].to_vec::<f64>()?, "{name}");
        let error = of(&[Some(numbers(&[4], 0.0)?)]).unwrap_err();
        let expected = format!("op '{name}': result '{}' is float64 (3, 4), got float64 (4,)", op.outputs[0].name);
        assert_eq!(error.message(), expected);
    }
    for name in ["swish", "layer_norm", "matmul", "cumsum", "abs"] {
        assert_eq!(results_read(&*registry::get(name)?), [false], "{name}");
    }
    Ok(())
}

#[test]
fn wrong_arguments_are_errors() -> Result<()> {
    let op = registry::get("multiply")?;
    let x = numbers(&[2], 0.0)?;
    let gradient = |wrt: &[&[bool]], tensors: &[Option<Tensor>]| functional_gradient(&op, &[], wrt, tensors, &[]);
    let (x, all) = (Some(x), [true, true]);
    let message = |r: Result<Vec<Tensor>>| r.map(|_| ()).unwrap_err().message().to_owned();
    assert_eq!(
        message(gradient(&[&all], &[x.clone(), x.clone()])),
        "op 'multiply': its gradient of order 1 takes 3 tensors, got 2"
    );
    assert_eq!(
        message(gradient(&[&all], std::slice::from_ref(&x))),
        "op 'multiply': its gradient of order 1 takes 2 tensors, got 1"
    );
    assert_eq!(
        message(gradient(&[&all], &[x.clone(), x.clone(), None])),
        "op 'multiply': a gradient of an absent tensor is wanted"
    );
    // An absent cotangent is zero.
    assert_eq!(gradient(&[&all], &[None, x.clone(), x])?[0].to_vec::<f64>()?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn a_call_that_draws_random_numbers_is_not_run_again() -> Result<()> {
    let x = Some(numbers(&[3], 0.0)?);
    // The gradient of `rand_like` needs no call.
    let zeros = functional_gradient(&registry::get("rand_like")?, &[], &[&[true]], &[x.clone(), x.clone()], &[])?;
    assert_eq!(zeros[0].to_vec::<f64>()?, [0.0; 3]);
    let op = registry::get("dropout")?;
    let attrs = bind(&op, &[Value::from(&numbers(&[3], 0.0)?)], &[])?.1;
    let error = functional_gradient(&op, &attrs, &[&[true]], &[x.clone(), x], &[]).unwrap_err();
    assert_eq!(
        error.message(),
        "op 'dropout': its gradient runs the op again, but the op draws random numbers, which would differ; use an op that \
         takes a key, such as random::dropout"
    );
    Ok(())
}
