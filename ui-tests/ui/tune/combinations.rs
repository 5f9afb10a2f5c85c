use minitensor::prelude::*;

/// The transpose.
#[custom_op(
    shape = (x: [.., m, n]) -> [.., n, m],
    backward = none,
    tune = [tile = [4, 8, 12, 16, 20, 24, 28, 32], grain = [1, 2, 3, 4, 5, 6, 7, 8, 9]],
)]
pub fn turn<T: Num>(x: ArrayView2<T>, mut out: ArrayViewMut2<T>, tile: usize) {
    out[[0, 0]] = x[[tile, 0]];
}

fn main() {}
