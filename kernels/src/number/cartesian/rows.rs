//! Sums and places in rows of complex numbers.

use super::Complex;
use crate::row::Row;

macro_rules! of_parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty)?);)*) => {
        impl<R: Row> Complex<R> {
            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $name(self $(, $argument: $type)?) -> Self {
                    Complex::new(self.re.$name($($argument)?), self.im.$name($($argument)?))
                }
            )*
        }
    };
}
of_parts! {
    /// The sum over the row.
    sum();
    /// The mean of the row.
    mean();
    /// The sum of the elements up to this one.
    cumsum();
    /// The sum of the elements from this one on.
    reverse_cumsum();
    /// The elements in reverse order.
    reverse();
    /// The element this many places before, or 0 outside of the row.
    shift(places: i64);
}
