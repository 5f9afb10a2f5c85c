//! [`OpEntry`]: the entry by which the registry finds a definition.

use super::def::OpDef;

/// The entry that `#[custom_op]` submits to `inventory`.
pub struct OpEntry(pub &'static OpDef);
inventory::collect!(OpEntry);
