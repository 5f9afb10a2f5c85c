//! The rules that span several parts of an op, each a function under a plain sentence.

use crate::ast::Op;
use crate::diag::Diag;

pub fn op(_op: &Op, _diag: &mut Diag) {}
