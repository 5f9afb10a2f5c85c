//! [`RowFunction`]: functions of whole rows whose results are rows.

#[cfg(feature = "engine")]
use super::{Computed, Reduction};
#[cfg(feature = "engine")]
use crate::indexing::sort::sort;
#[cfg(feature = "engine")]
use crate::number::scalar::lit;
use crate::program::Scan;
#[cfg(feature = "engine")]
use crate::runtime::stop::{Stop, filled};

/// A function of rows whose result is a row. An element of the result depends on several elements of a row. Programs have
/// these functions; the compiled passes of a body do not.
#[derive(Clone, Debug, PartialEq)]
pub enum RowFunction {
    /// `shift(x)`: the element of `x` at this distance before; 0 outside of the row.
    Shift(i64),
    /// `reverse(x)`: the elements in reverse order.
    Reverse,
    /// `cummax(x)`: the largest element up to this one, or NaN if there is one.
    Cummax,
    /// `recurrence(x, a)`: `hᵢ = aᵢ hᵢ₋₁ + xᵢ`, and `h₀ = x₀`.
    Recurrence,
    /// `argsort(x)`: the positions of the elements in ascending order. Equal elements keep their order, and NaN comes last.
    Argsort,
    /// `take(x, index)`: the element of `x` at the position `index`; 0 if there is no such position.
    Take,
    /// `put(x, index)`: the sum of the elements of `x` whose `index` is this position.
    Put,
    /// `scan(x, …)`: a result of `hᵢ = step(hᵢ₋₁, xᵢ)`, and `h₀ = x₀`.
    Scan(Scan),
}

impl RowFunction {
    /// All functions but scans, with their names and the number of their operands. `shift` is by one place.
    pub const ALL: [(RowFunction, &'static str, usize); 7] = [
        (RowFunction::Shift(1), "shift", 1),
        (RowFunction::Reverse, "reverse", 1),
        (RowFunction::Cummax, "cummax", 1),
        (RowFunction::Recurrence, "recurrence", 2),
        (RowFunction::Argsort, "argsort", 1),
        (RowFunction::Take, "take", 2),
        (RowFunction::Put, "put", 2),
    ];

    fn entry(&self) -> (&'static str, usize) {
        if let RowFunction::Scan(scan) = self {
            return ("scan", scan.arity());
        }
        let is_same = |other: &RowFunction| std::mem::discriminant(other) == std::mem::discriminant(self);
        let found = RowFunction::ALL.into_iter().find(|(other, ..)| is_same(other));
        found.map(|(_, name, arity)| (name, arity)).expect("the table has all functions")
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry().0
    }

    /// The number of its operands.
    pub fn arity(&self) -> usize {
        self.entry().1
    }

    /// The function of the table with this name. `places` is the distance of a shift, which the others do not have.
    pub fn named(name: &str, places: Option<i64>) -> Option<RowFunction> {
        let (function, ..) = RowFunction::ALL.into_iter().find(|(_, word, _)| *word == name)?;
        match (function, places) {
            (RowFunction::Shift(_), Some(places)) => Some(RowFunction::Shift(places)),
            (RowFunction::Shift(_), None) | (_, Some(_)) => None,
            (function, None) => Some(function),
        }
    }

    /// Computes the result for rows of one length, unless it is a scan.
    #[cfg(feature = "engine")]
    pub(crate) fn apply<T: Computed>(&self, x: &[&[T]], out: &mut [T]) {
        match (self, x) {
            (RowFunction::Shift(places), [x]) => shift(x, *places, out),
            (RowFunction::Reverse, [x]) => out.iter_mut().zip(x.iter().rev()).for_each(|(out, x)| *out = *x),
            (RowFunction::Cummax, [x]) => cummax(x, out),
            (RowFunction::Recurrence, [x, a]) => recurrence(x, a, out),
            (RowFunction::Argsort, [x]) => argsort(x, out),
            (RowFunction::Take, [x, index]) => {
                for (out, index) in out.iter_mut().zip(*index) {
                    *out = index.as_position(x.len()).map_or(T::ZERO, |at| x[at]);
                }
            }
            (RowFunction::Put, [x, index]) => {
                out.fill(T::ZERO);
                for (x, index) in x.iter().zip(*index) {
                    if let Some(at) = index.as_position(out.len()) {
                        out[at] += *x;
                    }
                }
            }
            _ => unreachable!("a program has the right number of operands"),
        }
    }
}

#[cfg(feature = "engine")]
fn shift<T: Computed>(x: &[T], places: i64, out: &mut [T]) {
    let distance = usize::try_from(places.unsigned_abs()).map_or(x.len(), |distance| distance.min(x.len()));
    let rest = x.len() - distance;
    if places >= 0 {
        out[..distance].fill(T::ZERO);
        out[distance..].copy_from_slice(&x[..rest]);
    } else {
        out[..rest].copy_from_slice(&x[distance..]);
        out[rest..].fill(T::ZERO);
    }
}

#[cfg(feature = "engine")]
fn cummax<T: Computed>(x: &[T], out: &mut [T]) {
    let mut top: T = Reduction::Max.identity();
    for (out, x) in out.iter_mut().zip(x) {
        top = top.maximum(*x);
        *out = top;
    }
}

#[cfg(feature = "engine")]
fn recurrence<T: Computed>(x: &[T], a: &[T], out: &mut [T]) {
    let Some((first, rest)) = out.split_first_mut() else { return };
    *first = x[0];
    let mut h = x[0];
    for ((out, x), a) in rest.iter_mut().zip(&x[1..]).zip(&a[1..]) {
        h = *a * h + *x;
        *out = h;
    }
}

#[cfg(feature = "engine")]
fn argsort<T: Computed>(x: &[T], out: &mut [T]) {
    let (mut values, mut indices) = (filled(T::ZERO, x.len()), filled(0i64, x.len()));
    if sort(x, false, &mut values, &mut indices).is_err() {
        Stop::OutOfMemory(x.len(), size_of::<u128>()).raise()
    }
    out.iter_mut().zip(indices).for_each(|(out, index)| *out = lit(index));
}
