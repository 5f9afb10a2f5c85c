//! The structure of a value in a body of machine numbers: which of its parts are elements.

use super::ValueKind;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    One(ValueKind),
    /// An integer of Rust.
    Number,
    /// A constant, or an item of one: a number of Rust of a type that is not known.
    Constant,
    /// The result of a function that is not known, called with elements. Beside a float, it is an element.
    Maybe,
    Tuple(Vec<Item>),
    /// A slice, view, array or iterator of such items.
    List(Box<Item>),
    /// A struct of this name.
    Struct(String),
    /// A closure, by its address.
    Closure(usize),
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
            // `Some(x)` is what `x` is.
            ValueKind::Option(variable) => Item::One(ValueKind::Data(variable)),
            kind => Item::One(kind),
        }
    }

    /// Whether it is a number of Rust that becomes an element beside one.
    pub fn is_number(&self) -> bool {
        matches!(self, Item::Number | Item::Constant)
    }

    /// The kind of the value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Item::One(kind) => *kind,
            Item::List(of) => match **of {
                Item::One(ValueKind::Data(variable)) => ValueKind::Many(variable),
                Item::One(ValueKind::Float) => ValueKind::Floats,
                _ => ValueKind::Static,
            },
            _ => ValueKind::Static,
        }
    }

    /// The items of a list. A constant may be a list of numbers.
    pub fn items(self) -> Item {
        match self {
            Item::List(of) => *of,
            number @ (Item::Number | Item::Constant | Item::Maybe) => number,
            _ => UNKNOWN,
        }
    }

    /// The part of a tuple at that position.
    pub fn part(self, at: usize) -> Item {
        match self {
            Item::Tuple(parts) => parts.into_iter().nth(at).unwrap_or(UNKNOWN),
            number @ (Item::Number | Item::Constant | Item::Maybe) => number,
            _ => UNKNOWN,
        }
    }

    /// Whether it is certainly an element.
    pub fn is_element(&self) -> bool {
        matches!(self, Item::One(ValueKind::Data(_)))
    }

    /// Whether it is an element, or has one.
    pub fn has_element(&self) -> bool {
        match self {
            Item::One(ValueKind::Data(_)) => true,
            Item::Tuple(parts) => parts.iter().any(Item::has_element),
            Item::List(of) => of.has_element(),
            Item::Struct(_) | Item::Maybe => true,
            _ => false,
        }
    }

    /// Whether a type determines it.
    pub fn is_certain(&self) -> bool {
        match self {
            Item::Tuple(parts) => parts.iter().all(Item::is_certain),
            Item::List(of) => of.is_certain(),
            item => *item != UNKNOWN,
        }
    }

    /// A place that holds both values: an element if one of them is.
    pub fn join(self, other: Item) -> Item {
        use ValueKind::{Data, Float};
        match (self, other) {
            (Item::Tuple(a), Item::Tuple(b)) => {
                let mut longer = if a.len() > b.len() { (a, b) } else { (b, a) };
                for (part, other) in longer.0.iter_mut().zip(longer.1) {
                    *part = std::mem::replace(part, UNKNOWN).join(other);
                }
                Item::Tuple(longer.0)
            }
            (Item::List(a), Item::List(b)) => Item::list(a.join(*b)),
            (Item::One(Data(a)), Item::One(Data(b))) => Item::One(Data(a.or(b))),
            (data @ Item::One(Data(_)), _) | (_, data @ Item::One(Data(_))) => data,
            (Item::One(ValueKind::Static), other) | (other, Item::One(ValueKind::Static)) => other,
            (Item::Maybe, Item::One(Float)) | (Item::One(Float), Item::Maybe) => Item::One(Data(None)),
            (Item::Tuple(parts), Item::Maybe) | (Item::Maybe, Item::Tuple(parts)) => {
                Item::Tuple(parts.into_iter().map(|part| part.join(Item::Maybe)).collect())
            }
            (Item::One(Float), Item::Number | Item::Constant) | (Item::Number | Item::Constant, Item::One(Float)) => {
                Item::One(Float)
            }
            (Item::Number, Item::Constant) | (Item::Constant, Item::Number) => Item::Constant,
            (first, _) => first,
        }
    }

    /// The result of an operator.
    pub fn arithmetic(self, other: Item) -> Item {
        use ValueKind::{Data, Float, Static};
        match (self, other) {
            (Item::One(Data(a)), Item::One(Data(b))) => Item::One(Data(a.or(b))),
            (data @ Item::One(Data(_)), _) | (_, data @ Item::One(Data(_))) => data,
            (Item::Maybe, Item::One(Float)) | (Item::One(Float), Item::Maybe) => Item::One(Data(None)),
            (Item::Maybe, _) | (_, Item::Maybe) => Item::Maybe,
            (Item::One(Float), Item::One(Float | Static) | Item::Number | Item::Constant) => Item::One(Float),
            (Item::One(Static) | Item::Number | Item::Constant, Item::One(Float)) => Item::One(Float),
            (Item::Number, Item::Number) => Item::Number,
            (Item::Number | Item::Constant, Item::Number | Item::Constant) => Item::Constant,
            _ => UNKNOWN,
        }
    }
}
