//! Row ops with functions of the whole row: neighbours, recurrences, running extrema, sorting.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// An exponential moving average: `yᵢ = decay · yᵢ₋₁ + (1 − decay) · xᵢ`.
#[custom_op(shape = (x: [.., n]) -> [.., n], where decay >= 0.0, decay <= 1.0, axis = -1)]
fn averaged<R: Row>(x: R, #[default = 0.9] decay: f64) -> R {
    (x * (1.0 - decay)).recurrence(decay)
}

/// The difference from the element `lag` places before; the first ones are 0.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
fn lagged<R: Row>(x: R, #[default = 1] lag: i64) -> R {
    if x.position() < lag { 0.0 } else { x - x.shift(lag) }
}

/// Generalized advantages of rewards and values (Schulman et al., 2016).
#[custom_op(shape = (reward: [.., n], value: [.., n], continues: [.., n]) -> [.., n])]
fn advantages<R: Row>(
    reward: R,
    value: R,
    continues: R,
    #[default = 0.99] gamma: f64,
    #[default = 0.95] mixing: f64,
) -> R {
    let delta = reward + gamma * value.shift(-1) * continues - value;
    delta.reverse_recurrence(gamma * mixing * continues)
}

/// The projection onto the simplex (Martins and Astudillo, 2016).
#[custom_op(shape = (x: [.., n]) -> [.., n])]
fn sparsemax_by_sorting<R: Row>(x: R) -> R {
    let z = -(-x).sort();
    let rank = z.position() + 1.0;
    let support = if 1.0 + rank * z > z.cumsum() { 1.0 } else { 0.0 };
    let support = support.detach();
    let threshold = ((z * support).sum() - 1.0) / support.sum();
    (x - threshold).maximum(0.0)
}

/// The largest loss from a peak of a price, as a part of the peak.
#[custom_op(shape = (price: [.., n]) -> [..])]
fn drawdown<R: Row>(price: R) -> R {
    let peak = price.cummax();
    ((peak - price) / peak).max()
}

/// The mean of the elements between two quantiles, as weights of the sorted row.
#[custom_op(shape = (x: [.., n]) -> [..] where cut >= 0, 2 * cut < n)]
fn trimmed_mean<R: Row>(x: R, #[default = 1] cut: i64) -> R {
    let rank = x.position();
    let is_kept = rank >= cut && rank < x.count() - cut;
    let kept = if is_kept { x.sort() } else { 0.0 };
    kept.sum() / (x.count() - 2 * cut)
}

/// A row in the order of another, its running product, and the sums of bins of width 1.
#[custom_op(shape = (x: [.., n], key: [.., n]) -> (ordered: [.., n], product: [.., n], bins: [.., n]))]
fn arranged<R: Row>(x: R, key: R) -> (R, R, R) {
    (x.take(key.argsort()), x.cumprod(), x.put(key.floor()))
}

/// The last element, the last of the largest sums of a run up to it, and the row `lag` places ago.
#[custom_op(name = "row_functions::ends", shape = (x: [.., n]) -> (last: [..], best: [..], before: [.., n]))]
fn ends<R: Row>(x: R, #[default = 1] lag: usize) -> (R, R, R) {
    let (best, _) = R::scan((x, x), |(best, run), (x, y)| {
        let run = y + run.maximum(0.0);
        (if run > best { run } else { best + 0.0 * x }, run)
    });
    (x.at((x.count() - 1).to_index()), best.at(best.count() - 1), x.shift(lag))
}

#[test]
fn the_last_element_is_that_at_a_computed_index() -> Result<()> {
    let x = row(&[1.0, -3.0, 2.0, 2.5, -1.0])?;
    let (last, best, before) = ends::call(&x, 2)?;
    assert_eq!((last.to_vec::<f64>()?, best.to_vec::<f64>()?), (vec![-1.0], vec![4.5]));
    assert_eq!(before.to_vec::<f64>()?, [0.0, 0.0, 1.0, -3.0, 2.0]);
    opcheck(&ends::op(), &[]).into_result()
}

