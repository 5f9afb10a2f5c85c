use minitensor::prelude::*;

/// The `k` largest elements of every row, and where they stood.
#[custom_op(
    shape = (x: [.., n]) -> (values: [.., k], indices: [.., k]) where k <= n,
    dtype = (x: T) -> (T, i64),
    backward = |d_values, _| { x: d_values.scatter(-1, indices, n) },
)]
pub fn topk<T: Real>(x: &[T], k: usize, values: &mut [T], indices: &mut [i64]) {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*b].partial_cmp(&x[*a]).unwrap());
    for (i, at) in order.into_iter().take(k).enumerate() {
        values[i] = x[at];
        indices[i] = at as i64;
    }
}

/// Sum along axes.
#[custom_op(
    shape = (x: [.., n]) -> [..],
    axis = None,
    backward = |d_out| { x: d_out.expand(x.shape) },
)]
pub fn total<T: Num>(x: &[T], out: &mut T) {
    *out = x.iter().fold(T::zero(), |a, b| a + *b);
}

/// Where the largest element is; no gradient is needed.
#[custom_op(shape = (x: [.., n]) -> [..], axis = -1)]
pub fn argmax<T: Real>(x: &[T], out: &mut i64) {
    *out = (0..x.len()).max_by(|a, b| x[*a].partial_cmp(&x[*b]).unwrap()).unwrap_or(0) as i64;
}

/// A matrix product of cells.
#[custom_op(
    shape = (a: [.., m, k], b: [.., k, n], bias: [n]) -> [.., m, n],
    backward = |d_out| {
        let bt = b.swapaxes(-1, -2);
        a: matmul(d_out, bt),
        b: matmul(a.swapaxes(-1, -2), d_out),
        bias: none,
    },
)]
pub fn product<T: Num>(a: ArrayView2<T>, b: ArrayView2<'_, T>, bias: Option<&[T]>, mut out: ArrayViewMut2<T>) -> Result<()> {
    for ((i, j), o) in out.indexed_iter_mut() {
        *o = bias.map_or(T::zero(), |b| b[j]);
        for k in 0..a.ncols() {
            *o += a[[i, k]] * b[[k, j]];
        }
    }
    Ok(())
}

/// Saved intermediate results, arithmetic on dimensions.
#[custom_op(
    shape = (x: [.., n]) -> (out: [.., n / 2], [save] norm: [..]),
    backward = none,
    where eps >= 0.0, n > 0,
)]
pub fn halves<T: Float>(x: &[T], out: &mut [T], norm: &mut T, #[default = 1e-5] eps: f64) {
    let n = x.len() / 2;
    *norm = rt_lit(eps);
    for i in 0..n {
        out[i] = x[i] + x[n + i];
    }
}

fn rt_lit<T: Float>(v: f64) -> T {
    minitensor::kernels::lit(v)
}

/// Elements as positions, and literals in methods of slices.
#[custom_op(shape = (x: [.., n]) -> [.., bins] where bins > 0)]
pub fn histogram<T: Float>(x: &[T], bins: usize, out: &mut [T]) {
    out.fill(0.0);
    for x in x {
        let at = (*x * (bins as f64)) as usize;
        out[at.min(bins - 1)] += x.fract();
    }
    let largest = x.iter().fold(0.0, |largest, x| x.maximum(largest));
    let counts: Vec<T> = vec![0.0; 2];
    out[0] += 0.0 * largest + counts[1];
}

/// Casts are those of Rust, and a count is no element.
#[custom_op(shape = (x: [.., n]) -> (bytes: [.., n], share: [..]), backward = none)]
pub fn cast<T: Real>(x: &[T], bytes: &mut [u8], share: &mut T) {
    let count: f64 = x.iter().fold(0.0, |count, _| count + 1.0);
    for (byte, x) in bytes.iter_mut().zip(x) {
        *byte = *x as u8;
    }
    *share = if count > 2.0 { x[2] } else { x[0] };
}

/// Attributes beside elements, and closures over them.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn filtered<T: Float>(x: &[T], taps: &[f64], out: &mut T) {
    let twice = |x: T| x * 2.0;
    let norm = taps.iter().map(|tap| tap * tap).sum::<f64>();
    *out = taps.iter().zip(x).fold(0.0, |sum, (tap, x)| sum + *tap * *x);
    for (tap, x) in taps.iter().zip(x) {
        *out += twice(*x) - twice(*x) + tap * x.square();
    }
    for (i, x) in x.iter().enumerate().take(taps.len()) {
        *out += taps[i] * *x / (1.0 + norm);
    }
}

fn main() {
    assert_eq!(topk::op().inputs.len(), 1);
    assert_eq!(halves::op().outputs.len(), 2);
    let x = Tensor::from_vec(vec![300_i64, -1, 7], [3]).unwrap();
    let (bytes, share) = cast::call(&x).unwrap();
    assert_eq!((bytes.to_vec::<u8>().unwrap(), share.item::<i64>().unwrap()), (vec![44, 255, 7], 7));
    let x = Tensor::from_vec(vec![300.9, -1.0, f64::NAN], [3]).unwrap();
    assert_eq!(cast::call(&x).unwrap().0.to_vec::<u8>().unwrap(), [255, 0, 0]);
    let x = Tensor::from_vec(vec![1.0, 2.0], [2]).unwrap();
    assert_eq!(filtered::call(&x, &[0.5, -0.5]).unwrap().item::<f64>().unwrap(), -0.5 - 1.5 - 0.5 / 1.5);
}
