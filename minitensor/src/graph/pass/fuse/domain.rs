//! [`Domain`]: what the loop of a fused call runs over.

use crate::dtype::DType;
use crate::tensor::Shape;

/// Elements of one shape, or rows along the last dimension of one shape.
#[derive(Clone, PartialEq, Debug)]
pub struct Domain {
    pub shape: Shape,
    /// Whether some values are reduced along rows.
    pub is_of_rows: bool,
    /// The dtype in which numbers are computed, if there are other values than truth values. Half floats are computed in `float32`.
    pub dtype: Option<DType>,
}

/// The part of a domain that a tensor of some shape has a value for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    /// Each element.
    Element,
    /// Each row, with a last dimension of size 1.
    Row,
    /// Each row, without a last dimension.
    Flat,
}

impl Domain {
    /// That of two loops together. A loop over rows may compute numbers of rows, too.
    pub fn joined(&self, other: &Domain) -> Option<Domain> {
        let (rows, others) = if self.is_of_rows { (self, other) } else { (other, self) };
        let fits = match (rows.is_of_rows, others.is_of_rows) {
            (true, false) => rows.place(&others.shape).is_some(),
            _ => rows.shape == others.shape,
        };
        let dtype = self.dtype.or(other.dtype);
        let is_same = other.dtype.is_none() || other.dtype == dtype;
        (fits && is_same).then(|| Domain { dtype, ..rows.clone() })
    }

    /// The sizes of all dimensions but that of the rows.
    pub fn batch(&self) -> &[usize] {
        self.shape.split_last().map_or(&[], |(_, batch)| batch)
    }

    /// The place of a tensor that a loop computes.
    pub fn place(&self, shape: &Shape) -> Option<Place> {
        match shape.split_last() {
            _ if *shape == self.shape => Some(Place::Element),
            _ if !self.is_of_rows => None,
            _ if **shape == *self.batch() => Some(Place::Flat),
            Some((1, batch)) if batch == self.batch() => Some(Place::Row),
            _ => None,
        }
    }

    /// How an element op that computes `place` reads a tensor from elsewhere, which broadcasts.
    pub fn read(&self, place: Place, shape: &Shape) -> Place {
        match place {
            Place::Flat => Place::Flat,
            _ if !self.is_of_rows => Place::Element,
            _ => match shape.last() {
                Some(1) => Place::Row,
                Some(_) => Place::Element,
                None => Place::Flat,
            },
        }
    }
}
