//! [`Drawn`]: the numbers that an op with `#[position]`, `#[uniform]` or `#[normal]` makes.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::call::Arg;
use crate::op::call::dtype_rule::DTypes;
use crate::op::{OpName, OpRef, ShapeRule};
use crate::tensor::{Device, Shape, Tensor, normalize_axis};

static POSITIONS: OpName = OpName::new("indexing::positions");
static RESHAPE: OpName = OpName::new("reshape");
static SKIP: OpName = OpName::new("random::skip");
static KEY: OpName = OpName::new("random::key");
static UNIFORM: OpName = OpName::new("random::uniform");
static NORMAL: OpName = OpName::new("random::normal");

/// The shape and the dtypes of a call, and the keys of its random numbers.
pub struct Drawn {
    name: String,
    /// The shape of an element for each number: that of the elements, or of the rows.
    shape: Shape,
    /// Whether the last dimension is that of a row, which the op computes as one.
    is_of_rows: bool,
    dtypes: DTypes,
    /// A tensor of the call, on whose device the numbers are.
    first: Tensor,
    key: Option<Tensor>,
    /// The number of draws so far, and how many blocks each of them takes.
    drawn: usize,
    blocks: usize,
}

impl Drawn {
    /// Makes numbers for a call of `op`, which takes them in place of the inputs that are `None` and not optional. It draws random
    /// numbers `count` times, with the next key of the global generator if none is given.
    ///
    /// # Errors
    /// If the inputs do not broadcast, or do not have dtypes that the op takes.
    pub fn new(op: &OpRef, inputs: &[Option<&Tensor>], key: Option<&Tensor>, count: usize) -> Result<Drawn> {
        let args: SmallVec<[Arg<'_>; 8]> = inputs.iter().map(|t| t.map_or(Arg::None, Arg::Tensor)).collect();
        let dtypes = op.resolve_dtypes(&args, &[])?;
        let rule = if let ShapeRule::Core(rule) = &op.shape { Some(rule) } else { None };
        let (mut batch, mut row): (Shape, Option<usize>) = (Shape::default(), None);
        for (i, t) in inputs.iter().enumerate() {
            let Some(t) = t else { continue };
            let mut own: &[usize] = t.shape();
            if let Some(dims) = rule.map(|rule| &rule.inputs[i]) {
                let core = own.len().saturating_sub(dims.core.len());
                row = row.or(own[core..].first().copied());
                own = if dims.batch { &own[..core] } else { &[] };
            }
            batch = batch.broadcast(&own.into()).ok_or_else(|| {
                Error::value(format!(
                    "'{}' has shape {}, which does not broadcast with {batch}",
                    op.inputs[i].name,
                    t.shape()
                ))
            })?;
        }
        let shape: Shape = batch.iter().copied().chain(row).collect();
        let first = inputs.iter().copied().flatten().next().ok_or_else(|| Error::type_("takes at least one tensor"))?;
        // A block has two numbers.
        let blocks = shape.numel().div_ceil(2);
        let key = match key {
            None if count > 0 => Some(KEY.call(&[first.into(), ((2 * blocks * count) as i64).into()], &[])?),
            key => key.cloned(),
        };
        let name = op.name.to_string();
        Ok(Drawn { name, shape, is_of_rows: rule.is_some(), dtypes, first: first.clone(), key, drawn: 0, blocks })
    }

    /// The dtype of a variable. The results of the whole op are rounded to it once, so that half floats are not needed before.
    fn dtype(&self, variable: usize) -> DType {
        let dtype = self.dtypes.get(variable).copied().unwrap_or(DType::F32);
        if self.first.device() == Device::Meta { dtype } else { dtype.compute() }
    }

    /// The position of each element along an axis.
    ///
    /// # Errors
    /// If there is no such axis, or if it is that of the rows.
    pub fn position(&self, variable: usize, axis: i64) -> Result<Tensor> {
        let axis = normalize_axis(axis, self.shape.len())?;
        let rank = self.shape.len() - usize::from(self.is_of_rows);
        if axis == rank {
            return Err(Error::value(format!(
                "op '{}' asks for the position of a row along the axis of the row; write x.position() for that of an element",
                self.name
            )));
        }
        let size = self.shape[axis] as i64;
        let positions = POSITIONS.call(&[(&self.first).into(), size.into(), self.dtype(variable).into()], &[])?;
        let mut sizes = vec![1_i64; rank - axis];
        sizes[0] = size;
        RESHAPE.call(&[(&positions).into(), (&sizes[..]).into()], &[])
    }

    /// Uniform random numbers in `[0, 1)`.
    ///
    /// # Errors
    /// Those of drawing them.
    pub fn uniform(&mut self, variable: usize) -> Result<Tensor> {
        self.draw(&UNIFORM, variable)
    }

    /// Random numbers of the standard normal distribution.
    ///
    /// # Errors
    /// Those of drawing them.
    pub fn normal(&mut self, variable: usize) -> Result<Tensor> {
        self.draw(&NORMAL, variable)
    }

    fn draw(&mut self, op: &OpName, variable: usize) -> Result<Tensor> {
        let first = self.key.as_ref().ok_or_else(|| Error::runtime("internal error: random numbers without a key"))?;
        let skipped = 2 * self.blocks * self.drawn;
        self.drawn += 1;
        let key = if skipped == 0 { first.clone() } else { SKIP.call(&[first.into(), (skipped as i64).into()], &[])? };
        let sizes: Vec<i64> = self.shape.iter().map(|size| *size as i64).collect();
        op.call(&[(&key).into(), (&sizes[..]).into(), self.dtype(variable).into()], &[])
    }
}
