//! Sets of dtypes, and the scalar traits for them in Rust.

use std::fmt;

use super::DType;

/// A set of dtypes that an op accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeSet(u32);

impl DTypeSet {
    /// Every dtype: the trait `Element`.
    pub const ELEMENT: DTypeSet = DTypeSet((1 << DType::ALL.len()) - 1);
    /// The trait `Int`.
    pub const INT: DTypeSet =
        DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64]);
    /// `bool` and integers.
    pub const WHOLE: DTypeSet = DTypeSet::INT.union(DTypeSet::of(&[DType::Bool]));
    /// The trait `Float`.
    pub const FLOAT: DTypeSet = DTypeSet::of(&[DType::F16, DType::Bf16, DType::F32, DType::F64]);
    /// The trait `Real`: integers and floats.
    pub const REAL: DTypeSet = DTypeSet::INT.union(DTypeSet::FLOAT);
    /// The trait `Field`: floats and complex numbers.
    pub const FIELD: DTypeSet = DTypeSet::FLOAT.union(DTypeSet::of(&[DType::C64, DType::C128]));
    /// The trait `Num`: all but `bool`.
    pub const NUM: DTypeSet = DTypeSet::INT.union(DTypeSet::FIELD);

    /// The set of the given dtypes.
    pub const fn of(dtypes: &[DType]) -> DTypeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < dtypes.len() {
            bits |= 1 << dtypes[i] as u32;
            i += 1;
        }
        DTypeSet(bits)
    }

    /// Whether the dtype is in the set.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// Whether no dtype is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The union of both sets.
    pub const fn union(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 | other.0)
    }

    /// The intersection of both sets.
    pub const fn intersection(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & other.0)
    }

    /// The dtypes that satisfy the predicate.
    pub fn filter(self, holds: impl Fn(DType) -> bool) -> DTypeSet {
        self.iter().filter(|d| holds(*d)).fold(DTypeSet::of(&[]), |set, d| set.union(DTypeSet::of(&[d])))
    }

    /// The dtypes, in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.iter().copied().filter(move |d| self.contains(*d))
    }
}

impl fmt::Display for DTypeSet {
    /// A word if there is one (`floating`, `integer`, …), else the list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WORDS: &[(DTypeSet, &str)] = &[
            (DTypeSet::ELEMENT, "any dtype"),
            (DTypeSet::NUM, "integer, floating or complex dtypes"),
            (DTypeSet::REAL, "integer or floating dtypes"),
            (DTypeSet::FIELD, "floating or complex dtypes"),
            (DTypeSet::INT, "integer dtypes"),
            (DTypeSet::FLOAT, "floating dtypes"),
        ];
        match WORDS.iter().find(|(set, _)| set == self) {
            Some((_, word)) => f.write_str(word),
            None => {
                let names: Vec<_> = self.iter().map(DType::name).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

/// The trait that bounds a dtype variable in Rust.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Its name, such as `Float`. The constant of [`DTypeSet`] has the same name in capitals.
    pub name: &'static str,
    /// The dtypes that implement it.
    pub dtypes: DTypeSet,
    /// Whether its numbers can be compared with `<`.
    pub is_ordered: bool,
}

/// The scalar traits, weakest first.
pub const BOUNDS: &[Bound] = &[
    Bound { name: "Element", dtypes: DTypeSet::ELEMENT, is_ordered: false },
    Bound { name: "Num", dtypes: DTypeSet::NUM, is_ordered: false },
    Bound { name: "Real", dtypes: DTypeSet::REAL, is_ordered: true },
    Bound { name: "Int", dtypes: DTypeSet::INT, is_ordered: true },
    Bound { name: "Field", dtypes: DTypeSet::FIELD, is_ordered: false },
    Bound { name: "Float", dtypes: DTypeSet::FLOAT, is_ordered: true },
    Bound { name: "Row", dtypes: DTypeSet::FLOAT, is_ordered: true },
    Bound { name: "IntRow", dtypes: DTypeSet::INT, is_ordered: true },
];

impl Bound {
    /// The trait with that name.
    pub fn named(name: &str) -> Option<Bound> {
        BOUNDS.iter().find(|b| b.name == name).copied()
    }

    /// Whether its numbers are elements of rows.
    pub fn is_of_rows(&self) -> bool {
        matches!(self.name, "Row" | "IntRow")
    }

    /// Whether all its dtypes are real floats.
    pub fn is_of_floats(&self) -> bool {
        self.dtypes == DTypeSet::FLOAT
    }

    /// Whether all its dtypes are integers.
    pub fn is_of_integers(&self) -> bool {
        self.dtypes == DTypeSet::INT
    }

    /// The names of all traits.
    pub fn names() -> Vec<&'static str> {
        BOUNDS.iter().map(|b| b.name).collect()
    }
}
