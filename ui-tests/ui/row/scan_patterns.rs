use minitensor::prelude::*;

/// A pair of names for one row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn one_row<R: Row>(x: R) -> R {
    R::scan(x, |(a, b), x| a + b * x)
}

/// Three names for two rows.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn three_names<R: Row>(x: R) -> R {
    R::scan((x, x), |(a, b), (x, y, z)| (a + x + z, b + y)).0
}

/// Three results of two rows.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn three_results<R: Row>(x: R) -> R {
    let (a, _, _) = R::scan((x, x), |(a, b), (x, y)| (a + x, b + y));
    a
}

/// Nine rows.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn nine_rows<R: Row>(x: R) -> R {
    let all = R::scan((x, x, x, x, x, x, x, x, x), |before, _| before);
    all.0
}

fn main() {}
