use minitensor::prelude::*;

/// The smaller number, then ten times the larger one.
#[custom_op]
pub fn ordered<T: Float>(x: T, y: T) -> T {
    let mut p = [x, y];
    let more = if x > y {
        p.swap(0, 1);
        1.0
    } else {
        0.0
    };
    p[0] + 10.0 * p[1] + more
}

/// The sum of the numbers that are kept.
#[custom_op]
pub fn kept<T: Float>(x: T, y: T) -> T {
    let mut all = vec![x];
    if x > y {
        all.push(y);
    } else {
        all.reverse();
    }
    all.iter().fold(0.0, |a, b| a + b)
}

/// The number of steps, in a list.
#[custom_op]
pub fn steps<T: Float>(x: T) -> T {
    let mut p = [x, x];
    let mut s = x;
    for _ in 0..3 {
        if s < 0.0 {
            break;
        }
        s -= 1.0;
        p.fill(s);
    }
    p[0]
}

/// Assigns in a condition.
#[custom_op]
pub fn counted<T: Float>(x: T, y: T) -> T {
    let mut t = x;
    if x > 0.0 && {
        t += 1.0;
        t > y
    } {
        t
    } else {
        t - y
    }
}

/// A type of its own, whose methods the macro does not know.
struct Counter<T>(T);

impl<T: Float> Counter<T> {
    fn count(&mut self) {
        self.0 = self.0 + T::one();
    }
}

/// Counts in a branch.
#[custom_op]
pub fn branches<T: Float>(x: T) -> T {
    let mut counter = Counter(x);
    let y = if x > 0.0 {
        counter.count();
        1.0
    } else {
        2.0
    };
    counter.0 * y
}

fn main() {}
