//! Row ops as users write them pass opcheck. A cell op reduces over its batch.

use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor_ops as _;

#[path = "../../ui-tests/ui/pass/rows.rs"]
mod users;

use users::{huber_rows, norm_of, ranked_probability, tempered};

#[test]
fn rows_pass_opcheck() -> Result<()> {
    users::main()?;
    for op in [tempered::op(), huber_rows::op(), norm_of::op(), ranked_probability::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    let x = Tensor::from_vec(vec![1.0, 2.0, 4.0, -1.0, 0.5, 0.25], [2, 3])?;
    let t = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    let (p, _) = tempered::call(&x, &t, -1, false)?;
    let sample = Sample { inputs: vec![Some(x), Some(p), None], attrs: vec![0.5.into(), false.into()] };
    opcheck(&huber_rows::op(), &[sample]).into_result()
}
