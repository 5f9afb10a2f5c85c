//! Converts programs to JSON and back.
//!
//! `{"inputs": ["x"], "uniforms": [], "nodes": [["input", 0], ["sigmoid", 0], ["multiply", 0, 1]], "outputs": [["out",
//! 2]]}`: the nodes are the instructions. A node is an array: the name of a function, and its operands. A number that
//! JSON does not support is a string. A scan has the program of its step, and which of its results the node is, before its operands.

use serde_json::{Map, Value as Json, json};

use super::{Id, Instruction, Malformed, Program, Scan};
use crate::number::scalar::Const;
use crate::row::{Reduction, RowFunction};

type Result<T> = std::result::Result<T, Malformed>;

fn malformed<T>(fault: impl Into<String>) -> Result<T> {
    Err(Malformed(fault.into()))
}

impl Program {
    /// The program as JSON.
    pub fn to_json(&self) -> String {
        self.as_json().to_string()
    }

    fn as_json(&self) -> Json {
        let nodes: Vec<Json> = self.instructions.iter().map(write).collect();
        let outputs: Vec<Json> = self.outputs.iter().map(|(name, id)| json!([name, id.0])).collect();
        json!({"inputs": self.inputs, "uniforms": self.uniforms, "nodes": nodes, "outputs": outputs})
    }

    /// Parses a program from any source. The result is either a [valid](Program::verify) program, or an error that names
    /// the invalid part.
    ///
    /// ```
    /// use minitensor_kernels::program::Program;
    ///
    /// let text = r#"{"inputs": ["x"], "uniforms": [], "nodes": [["input", 0], ["exp", 1]], "outputs": [["y", 1]]}"#;
    /// let error = Program::from_json(text).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid program: node 1 uses node 1, which doesn't precede it");
    /// ```
    pub fn from_json(text: &str) -> Result<Program> {
        let program = Program::of_json(&serde_json::from_str(text).or_else(|e| malformed(e.to_string()))?)?;
        program.verify()?;
        Ok(program)
    }

    fn of_json(json: &Json) -> Result<Program> {
        let Json::Object(fields) = json else { return malformed("the JSON is not an object") };
        if let Some(unknown) = fields.keys().find(|k| !["inputs", "uniforms", "nodes", "outputs"].contains(&k.as_str()))
        {
            return malformed(format!("unknown field '{unknown}'"));
        }
        let mut instructions = Vec::new();
        for (at, node) in list(fields, "nodes")?.iter().enumerate() {
            instructions.push(read(node).or_else(|fault| malformed(format!("node {at} {fault}")))?);
        }
        let mut outputs = Vec::new();
        for (at, output) in list(fields, "outputs")?.iter().enumerate() {
            match output.as_array().map(Vec::as_slice) {
                Some([Json::String(name), id]) if position(id).is_some() => {
                    outputs.push((name.clone(), Id(position(id).unwrap_or_default())));
                }
                _ => return malformed(format!("output {at} is not an array of a name and the index of a node")),
            }
        }
        Ok(Program { inputs: names(fields, "inputs")?, uniforms: names(fields, "uniforms")?, instructions, outputs })
    }
}

fn list<'a>(fields: &'a Map<String, Json>, name: &str) -> Result<&'a Vec<Json>> {
    match fields.get(name) {
        Some(Json::Array(list)) => Ok(list),
        Some(_) => malformed(format!("'{name}' is not a list")),
        None => malformed(format!("'{name}' is missing")),
    }
}

fn names(fields: &Map<String, Json>, name: &str) -> Result<Vec<String>> {
    let read = |v: &Json| {
        v.as_str()
            .map_or_else(|| malformed(format!("'{name}' has an entry that is not a string")), |s| Ok(s.to_owned()))
    };
    list(fields, name)?.iter().map(read).collect()
}

fn position(json: &Json) -> Option<u32> {
    json.as_u64()?.try_into().ok()
}

