//! Losses.

use minitensor::prelude::*;

use crate::arithmetic::{square, subtract};
use crate::reduction::{mean, sum};

/// The reduction of the losses of a batch.
#[derive(AttrEnum, Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// No reduction: one loss per example.
    None,
    /// The mean.
    Mean,
    /// The sum.
    Sum,
}

fn reduce(losses: Tensor, reduction: Reduction) -> Result<Tensor> {
    match reduction {
        Reduction::None => Ok(losses),
        Reduction::Mean => mean::call(&losses, None, false),
        Reduction::Sum => sum::call(&losses, None, false, None),
    }
}

/// `ln Σ eˣ − x[target]` of every row.
#[custom_op(name = "row::cross_entropy", shape = (logits: [.., n], target: [..]) -> [..], precompiled)]
pub fn row_cross_entropy<R: Row>(logits: R, target: R::Index) -> R {
    logits.logsumexp() - logits.at(target)
}

/// The cross entropy between `logits` (`[.., classes]`) and the class indices `target` (`[..]`, int64).
#[custom_op]
pub fn cross_entropy(
    logits: &Tensor,
    target: &Tensor,
    #[default = Reduction::Mean] reduction: Reduction,
) -> Result<Tensor> {
    reduce(row_cross_entropy::call(logits, target)?, reduction)
}

/// The squared error `(x − y)²`.
#[custom_op(alias = "mse_loss")]
pub fn mse(x: &Tensor, y: &Tensor, #[default = Reduction::Mean] reduction: Reduction) -> Result<Tensor> {
    reduce(square::call(&subtract::call(x, y)?)?, reduction)
}
