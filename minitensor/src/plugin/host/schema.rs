//! Reads the signature of an op from its table: inputs, attributes, outputs, dtype variables.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use minitensor_schema::name::check_word;

use super::read::Reader;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::fork::lock::try_lock;
use crate::op::*;
use crate::plugin::abi::{self, Str, arity, body, combine, core, kind, most, role, rule, slice};
use crate::tuning;

impl Reader {
    /// # Safety
    /// As for [`Ops::add`].
    pub unsafe fn list<A, T: Clone + 'static>(
        &self,
        items: *const A,
        n: i32,
        what: &str,
        read: impl Fn(&A) -> Result<T>,
    ) -> Result<List<T>>
    where
        A: 'static,
    {
        // SAFETY: by the contract of this function.
        unsafe { slice(items, n as usize, most::PARTS, what) }?
            .iter()
            .map(read)
            .collect::<Result<Vec<T>>>()
            .map(Cow::Owned)
    }

    /// A name that is a valid Python identifier.
    unsafe fn word(&self, text: Str, what: &str) -> Result<Text> {
        // SAFETY: the caller passes a text of the table of the op.
        let name = unsafe { text.get(most::NAME) }.map_err(|e| e.context(format!("the name of {what}")))?;
        check_word(name, what)?;
        Ok(name.into())
    }

    pub fn input(&self, input: &abi::Input) -> Result<Input> {
        // SAFETY: the input is part of the table of the op, which is valid.
        let name = unsafe { self.word(input.name, "an input") }?;
        let wrong = |what: &str, code: u32| Error::value(format!("input '{name}': invalid {what} {code}"));
        Ok(Input {
            arity: match input.arity {
                arity::ONE => Arity::One,
                arity::OPTIONAL => Arity::Optional,
                arity::VARIADIC if self.table.body == body::TENSORS => Arity::Variadic,
                other => return Err(wrong("arity for its kind of body:", other)),
            },
            core: read_core(input.core).ok_or_else(|| wrong("core", input.core))?,
            dtype: self.dtype_rule(input.dtype_rule, input.dtype_index, input.dtype, &name)?,
            mutated: input.is_mutated != 0,
            name,
        })
    }

    pub fn output(&self, output: &abi::Output) -> Result<Output> {
        // SAFETY: the output is part of the table of the op, which is valid.
        let name = unsafe { self.word(output.name, "an output") }?;
        let wrong = |what: &str, code: u32| Error::value(format!("output '{name}': invalid {what} {code}"));
        // SAFETY: as above.
        let inputs = unsafe { slice(self.table.inputs, self.table.n_inputs as usize, most::PARTS, "inputs") }?;
        Ok(Output {
            role: match output.role {
                role::RETURNED => Role::Returned,
                role::SAVED => Role::Saved,
                role::MUTATES if inputs.get(output.input as usize).is_some_and(|i| i.is_mutated != 0) => {
                    Role::Mutates(output.input as u8)
                }
                role::MUTATES => return Err(wrong("position of an input that is changed in place:", output.input)),
                other => return Err(wrong("role", other)),
            },
            core: read_core(output.core).ok_or_else(|| wrong("core", output.core))?,
            dtype: self.dtype_rule(output.dtype_rule, output.dtype_index, output.dtype, &name)?,
            name,
        })
    }

    fn dtype_rule(&self, code: u32, index: u32, dtype: u32, name: &str) -> Result<DTypeRule> {
        let within = |n: i32| (index as i64) < i64::from(n);
        let any = [body::ARRAYS, body::TENSORS].contains(&self.table.body);
        Ok(match code {
            rule::GENERIC if within(self.table.n_generics) => DTypeRule::Generic(index as u8),
            rule::FIXED => DTypeRule::Fixed(abi::dtype(dtype).map_err(|e| e.context(format!("'{name}'")))?),
            rule::FROM_ATTR if within(self.table.n_attrs) => DTypeRule::Attr(index as u8),
            rule::ANY if any => DTypeRule::Any,
            _ => return Err(Error::value(format!("'{name}': invalid dtype rule {code} with index {index}"))),
        })
    }

    pub fn attr(&self, attr: &abi::Attr) -> Result<Attribute> {
        // SAFETY: the attribute is part of the table of the op, which is valid.
        unsafe {
            let name = self.word(attr.name, "an attribute")?;
            let words = || {
                let words = slice(attr.words, attr.n_words, most::WORDS, "words")?.iter();
                words.map(|word| word.line(most::NAME)).collect::<Result<Vec<_>>>()
            };
            let kind = match attr.kind {
                kind::BOOL => AttrKind::Bool,
                kind::INT => AttrKind::Int,
                kind::SIZE => AttrKind::Size,
                kind::FLOAT => AttrKind::Float,
                kind::STR => AttrKind::Str,
                kind::WORD if attr.n_words == 0 => {
                    return Err(Error::value(format!("attribute '{name}': its list of words is empty")));
                }
                kind::WORD => AttrKind::Enum(kept(words().map_err(|e| e.context(format!("the words of '{name}'")))?)),
                kind::INTS => AttrKind::Ints,
                kind::FLOATS => AttrKind::Floats,
                kind::DTYPE => AttrKind::DType,
                kind::TUNED => return self.tuned(name, attr),
                other => return Err(Error::value(format!("attribute '{name}': unknown kind of attribute {other}"))),
            };
            let default = (attr.has_default != 0).then(|| attr.value.get()).transpose();
            let default = default.map_err(|e| e.context(format!("the default of '{name}'")))?;
            Ok(Attribute { name, kind, optional: attr.is_optional != 0, default })
        }
    }

    fn tuned(&self, name: Text, attr: &abi::Attr) -> Result<Attribute> {
        // SAFETY: the attribute is part of the table of the op, which is valid.
        let candidates = unsafe { attr.value.get() }.map_err(|e| e.context(format!("the candidates of '{name}'")))?;
        match candidates {
            Attr::Ints(list) if list.len() <= most::CANDIDATES => {
                let kind = AttrKind::Tuned(tuning::candidates(&list));
                Ok(Attribute { name, kind, optional: true, default: Some(Attr::None) })
            }
            other => Err(Error::value(format!(
                "attribute '{name}': its candidates must be at most {} integers, got {other}",
                most::CANDIDATES
            ))),
        }
    }

    pub fn generic(&self, generic: &abi::Generic) -> Result<Generic> {
        // SAFETY: the variable is part of the table of the op, which is valid.
        unsafe {
            let name = self.word(generic.name, "a dtype variable")?;
            let dtypes =
                slice(generic.dtypes, generic.n_dtypes, most::DTYPES, "dtypes")?.iter().map(|n| abi::dtype(*n));
            let dtypes = dtypes.collect::<Result<Vec<DType>>>().map_err(|e| e.context(format!("'{name}'")))?;
            match dtypes.as_slice() {
                [] => Err(Error::value(format!("the list of dtypes of the dtype variable '{name}' is empty"))),
                some => Ok(Generic { name, dtypes: DTypeSet::of(some) }),
            }
        }
    }

    /// If an argument is the columns of a table, all arguments with dimensions must be, and have one.
    pub fn columns(&self, op: &OpDef) -> Result<()> {
        // SAFETY: the lists were checked when they were read.
        let (inputs, outputs) = unsafe {
            (
                slice(self.table.inputs, op.inputs.len(), most::PARTS, "inputs")?,
                slice(self.table.outputs, op.outputs.len(), most::PARTS, "outputs")?,
            )
        };
        let codes: Vec<u32> = inputs.iter().map(|i| i.core).chain(outputs.iter().map(|o| o.core)).collect();
        let ShapeRule::Core(rule) = &op.shape else { return Ok(()) };
        let ranks = rule.inputs.iter().chain(rule.outputs.iter()).map(|dims| dims.core.len());
        let is_fit =
            |(code, rank): (&u32, usize)| (*code, rank) == (core::COLUMNS, 1) || (*code, rank) == (core::SCALAR, 0);
        if codes.contains(&core::COLUMNS) && !codes.iter().zip(ranks).all(is_fit) {
            return Err(Error::value(
                "one of its arguments has the core MT_COLUMNS; then the others must have it with one dimension, or MT_SCALAR without",
            ));
        }
        Ok(())
    }

    pub fn combine(&self) -> Result<Option<Combine>> {
        match self.table.combine {
            combine::NONE => Ok(None),
            number => {
                let word = Combine::words().get(number as usize - 1).copied();
                let found = word.and_then(Combine::from_word);
                found.map(Some).ok_or_else(|| Error::value(format!("its 'combine' is unknown: {number}")))
            }
        }
    }

    pub fn axis(&self) -> Result<Option<Axis>> {
        let t = self.table;
        let attr = |place: i32, what: &str| match place {
            0 => Ok(None),
            _ if (1..=t.n_attrs).contains(&place) => Ok(Some((place - 1) as u8)),
            _ => Err(Error::value(format!(
                "its '{what}' is attribute {place}, but the number of attributes is {}",
                t.n_attrs
            ))),
        };
        let keepdims = attr(t.keepdims, "keepdims")?;
        Ok(attr(t.axis, "axis")?.map(|attr| Axis { attr, keepdims, many: t.many_axes != 0 }))
    }
}

fn read_core(code: u32) -> Option<Core> {
    Some(match code {
        core::SCALAR => Core::Scalar,
        core::SLICE | core::COLUMNS => Core::Slice,
        core::VIEW => Core::View,
        _ => return None,
    })
}

static KEPT: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());

/// Takes the lock of the words before a fork. `None` if another thread holds it.
pub(super) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&KEPT)
}

/// Leaks a list of words, so that it lives for ever. Equal lists share one allocation.
fn kept(words: Vec<&'static str>) -> &'static [&'static str] {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = kept.get(words.as_slice()) {
        return same;
    }
    let words: &'static [&'static str] = Vec::leak(words);
    kept.insert(words);
    words
}