fn write(node: &Instruction) -> Json {
    match node {
        Instruction::Input(k) => json!(["input", k]),
        Instruction::Uniform(k) => json!(["uniform", k]),
        Instruction::Constant(Const::Bool(v)) => json!(["constant", v]),
        Instruction::Constant(Const::Int(v)) => match i64::try_from(*v) {
            Ok(v) => json!(["constant", v]),
            Err(_) => json!(["constant", v.to_string()]),
        },
        Instruction::Constant(Const::Float(v)) if v.is_finite() => json!(["constant", v]),
        Instruction::Constant(Const::Float(v)) => json!(["constant", format!("{v:?}")]),
        Instruction::Bits(v) => json!(["bits", v]),
        Instruction::Epsilon => json!(["epsilon"]),
        Instruction::Truth(t) => json!(["truth", t]),
        Instruction::Apply(p, x) => {
            let mut node = vec![json!(p.name())];
            node.extend(x.iter().map(|id| json!(id.0)));
            Json::Array(node)
        }
        Instruction::Powi(x, n) => json!(["powi", x.0, n]),
        Instruction::Polygamma(x, n) => json!(["polygamma", x.0, n]),
        Instruction::Select(m, a, b) => json!(["select", m.0, a.0, b.0]),
        Instruction::And(a, b) => json!(["and", a.0, b.0]),
        Instruction::Or(a, b) => json!(["or", a.0, b.0]),
        Instruction::Not(a) => json!(["not", a.0]),
        Instruction::Reduce(reduction, x) => json!([reduction.name(), x.0]),
        Instruction::Row(RowFunction::Shift(places), x) => json!(["shift", x[0].0, places]),
        Instruction::Row(function, x) => {
            let mut node = vec![json!(function.name())];
            if let RowFunction::Scan(scan) = function {
                node.extend([scan.step().as_json(), json!(scan.output)]);
            }
            node.extend(x.iter().map(|id| json!(id.0)));
            Json::Array(node)
        }
        Instruction::Position => json!(["position"]),
        Instruction::Count => json!(["count"]),
        Instruction::Detach(x) => json!(["detach", x.0]),
    }
}

fn read(json: &Json) -> std::result::Result<Instruction, String> {
    let Some([Json::String(name), rest @ ..]) = json.as_array().map(Vec::as_slice) else {
        return Err("is not an array that begins with the name of a function".to_owned());
    };
    let id = |json: &Json| {
        position(json).map(Id).ok_or_else(|| format!("has an operand of '{name}' that is not the index of a node"))
    };
    let whole = |json: &Json| json.as_i64().ok_or_else(|| format!("has an operand of '{name}' that is not an integer"));
    Ok(match (name.as_str(), rest) {
        ("input", [k]) => Instruction::Input(id(k)?.0),
        ("uniform", [k]) => Instruction::Uniform(id(k)?.0),
        ("constant", [value]) => Instruction::Constant(constant(value).ok_or("has a constant that is not a number")?),
        ("bits", [v]) => Instruction::Bits(v.as_u64().ok_or("has bits that are not an unsigned integer")?),
        ("epsilon", []) => Instruction::Epsilon,
        ("truth", [t]) => Instruction::Truth(t.as_bool().ok_or("has a truth value that is not a boolean")?),
        ("powi", [x, n]) => Instruction::Powi(id(x)?, whole(n)?),
        ("polygamma", [x, n]) => {
            Instruction::Polygamma(id(x)?, u32::try_from(whole(n)?).map_err(|_| "has an order that is out of range")?)
        }
        ("select", [m, a, b]) => Instruction::Select(id(m)?, id(a)?, id(b)?),
        ("and", [a, b]) => Instruction::And(id(a)?, id(b)?),
        ("or", [a, b]) => Instruction::Or(id(a)?, id(b)?),
        ("not", [a]) => Instruction::Not(id(a)?),
        ("position", []) => Instruction::Position,
        ("count", []) => Instruction::Count,
        ("detach", [x]) => Instruction::Detach(id(x)?),
        ("shift", [x, places]) => Instruction::Row(RowFunction::Shift(whole(places)?), [id(x)?].into_iter().collect()),
        ("scan", [step, output, x @ ..]) => {
            let step = Program::of_json(step).map_err(|fault| format!("has an invalid step of a scan: {}", fault.0))?;
            let output = position(output).ok_or("has an index of a result of a scan that is not an integer")?;
            let operands = x.iter().map(id).collect::<std::result::Result<_, _>>()?;
            Instruction::Row(RowFunction::Scan(Scan::new(step, output as usize)), operands)
        }
        (function, x) => match (Program::primitive(function), Reduction::named(function), x) {
            (Some(p), ..) => Instruction::Apply(p, x.iter().map(id).collect::<std::result::Result<_, _>>()?),
            (_, Some(reduction), [x]) => Instruction::Reduce(reduction, id(x)?),
            (None, None, x) if RowFunction::named(function, None).is_some_and(|f| f.arity() == x.len()) => {
                let function = RowFunction::named(function, None).ok_or("calls no function")?;
                Instruction::Row(function, x.iter().map(id).collect::<std::result::Result<_, _>>()?)
            }
            _ => return Err(format!("calls '{function}' of arity {}, which does not exist", x.len())),
        },
    })
}

fn constant(json: &Json) -> Option<Const> {
    match json {
        Json::Bool(v) => Some(Const::Bool(*v)),
        Json::Number(n) => n.as_i64().map(|v| Const::Int(v.into())).or_else(|| n.as_f64().map(Const::Float)),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(Const::Float(f64::NAN)),
            "inf" => Some(Const::Float(f64::INFINITY)),
            "-inf" => Some(Const::Float(f64::NEG_INFINITY)),
            whole => whole.parse().ok().map(Const::Int),
        },
        _ => None,
    }
}
