//! [`Combine`]: how the results for parts of a row combine to the result for the row.

/// How the results of a reduction for two parts of a row combine to the result for the whole row, in any order. Its word, except
/// `average`, is the name of an element op that combines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// They are added.
    Add,
    /// They are multiplied.
    Multiply,
    /// The larger one.
    Maximum,
    /// The smaller one.
    Minimum,
    /// True if any of them is.
    LogicalOr,
    /// True if both are.
    LogicalAnd,
    /// Their mean, weighted by the numbers of elements.
    Average,
}

/// Each of them, its word, and the reduction that combines any number of results.
const ALL: [(Combine, &str, &str); 7] = [
    (Combine::Add, "add", "sum"),
    (Combine::Multiply, "multiply", "prod"),
    (Combine::Maximum, "maximum", "max"),
    (Combine::Minimum, "minimum", "min"),
    (Combine::LogicalOr, "logical_or", "any"),
    (Combine::LogicalAnd, "logical_and", "all"),
    (Combine::Average, "average", "mean"),
];

impl Combine {
    /// The words.
    pub fn words() -> [&'static str; 7] {
        ALL.map(|(_, word, _)| word)
    }

    /// The one with this word.
    pub fn from_word(word: &str) -> Option<Combine> {
        ALL.iter().find(|(_, known, _)| *known == word).map(|(combine, ..)| *combine)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        ALL[self as usize].1
    }

    /// The name of the reduction that combines the results of parts of equal size.
    pub fn reduction(self) -> &'static str {
        ALL[self as usize].2
    }

    /// Its position in [`Combine::words`].
    pub fn number(self) -> usize {
        self as usize
    }
}
