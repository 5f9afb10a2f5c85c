//! Graphs: recorded calls, which run again without the code that made them.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | [`Recording`]: records the calls of a thread at dispatch |
//! | [`recorder`], [`release`] | what has been recorded, and how its memory is given back |
//! | [`ir`] | [`Graph`]: values and the calls that compute them |
//! | [`verify`] | the invariants of a graph |
//! | [`recompute`] | the tensors that are saved for a gradient |
//! | [`pass`] | functions from graph to graph, such as fusion |
//! | [`run`] | [`Executable`]: a graph that runs |
//! | [`traced`], [`gradient`] | [`Traced`]: a recorded function, with its gradient |
//! | [`portable`] | [`PortableGraph`]: a recorded function for another process |
//! | [`batch`] | [`Batch`]: a recorded function of one example, run with a whole batch |
//! | [`detached`] | [`DetachedApart`]: a recorded function whose detached values are constants |
//! | [`window`] | what distinguishes the tensors of one storage |
//! | [`argument`], [`captured`] | the conditions under which a recorded function is valid |
//! | [`show`] | graphs as text and for Graphviz |

mod argument;
mod batch;
mod captured;
mod detached;
mod gradient;
mod ir;
mod leaf;
pub mod pass;
mod portable;
mod recompute;
pub(crate) mod record;
mod recorder;
mod release;
mod run;
mod show;
mod traced;
mod verify;
mod window;

pub use batch::{Batch, Randomness, Replay};
pub(crate) use detached::DetachedApart;
pub use ir::{Call, Cut, Graph, Operand, Source, Value, ValueId};
pub use portable::PortableGraph;
pub use record::{READS_AN_ARRAY, Recording, is_recording, last_call_takes, refuse, set_locate};
pub use run::{Executable, Reads};
pub use traced::Traced;
pub use verify::verify;
pub(crate) use window::Window;
