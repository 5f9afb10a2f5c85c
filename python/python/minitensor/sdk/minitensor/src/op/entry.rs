//! [`OpEntry`]: what every definition leaves to be found.

use super::def::OpDef;

/// What `#[custom_op]` submits.
pub struct OpEntry(pub &'static OpDef);
inventory::collect!(OpEntry);