/// The elements at a literal, at an attribute, at a computed number, and at one that is no position.
#[custom_op(
    name = "row_functions::chosen",
    shape = (x: [.., n]) -> (first: [..], kth: [..], top: [..], none: [..]) where k > 0, k < n,
)]
fn chosen<R: Row>(x: R, #[default = 1] k: i64) -> (R, R, R, R) {
    let (after, between) = (x.detach().at(x.count()), x.detach().at(x.count() / 2 - 1));
    (x.at(0), x.at(k) * (k as R) / k, x.at((-x).argmin()), if after.isnan() { between } else { 0.0 })
}

/// The first, the last and the element after it, of integers.
#[custom_op(name = "row_functions::ends_of_integers", shape = (x: [.., n]) -> (first: [..], last: [..], none: [..]) where n > 0)]
fn ends_of_integers<R: IntRow>(x: R) -> (R, R, R) {
    (x.at(0), x.at(x.count() - 1), x.at(x.count()))
}

#[test]
fn integers_are_selected_too() -> Result<()> {
    let (first, last, none) = ends_of_integers::call(&Tensor::from_vec(vec![7_i64, 8, 9], [3])?)?;
    assert_eq!([first, last, none].map(|t| t.item::<i64>()).into_iter().collect::<Result<Vec<_>>>()?, [7, 9, 0]);
    opcheck(&ends_of_integers::op(), &[]).into_result()
}

#[test]
fn numbers_are_indices() -> Result<()> {
    let (first, kth, top, none) = chosen::call(&row(&[1.0, 5.0, 2.0])?, 2)?;
    assert_eq!([first, kth, top].map(|t| t.item::<f64>()).into_iter().collect::<Result<Vec<_>>>()?, [1.0, 2.0, 5.0]);
    assert!(none.item::<f64>()?.is_nan());
    opcheck(&chosen::op(), &[]).into_result()
}

#[test]
fn functions_of_rows_pass_opcheck() -> Result<()> {
    let ops = [
        averaged::op(),
        lagged::op(),
        advantages::op(),
        sparsemax_by_sorting::op(),
        drawdown::op(),
        trimmed_mean::op(),
        arranged::op(),
    ];
    for op in ops {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

fn row(values: &[f64]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), [values.len()])
}

#[test]
fn the_values_are_those_of_loops() -> Result<()> {
    let x = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0];
    let mut average = 0.0;
    let expected: Vec<f64> = x
        .iter()
        .enumerate()
        .map(|(i, x)| {
            average = if i == 0 { x * 0.25 } else { 0.75 * average + x * 0.25 };
            average
        })
        .collect();
    assert_eq!(averaged::call(&row(&x)?, -1, 0.75)?.to_vec::<f64>()?, expected);
    assert_eq!(lagged::call(&row(&x)?, 2)?.to_vec::<f64>()?, [0.0, 0.0, 1.0, 2.0, -9.0, 8.0, 7.0]);
    assert_eq!(lagged::call(&row(&x)?, 100)?.to_vec::<f64>()?, [0.0; 7]);
    assert_eq!(trimmed_mean::call(&row(&x)?, 2)?.item::<f64>()?, 2.0);
    assert_eq!(drawdown::call(&row(&[1.0, 4.0, 3.0, 8.0, 2.0, 6.0])?)?.item::<f64>()?, 0.75);
    let (ordered, product, bins) = arranged::call(&row(&[1.0, 2.0, 3.0, 4.0])?, &row(&[1.5, 0.5, 1.25, 9.0])?)?;
    assert_eq!(ordered.to_vec::<f64>()?, [2.0, 3.0, 1.0, 4.0]);
    assert_eq!(product.to_vec::<f64>()?, [1.0, 2.0, 6.0, 24.0]);
    assert_eq!(bins.to_vec::<f64>()?, [2.0, 4.0, 0.0, 0.0]);
    assert_eq!(sparsemax_by_sorting::call(&row(&[0.5, 1.0, -3.0])?)?.to_vec::<f64>()?, [0.25, 0.75, 0.0]);
    Ok(())
}

#[test]
fn a_position_that_does_not_exist_is_nan() -> Result<()> {
    /// The element at a position.
    #[custom_op(shape = (x: [.., n], index: [.., n]) -> [.., n])]
    fn taken<R: Row>(x: R, index: R) -> R {
        x.take(index)
    }
    let y = taken::call(&row(&[1.0, 2.0, 3.0, 4.0, 5.0])?, &row(&[4.0, -1.0, 0.5, 5.0, f64::NAN])?)?.to_vec::<f64>()?;
    assert_eq!(y[0], 5.0);
    assert!(y[1..].iter().all(|y| y.is_nan()), "{y:?}");
    Ok(())
}

