//! [`Truth`]: a truth value in memory.

use crate::number::machine::stored_as_it_is;
use crate::number::scalar::{Const, Element, Machine};

/// A byte of memory that holds a truth value: 0 is false, any other byte is true.
///
/// Tensors share memory with other code, which may write any byte to it at any time. Rust's `bool` must be 0 or 1, so
/// kernels never read a `bool` from memory. They read a `Truth`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    /// True unless the byte is 0.
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Truth {
    #[inline(always)]
    fn from(value: bool) -> Truth {
        Truth(value.into())
    }
}

impl From<Truth> for bool {
    #[inline(always)]
    fn from(value: Truth) -> bool {
        value.get()
    }
}

impl PartialEq for Truth {
    #[inline(always)]
    fn eq(&self, other: &Truth) -> bool {
        self.get() == other.get()
    }
}

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl std::fmt::Debug for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Element for Truth {
    type Mask = bool;
    #[inline(always)]
    fn constant(value: Const) -> Self {
        bool::constant(value).into()
    }
    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self == other
    }
    #[inline(always)]
    fn truthy(self) -> bool {
        self.get()
    }
    #[inline(always)]
    fn select(mask: bool, a: Self, b: Self) -> Self {
        if mask { a } else { b }
    }
}

impl Machine for Truth {
    stored_as_it_is!();
    const IS_EXACT: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cast;
    use crate::map::{Map, map};

    #[test]
    fn any_byte_but_zero_is_true() {
        for byte in [1, 2, 128, 255] {
            let x = Truth(byte);
            assert!(x.get() && x.truthy() && x == Truth::from(true) && x.equal(Truth(1)) && x != Truth(0));
            assert_eq!((Cast::<u8>::cast(x), Cast::<f32>::cast(x), Cast::<i64>::cast(x)), (1, 1.0, 1));
        }
        assert!(!Truth(0).get() && !Truth::from(false).truthy() && Truth::default() == Truth(0));
        assert_eq!(format!("{:?}", Truth(255)), "true");
    }

    #[test]
    fn loops_read_masks_as_bytes() {
        struct Not;
        impl Map for Not {
            type In = (bool, bool);
            type Out = (bool, u8);
            fn eval(&self, (a, b): (bool, bool)) -> (bool, u8) {
                (!a, a as u8 + b as u8)
            }
        }
        let (a, b) = ([0u8, 1, 2, 255], [255u8, 255, 0, 3]);
        let (mut not, mut sums) = ([9u8; 4], [9u8; 4]);
        // SAFETY: all arrays have 4 elements of a byte.
        unsafe { map(&Not, 4, &[a.as_ptr(), b.as_ptr()], &[not.as_mut_ptr(), sums.as_mut_ptr()]) }
        assert_eq!((not, sums), ([1, 0, 0, 0], [1, 2, 1, 2]));
    }
}
