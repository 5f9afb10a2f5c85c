//! The history of views. All views of a base tensor, the whole, share its history. A recorded change of a view is recorded
//! as a change of the whole. A view whose memory was changed since its creation derives its history from the whole again.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::node::{Edge, Meta, Node};
use crate::attr::Attr;
use crate::error::{Error, Result};
use crate::op::by_name::names;
use crate::op::{OpDef, OpName, OpRef};
use crate::tensor::{Origin, Region, Tensor};

/// The whole after a change of a part.
static REPLACED: OpName = OpName::new("region::replaced");

/// The history of a view, derived from the whole after a change; `None` if the whole has no history.
pub(super) fn follow(view: &Tensor, origin: &Origin) -> Result<Option<(Arc<Node>, usize)>> {
    let whole = &origin.whole;
    let Some(edge) = whole.edge()? else { return Ok(None) };
    let node = node(names::PART.get()?, Region::of(whole, view), &[whole], view, smallvec![Some(edge)]);
    Ok(Some((node, 0)))
}

/// A recorded call of an op over a region. The op does not run, since its output already exists.
fn node(
    op: &OpRef,
    region: Region,
    inputs: &[&Tensor],
    output: &Tensor,
    edges: SmallVec<[Option<Edge>; 2]>,
) -> Arc<Node> {
    let metas = inputs.iter().map(|t| Some(Meta::of(t))).collect();
    let saved = std::iter::repeat_with(|| None).take(inputs.len() + 1).collect();
    let attrs = [Attr::Ints(region.to_ints().into())];
    Arc::new(Node::new(op.clone(), &attrs, metas, smallvec![Meta::of(output)], edges, None, saved))
}

/// The base tensor of a view that a recorded call is about to change in place.
pub(crate) struct Whole {
    /// The position of the view among the inputs.
    pub input: usize,
    tensor: Tensor,
    edge: Option<Edge>,
    op: OpRef,
}

impl Whole {
    /// The base tensor of an input of a call, if the input is a view.
    pub(crate) fn of(op: &OpDef, input: usize, view: &Tensor) -> Result<Option<Whole>> {
        let Some(origin) = view.origin() else { return Ok(None) };
        let context = |e: Error| e.context(format!("op '{}'", op.name));
        if origin.is_quiet {
            return Err(Error::runtime(format!(
                "op '{}' cannot record the in-place change of '{}', which is a view created under no_grad(); create \
                 the view outside no_grad(), or change it under no_grad()",
                op.name,
                op.parameter(input).name
            )));
        }
        let edge = origin.whole.edge().map_err(context)?;
        Ok(Some(Whole { input, tensor: origin.whole.clone(), edge, op: REPLACED.get()?.clone() }))
    }

    /// Updates the history of the base tensor. The changed view is output `index` of `node`.
    pub(crate) fn was_changed(self, view: &Tensor, node: &Arc<Node>, index: usize) {
        let edges = smallvec![self.edge, Some(Edge::Node(node.clone(), index))];
        let region = Region::of(&self.tensor, view);
        let replaced = self::node(&self.op, region, &[&self.tensor, view], &self.tensor, edges);
        self.tensor.grad_meta_or_init().rebase(replaced, 0, view.storage().version());
    }
}
