//! Conversions between values of tables and Rust.

use super::most;
use super::numbers::{dtype, kind, number};
use super::table::{Payload, Slice, Str, Value};
use crate::attr::Attr;
use crate::error::{Error, Result};

impl Str {
    pub const EMPTY: Str = Str { data: std::ptr::null(), len: 0 };

    /// A borrowed view of a text.
    pub const fn of(text: &str) -> Str {
        Str { data: text.as_ptr(), len: text.len() }
    }

    /// The text, with U+FFFD for invalid parts, since it is better to show a damaged message than to reject it. A message that
    /// exceeds the limit is not read.
    ///
    /// # Safety
    /// As for [`Str::get`].
    pub unsafe fn lossy(self) -> String {
        if self.len > most::SENTENCE {
            return format!("(the message has {} bytes, expected at most {})", self.len, most::SENTENCE);
        }
        // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
        let bytes = if self.data.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } };
        String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
    }

    /// The text, if it is valid UTF-8 without a NUL and has at most `most` bytes. A longer text is not read.
    ///
    /// # Safety
    /// If the length is within the limit, the pointer is null or valid for reads of `len` bytes for `'a`.
    pub unsafe fn get<'a>(self, most: usize) -> Result<&'a str> {
        if self.len == 0 {
            return Ok("");
        }
        if self.data.is_null() {
            return Err(Error::value("a string is a null pointer"));
        }
        if self.len > most {
            return Err(Error::value(format!("a string has {} bytes, expected at most {most}", self.len)));
        }
        // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.len) };
        let text = std::str::from_utf8(bytes).map_err(|_| Error::value("a string is not valid UTF-8"))?;
        match text.contains('\0') {
            true => Err(Error::value(format!("the string {:?} contains a NUL", shortened(text)))),
            false => Ok(text),
        }
    }

    /// The text, if it is fit for a message or a path: it must not contain control characters either.
    ///
    /// # Safety
    /// As for [`Str::get`].
    pub unsafe fn line<'a>(self, most: usize) -> Result<&'a str> {
        // SAFETY: by the contract of this function.
        let text = unsafe { self.get(most) }?;
        match text.chars().any(char::is_control) {
            true => Err(Error::value(format!("the string {:?} contains a control character", shortened(text)))),
            false => Ok(text),
        }
    }
}

/// The first characters of a text, for an error message.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The `len` values at a pointer. Fails for null, or if there are more than `most`.
///
/// # Safety
/// If the pointer is not null and `len` is within the limit, it is aligned and valid for reads of `len` values for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, len: usize, most: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if len > most {
        return Err(Error::value(format!("'{what}' has {len} items, expected at most {most}")));
    }
    if data.is_null() || !data.is_aligned() {
        return Err(Error::value(format!("the pointer of '{what}' is null or not aligned")));
    }
    // SAFETY: by the contract of this function. Null is excluded, and the length is within the limit.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

impl Value {
    pub const NONE: Value = Value { kind: kind::NONE, reserved: 0, as_: Payload { i: 0 } };

    /// A borrowed view of an attribute.
    pub fn of(attr: &Attr) -> Value {
        fn list<T>(kind: u32, items: &[T]) -> Value {
            let list = Slice { data: items.as_ptr().cast(), len: items.len() };
            Value { kind, reserved: 0, as_: Payload { list } }
        }
        let whole = |kind, i| Value { kind, reserved: 0, as_: Payload { i } };
        match attr {
            Attr::None => Value::NONE,
            Attr::Bool(v) => whole(kind::BOOL, (*v).into()),
            Attr::Int(v) => whole(kind::INT, *v),
            Attr::Float(f) => Value { kind: kind::FLOAT, reserved: 0, as_: Payload { f: *f } },
            Attr::Str(v) => list(kind::STR, v.as_bytes()),
            Attr::Ints(v) => list(kind::INTS, v),
            Attr::Floats(v) => list(kind::FLOATS, v),
            Attr::DType(v) => whole(kind::DTYPE, number(*v).into()),
        }
    }

    /// Converts to an attribute.
    ///
    /// # Safety
    /// All pointers in the value are valid for reads of their lengths.
    pub unsafe fn get(&self) -> Result<Attr> {
        // SAFETY: every payload is plain data, so reading any variant is sound. Lists are valid by the contract of this function.
        unsafe {
            let list = self.as_.list;
            Ok(match self.kind {
                kind::NONE => Attr::None,
                kind::BOOL => Attr::Bool(self.as_.i != 0),
                kind::INT | kind::SIZE => Attr::Int(self.as_.i),
                kind::FLOAT => Attr::Float(self.as_.f),
                kind::STR | kind::WORD => {
                    Attr::Str(Str { data: list.data.cast(), len: list.len }.get(most::TEXT)?.to_owned().into())
                }
                kind::INTS => Attr::Ints(slice(list.data.cast::<i64>(), list.len, most::LIST, "ints")?.to_vec().into()),
                kind::FLOATS => {
                    Attr::Floats(slice(list.data.cast::<f64>(), list.len, most::LIST, "floats")?.to_vec().into())
                }
                kind::DTYPE => Attr::DType(dtype(self.as_.i as u32)?),
                other => return Err(Error::value(format!("unknown kind of value {other}"))),
            })
        }
    }
}
