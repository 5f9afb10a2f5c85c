//! [`Together`]: one row, or several in a tuple.

use super::RealRow;

/// One row, or a tuple of two to eight rows.
pub trait Together<R: RealRow>: Sized {
    /// The rows in order.
    fn into_rows(self) -> Vec<R>;
    /// The same with these rows instead.
    fn from_rows(rows: &[R]) -> Self;
}

impl<R: RealRow> Together<R> for R {
    fn into_rows(self) -> Vec<R> {
        vec![self]
    }
    fn from_rows(rows: &[R]) -> R {
        rows[0]
    }
}

macro_rules! tuples {
    ($($($row:ident $k:tt),*;)*) => {$(
        impl<R: RealRow> Together<R> for ($($row),*) {
            fn into_rows(self) -> Vec<R> {
                vec![$(self.$k),*]
            }
            fn from_rows(rows: &[R]) -> Self {
                ($(rows[$k]),*)
            }
        }
    )*};
}
tuples! {
    R 0, R 1;
    R 0, R 1, R 2;
    R 0, R 1, R 2, R 3;
    R 0, R 1, R 2, R 3, R 4;
    R 0, R 1, R 2, R 3, R 4, R 5;
    R 0, R 1, R 2, R 3, R 4, R 5, R 6;
    R 0, R 1, R 2, R 3, R 4, R 5, R 6, R 7;
}
