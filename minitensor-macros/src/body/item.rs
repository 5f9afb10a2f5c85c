//! The structure of a value in a body of machine numbers: which of its parts are elements.

use super::{Head, ValueKind};

/// A value, or each item of an iterator.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    One(ValueKind),
    /// A number of Rust.
    Number,
    Tuple(Vec<Item>),
    /// A slice, view, array or iterator of such items.
    List(Box<Item>),
}

/// Nothing is known.
pub const UNKNOWN: Item = Item::One(ValueKind::Static);

impl Item {
    pub fn list(of: Item) -> Item {
        Item::List(Box::new(of))
    }

    /// A value of this kind.
    pub fn of(kind: ValueKind) -> Item {
        match kind {
            ValueKind::Many(variable) => Item::list(Item::One(ValueKind::Data(variable))),
            ValueKind::Floats => Item::list(Item::One(ValueKind::Float)),
            kind => Item::One(kind),
        }
    }

    /// The kind of the value, if that says all about it.
    pub fn kind(&self) -> Option<ValueKind> {
        match self {
            Item::One(kind) => Some(*kind),
            Item::List(of) => match **of {
                Item::One(ValueKind::Data(variable)) => Some(ValueKind::Many(variable)),
                Item::One(ValueKind::Float) => Some(ValueKind::Floats),
                Item::One(ValueKind::Static) => Some(ValueKind::Static),
                _ => None,
            },
            Item::Number | Item::Tuple(_) => None,
        }
    }

    /// The items of a list. A constant may be a list of numbers.
    pub fn items(self) -> Item {
        match self {
            Item::List(of) => *of,
            Item::Number => Item::Number,
            _ => UNKNOWN,
        }
    }

    /// The part of a tuple at that position.
    pub fn part(self, at: usize) -> Item {
        match self {
            Item::Tuple(parts) => parts.into_iter().nth(at).unwrap_or(UNKNOWN),
            _ => UNKNOWN,
        }
    }

    /// The dtype variable of the element in a value, or of the first of several.
    pub fn element(&self) -> Option<Option<usize>> {
        match self {
            Item::One(ValueKind::Data(variable)) => Some(*variable),
            Item::Tuple(parts) => parts.iter().find_map(Item::element),
            _ => None,
        }
    }

    /// Whether it has a tuple.
    pub fn has_parts(&self) -> bool {
        match self {
            Item::Tuple(_) => true,
            Item::List(of) => of.has_parts(),
            _ => false,
        }
    }

    /// The same with elements instead of floats.
    pub fn promoted(self, head: &Head) -> Item {
        match self {
            Item::One(ValueKind::Float) => Item::One(ValueKind::Data((head.variables().len() == 1).then_some(0))),
            Item::Tuple(parts) => Item::Tuple(parts.into_iter().map(|part| part.promoted(head)).collect()),
            Item::List(of) => Item::list(of.promoted(head)),
            other => other,
        }
    }
}
