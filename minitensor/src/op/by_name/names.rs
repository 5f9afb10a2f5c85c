//! The ops that the engine itself calls, by name.

use crate::op::OpName;

macro_rules! names {
    ($($name:ident = $op:literal),* $(,)?) => {
        $(#[doc = concat!("The op `", $op, "`.")] pub static $name: OpName = OpName::new($op);)*
    };
}

names! {
    ADD = "add", ASTYPE = "astype", CLONE = "clone", CONCAT = "concat", EXPAND = "expand", PART = "region::part",
    PERMUTE = "permute_dims", REAL = "real", RESHAPE = "reshape", SQUEEZE = "squeeze", SUM = "sum", UNSLICE = "unslice",
    UNSQUEEZE = "unsqueeze",
}
