//! [`Copy`]: whether an import may or must copy.

/// Whether a tensor shares memory with the object that it is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    Always,
    IfNeeded,
    Never,
}