/// The mean of the elements that a mask keeps, whether there is one, and the position of the largest.
#[custom_op(shape = (x: [.., n], kept: [.., n]) -> (mean: [..], is_any: [..], top: [..], above: [.., n], order: [.., n]) where n > 0)]
fn masked<R: Row>(x: R, kept: R::Mask) -> (R, R::Mask, R::Index, R::Mask, R::Index) {
    let weight = if kept { 1.0 } else { 0.0 };
    let mean = (x * weight).sum() / weight.sum().maximum(1.0);
    let least = if kept { x } else { -R::infinity() };
    (mean, R::any(kept), least.argmax().to_index(), x > mean && kept, x.argsort().to_index())
}

#[test]
fn masks_and_positions_are_inputs_and_outputs() -> Result<()> {
    let x = Tensor::from_vec(vec![3.0, 1.0, 8.0, 4.0, 5.0, 6.0], [2, 3])?;
    let kept = Tensor::from_vec(vec![true, true, false, false, false, false], [2, 3])?;
    let (mean, is_any, top, above, order) = masked::call(&x, &kept)?;
    assert_eq!(mean.to_vec::<f64>()?, [2.0, 0.0]);
    assert_eq!(is_any.to_vec::<bool>()?, [true, false]);
    assert_eq!(top.to_vec::<i64>()?, [0, 0]);
    assert_eq!(above.to_vec::<bool>()?, [true, false, false, false, false, false]);
    assert_eq!(order.to_vec::<i64>()?, [1, 0, 2, 0, 1, 2]);
    opcheck(&masked::op(), &[]).into_result()
}

/// Positions that are reduced, moved and scanned themselves.
#[custom_op(name = "row_functions::positions", shape = (x: [.., n]) -> (top: [.., n], sum: [.., n], moved: [.., n], running: [.., n]))]
fn positions<R: Row>(x: R) -> (R, R, R, R) {
    let place = x.position();
    (x + place.max(), x + place.sum(), x + place.shift(1), R::scan(x, |before, x| before + x * place))
}

#[test]
fn positions_are_numbers_like_others_in_rows_side_by_side() -> Result<()> {
    let (rows, n) = (200, 6);
    let x: Vec<f64> = (0..rows * n).map(|i| (i * 7 % 13) as f64).collect();
    let (top, sum, moved, running) = positions::call(&Tensor::from_vec(x.clone(), [rows, n])?)?;
    let [top, sum, moved, running] = [top, sum, moved, running].map(|y| y.to_vec::<f64>());
    let (top, sum, moved, running) = (top?, sum?, moved?, running?);
    for (row, x) in x.chunks(n).enumerate() {
        let mut total = x[0];
        for (i, x) in x.iter().enumerate() {
            let at = row * n + i;
            total += if i > 0 { x * i as f64 } else { 0.0 };
            let before = i.saturating_sub(1) as f64;
            assert_eq!([top[at], sum[at], moved[at], running[at]], [x + 5.0, x + 15.0, x + before, total]);
        }
    }
    Ok(())
}

#[test]
fn rows_with_more_elements_than_the_dtype_has_integers_have_no_positions() -> Result<()> {
    let n = (1 << 24) + 1;
    let row = |x: Tensor| minitensor_ops::shape::expand::call(&x, &[n]);
    let error =
        ends_of_row::call(&row(Tensor::from_vec(vec![1f32], [1])?)?).expect_err("the row is too long").to_string();
    let expected = "rows of 16777217 elements are too long for the positions that the body computes with at this dtype, which has the \
                    integers up to 16777216; convert the tensors to float64";
    assert!(error.ends_with(expected), "{error}");
    let (first, last) = ends_of_row::call(&row(Tensor::from_vec(vec![1f64], [1])?)?)?;
    assert_eq!((first.item::<f64>()?, last.item::<f64>()?), (1.0, 1.0));
    Ok(())
}

/// The first and the last element.
#[custom_op(name = "row_functions::ends_of_row", shape = (x: [.., n]) -> (first: [..], last: [..]) where n > 0)]
fn ends_of_row<R: Row>(x: R) -> (R, R) {
    (x.at(0), x.at(x.count() - 1))
}
