use minitensor::prelude::*;

/// A method.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn method<R: Row>(x: R) -> R {
    x.scan(|before, x| before + x)
}

/// A step of one parameter.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn one_parameter<R: Row>(x: R) -> R {
    R::scan(x, |x| x * 2.0)
}

/// A first value, as a fold has it.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn first_value<R: Row>(x: R) -> R {
    R::scan(0.0, x, |before, x| before + x)
}

/// A reduction in a step.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn reduces<R: Row>(x: R) -> R {
    R::scan(x, |before, x| before + x.sum())
}

/// A scan in a step.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn scans<R: Row>(x: R) -> R {
    R::scan(x, |before, x| before + R::scan(x, |b, x| b + x))
}

/// A condition as the next element.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn condition<R: Row>(x: R) -> R {
    R::scan(x, |before, x| before < x)
}

/// Two rows, of which the step returns one.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn one_result<R: Row>(x: R) -> R {
    let (y, _) = R::scan((x, 1.0), |(y, n), (x, _)| y + x / n);
    y
}

/// A sum beside the scan.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn changes<R: Row>(x: R) -> R {
    let mut total = 0.0 * x;
    R::scan(x, |before, x| {
        total += x;
        before + total
    })
}

/// A list beside the scan.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn collects<R: Row>(x: R) -> R {
    let mut all = vec![x];
    R::scan(x, |before, x| {
        let mut own = x;
        own += before;
        all.push(own);
        own
    })
}

/// One number for each row.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn number<R: Row>(x: R) -> R {
    R::scan(x, |before, x| before + x)
}

/// No loops of rows.
#[custom_op(shape = (x: [.., n]) -> [.., n], precompiled)]
pub fn compiled<R: Row>(x: R) -> R {
    R::scan(x, |before, x| before + x)
}

/// Single elements.
#[custom_op]
pub fn element<T: Float>(x: T) -> T {
    T::scan(x, |before, x| before + x)
}

fn main() {}
