//! [`Property`]: an identity that the results of an op satisfy, for all arguments.

use crate::attr::Attr;
use crate::signature::{List, Text};

/// An identity that the results of an op satisfy, for all arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum Property {
    /// The results are linear in these inputs together, whatever the other arguments are.
    Linear(List<u8>),
    /// The results remain the same if the inputs are exchanged.
    Symmetric,
    /// The result is the value of this [`Pattern`], as text.
    Replaces(Text),
}

/// An expression of the inputs and attributes of an op.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// The input at that position.
    Input(usize),
    /// The attribute at that position.
    Attr(usize),
    /// A constant.
    Const(Attr),
    /// A call of an op.
    Call {
        /// The op.
        op: String,
        /// The positional arguments.
        args: Vec<Pattern>,
        /// The keywords.
        keywords: Vec<(String, Pattern)>,
    },
}

impl Pattern {
    /// The inputs and attributes that it names.
    pub fn names(&self) -> Vec<Pattern> {
        match self {
            Pattern::Input(_) | Pattern::Attr(_) => vec![self.clone()],
            Pattern::Const(_) => Vec::new(),
            Pattern::Call { args, keywords, .. } => {
                args.iter().chain(keywords.iter().map(|(_, value)| value)).flat_map(Pattern::names).collect()
            }
        }
    }
}
