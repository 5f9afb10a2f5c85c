//! Bodies over whole tensors that call ops with several outputs, wherever the values stand.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor_ops as _;

/// The largest two elements, or the largest element twice.
#[custom_op(name = "several::branches")]
pub fn branches(x: &Tensor, #[default = true] two: bool) -> Result<(Tensor, Tensor)> {
    let (values, places) = if two {
        x.topk(2)
    } else {
        let one = x.topk(1)?;
        (ops::concat([one.0, one.0], -1), ops::concat([one.1, one.1], -1))
    };
    Ok((values * 10, places))
}

/// The result of a `match`, whose arms are outputs of an op and tensors.
#[custom_op(name = "several::arms")]
pub fn arms(x: &Tensor, y: &Tensor, #[default = 0] k: usize) -> Result<(Tensor, Tensor)> {
    let pair = match k {
        0 => (x, y + 1),
        1 => return Ok(y.topk(1)),
        _ => x.topk(k),
    };
    let mut doubled = (pair.0 + pair.0, pair.1);
    if k > 2 {
        doubled = y.topk(k);
    }
    Ok(doubled)
}

/// The outputs of an op as the result.
#[custom_op(name = "several::returned")]
pub fn returned(x: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok({
        let k = 2;
        x.topk(k)
    })
}

/// The same as a list.
#[custom_op(name = "several::listed")]
pub fn listed(x: &Tensor) -> Result<Vec<Tensor>> {
    if x.ndim() > 1 {
        let mut all = vec![];
        for output in x.topk(1) {
            all.push(output + 1);
        }
        return Ok(all);
    }
    Ok(ops::topk(x, 2))
}

/// Nested tuples, assignments to variables, parts, and variables that hold several outputs.
#[custom_op(name = "several::places")]
pub fn places(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let ((a, b), c) = (x.topk(1), y * 2);
    let (d, mut e);
    (d, e) = y.topk(1);
    e += 1;
    let mut f = x;
    let g;
    ((f, _), g) = (y.topk(2), f.topk(1).1);
    let pair = y.topk(2);
    let again = pair;
    let [h, i] = x.topk(1);
    let typed: (Tensor, Tensor) = (-x).topk(1);
    let j = typed.0;
    let k = x.topk(2).0[0] + (-y).topk(1)?.0;
    let parts = y.topk(1);
    let l = parts.0 - parts.1;
    let mut m = y;
    let mut n = x;
    (m, n) = (n * 1, m * 1);
    Ok(vec![a, b, c, d, e, f, g, again.0, again.1, h, i, j, k, l, m, n])
}

/// Closures and helpers.
#[custom_op(name = "several::functions")]
pub fn functions(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    let top = |t: &Tensor| Ok(t.topk(1));
    let least = |t: &Tensor| -> Result<(Tensor, Tensor)> {
        let (value, place) = (-t).topk(1);
        Ok((-value, place))
    };
    let (a, _) = top(x)?;
    let found = least(y)?;
    let (b, (c, _)): (Tensor, (Tensor, Tensor)) = helper(x)?;
    Ok((a + found.0, b + c))
}

#[op_fn]
fn helper(x: &Tensor) -> Result<(Tensor, (Tensor, Tensor))> {
    Ok((x.sum(), x.topk(1)))
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).and_then(|t| t.to_vec()).expect("values")
}

fn two() -> Result<(Tensor, Tensor)> {
    Ok((Tensor::from_vec(vec![3.0, 7.0, 5.0], [3])?, Tensor::from_vec(vec![2.0, -1.0, 9.0], [3])?))
}

#[test]
fn branches_have_the_outputs_of_an_op() -> Result<()> {
    let (x, y) = two()?;
    let (a, b) = branches::call(&x, true)?;
    assert_eq!((values(&a), values(&b)), (vec![70.0, 50.0], vec![1.0, 2.0]));
    let (a, b) = branches::call(&x, false)?;
    assert_eq!((values(&a), values(&b)), (vec![70.0, 70.0], vec![1.0, 1.0]));
    let found = |k| arms::call(&x, &y, k).map(|(a, b)| (values(&a), values(&b)));
    assert_eq!(found(0)?, (vec![6.0, 14.0, 10.0], vec![3.0, 0.0, 10.0]));
    assert_eq!(found(1)?, (vec![9.0], vec![2.0]));
    assert_eq!(found(2)?, (vec![14.0, 10.0], vec![1.0, 2.0]));
    assert_eq!(found(3)?, (vec![9.0, 2.0, -1.0], vec![2.0, 0.0, 1.0]));
    Ok(())
}

#[test]
fn a_body_returns_the_outputs_of_an_op() -> Result<()> {
    let (x, _) = two()?;
    let (a, b) = returned::call(&x)?;
    assert_eq!((values(&a), values(&b)), (vec![7.0, 5.0], vec![1.0, 2.0]));
    let all: Vec<_> = listed::call(&x)?.iter().map(values).collect();
    assert_eq!(all, [vec![7.0, 5.0], vec![1.0, 2.0]]);
    let rows = Tensor::from_vec(vec![3.0, 7.0, 5.0, 1.0], [2, 2])?;
    let all: Vec<_> = listed::call(&rows)?.iter().map(values).collect();
    assert_eq!(all, [vec![8.0, 6.0], vec![2.0, 1.0]]);
    Ok(())
}

#[test]
fn outputs_are_assigned_nested_and_taken_apart() -> Result<()> {
    let (x, y) = two()?;
    let all: Vec<_> = places::call(&x, &y)?.iter().map(values).collect();
    let expected: [&[f64]; 16] = [
        &[7.0],
        &[1.0],
        &[4.0, -2.0, 18.0],
        &[9.0],
        &[3.0],
        &[9.0, 2.0],
        &[1.0],
        &[9.0, 2.0],
        &[2.0, 0.0],
        &[7.0],
        &[1.0],
        &[-3.0],
        &[8.0],
        &[7.0],
        &[3.0, 7.0, 5.0],
        &[2.0, -1.0, 9.0],
    ];
    assert_eq!(all, expected);
    Ok(())
}

#[test]
fn closures_and_helpers_return_the_outputs_of_an_op() -> Result<()> {
    let (x, y) = two()?;
    let (a, b) = functions::call(&x, &y)?;
    assert_eq!((values(&a), values(&b)), (vec![6.0], vec![22.0]));
    Ok(())
}

#[test]
fn the_registry_finds_no_wrong_call() {
    registry::check().expect("all calls are right");
}
