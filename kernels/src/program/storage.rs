//! [`Storage`]: how a number is stored in memory.

/// How the numbers of an input or output of a program are stored in memory. A program computes in 32 or 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Storage {
    /// As the numbers that the program computes with.
    #[default]
    Own,
    /// As float16, of a program that computes in `f32`.
    Float16,
    /// As bfloat16, of a program that computes in `f32`.
    BFloat16,
    /// As `i8`, of a program that computes in 32 bits.
    Int8,
    /// As `i16`, of such a program.
    Int16,
    /// As `u8`, of such a program.
    UInt8,
    /// As `u16`, of such a program.
    UInt16,
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
            Storage::Int8 | Storage::UInt8 => 1,
            Storage::Float16 | Storage::BFloat16 | Storage::Int16 | Storage::UInt16 => 2,
            Storage::One => 0,
            Storage::EveryOther => 2 * own,
        }
    }

    /// Whether only programs that compute in `f32` have it.
    pub fn is_of_singles(self) -> bool {
        self.is_half() || self == Storage::EveryOther
    }

    /// Whether it is an integer of fewer bits than the program computes with.
    pub fn is_narrow(self) -> bool {
        matches!(self, Storage::Int8 | Storage::Int16 | Storage::UInt8 | Storage::UInt16)
    }

    /// Whether a store keeps only the lowest bits of a number.
    pub fn is_lowest_bits(self) -> bool {
        self.is_narrow() || self == Storage::BFloat16
    }

    /// Whether it is a half float.
    pub fn is_half(self) -> bool {
        matches!(self, Storage::Float16 | Storage::BFloat16)
    }
}
