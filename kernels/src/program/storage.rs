//! [`Storage`]: how a number is stored in memory.

/// How the numbers of an input or output of a program are stored in memory. A program computes in `f32` or `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Storage {
    /// As the numbers that the program computes with.
    #[default]
    Own,
    /// As float16, of a program that computes in `f32`.
    Float16,
    /// As bfloat16, of a program that computes in `f32`.
    BFloat16,
    /// As one number for all elements, of an input.
    One,
    /// As every other number in memory, of an input of a program that computes in `f32`.
    EveryOther,
    /// As the numbers that the program computes with, of an output that is too large for the cache: stores bypass it.
    NonTemporal,
}

impl Storage {
    /// The distance in bytes between two numbers, if the size of the program's numbers is `own`.
    pub fn step(self, own: usize) -> usize {
        match self {
            Storage::Own | Storage::NonTemporal => own,
            Storage::Float16 | Storage::BFloat16 => 2,
            Storage::One => 0,
            Storage::EveryOther => 2 * own,
        }
    }

    /// Whether only programs that compute in `f32` have it.
    pub fn is_of_singles(self) -> bool {
        self.is_half() || self == Storage::EveryOther
    }

    /// Whether it is a half float.
    pub fn is_half(self) -> bool {
        matches!(self, Storage::Float16 | Storage::BFloat16)
    }
}
