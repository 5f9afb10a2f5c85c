//! Reads JSON without trust: an error names the part that is wrong.

use minitensor::error::Result;
use minitensor::{Attr, AttrKind, DType, Error};
use serde_json::{Map, Value};

/// A part of a JSON text, and its place in it for messages.
#[derive(Clone)]
pub struct Part<'a> {
    pub value: &'a Value,
    pub place: String,
}

impl<'a> Part<'a> {
    pub fn wrong(&self, expected: &str) -> Error {
        let shown: String = self.value.to_string().chars().take(60).collect();
        Error::value(format!("{} must be {expected}, got {shown}", self.place))
    }

    /// The fields of an object, which has these and no others. A field with `?` may be absent.
    pub fn fields(&self, names: &[&str]) -> Result<Fields<'a>> {
        let fields = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let is_known = |name: &&String| names.iter().any(|known| known.trim_end_matches('?') == name.as_str());
        if let Some(unknown) = fields.keys().find(|name| !is_known(name)) {
            return Err(Error::value(format!("{} has an unknown field '{unknown}'", self.place)));
        }
        if let Some(missing) = names.iter().find(|name| !name.ends_with('?') && !fields.contains_key(**name)) {
            return Err(Error::value(format!("{} lacks the field '{missing}'", self.place)));
        }
        Ok(Fields { fields, place: self.place.clone() })
    }

    pub fn list(&self) -> Result<Vec<Part<'a>>> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let part = |(k, value)| Part { value, place: format!("{}[{k}]", self.place) };
        Ok(items.iter().enumerate().map(part).collect())
    }

    pub fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    pub fn bool(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub fn int(&self) -> Result<i64> {
        self.value.as_i64().ok_or_else(|| self.wrong("an integer"))
    }

    pub fn position(&self) -> Result<u8> {
        self.value.as_u64().and_then(|v| u8::try_from(v).ok()).ok_or_else(|| self.wrong("a position"))
    }

    pub fn float(&self) -> Result<f64> {
        match self.value {
            Value::Number(n) => n.as_f64().ok_or_else(|| self.wrong("a number")),
            Value::String(text) if text == "inf" => Ok(f64::INFINITY),
            Value::String(text) if text == "-inf" => Ok(f64::NEG_INFINITY),
            Value::String(text) if text == "NaN" => Ok(f64::NAN),
            _ => Err(self.wrong("a number, 'inf', '-inf' or 'NaN'")),
        }
    }

    pub fn dtype(&self) -> Result<DType> {
        DType::parse(self.text()?).map_err(|_| self.wrong("a dtype"))
    }

    pub fn each<T>(&self, read: impl Fn(&Part<'a>) -> Result<T>) -> Result<Vec<T>> {
        self.list()?.iter().map(read).collect()
    }

    /// A value of this kind of attribute.
    pub fn attr(&self, kind: AttrKind) -> Result<Attr> {
        if self.value.is_null() {
            return Ok(Attr::None);
        }
        Ok(match kind {
            AttrKind::Bool => self.bool()?.into(),
            AttrKind::Int | AttrKind::Size | AttrKind::Tuned(_) => self.int()?.into(),
            AttrKind::Float => self.float()?.into(),
            AttrKind::Str | AttrKind::Enum(_) => self.text()?.into(),
            AttrKind::Ints if self.value.is_i64() => self.int()?.into(),
            AttrKind::Ints => self.each(Part::int)?.into(),
            AttrKind::Floats => self.each(Part::float)?.into(),
            AttrKind::DType => self.dtype()?.into(),
        })
    }
}

/// The fields of an object.
pub struct Fields<'a> {
    fields: &'a Map<String, Value>,
    place: String,
}

impl<'a> Fields<'a> {
    /// A field that exists. An absent one is `null`.
    pub fn get(&self, name: &str) -> Part<'a> {
        const NULL: &Value = &Value::Null;
        Part { value: self.fields.get(name).unwrap_or(NULL), place: format!("'{name}' of {}", self.place) }
    }

    /// A field that may be absent or `null`.
    pub fn optional(&self, name: &str) -> Option<Part<'a>> {
        Some(self.get(name)).filter(|part| !part.value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

/// The value of an attribute as JSON.
pub fn written(attr: &Attr) -> Value {
    match attr {
        Attr::None => Value::Null,
        Attr::Bool(v) => (*v).into(),
        Attr::Int(v) => (*v).into(),
        Attr::Float(v) => number(*v),
        Attr::Str(v) => v.as_ref().into(),
        Attr::Ints(v) => v.to_vec().into(),
        Attr::Floats(v) => v.iter().map(|v| number(*v)).collect(),
        Attr::DType(v) => v.name().into(),
    }
}

fn number(v: f64) -> Value {
    match v {
        v if v.is_nan() => "NaN".into(),
        v if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.into(),
        v => v.into(),
    }
}
