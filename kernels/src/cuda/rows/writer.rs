//! [`Writer`]: writes the source of a kernel over rows.

use std::fmt::{self, Write};

use super::schedule::Schedule;
use super::{RowInput, RowKernel, RowOutput, RowShape};
use crate::cuda::elements::{float_of, loaded, stored, uniform};
use crate::cuda::lines::{Line, Type, Value, constant};
use crate::number::scalar::Const;
use crate::row::Reduction;

/// Writes one kernel.
pub(super) struct Writer<'a> {
    pub kernel: &'a RowKernel,
    pub schedule: &'a Schedule<'a>,
    /// The level that the kernel computes. The reductions of lower ones are known: they are in registers or, if rows are split, partial
    /// results in memory.
    pub stage: usize,
    pub text: &'a mut String,
}

impl Writer<'_> {
    /// Writes the kernel. `uniforms` is the number of uniforms of the program.
    pub fn write(mut self, uniforms: usize) -> fmt::Result {
        let kernel = self.kernel;
        let RowShape { lanes, rows, items, is_beside, .. } = kernel.shape;
        let (number, is_split) = (self.number(), self.is_split());
        self.write_arguments(uniforms)?;
        writeln!(self.text, "KERNEL({}) {{", kernel.threads())?;
        let (lane, group) = match is_beside {
            true => (format!("THREAD / {rows}"), format!("THREAD % {rows}")),
            false => (format!("THREAD % {lanes}"), format!("THREAD / {lanes}")),
        };
        writeln!(self.text, "  const i64 lane = {lane}, group = {group};")?;
        let is_shared = is_beside && lanes > 1 || lanes > 32;
        if !self.schedule.lines.reductions.is_empty() && is_shared {
            writeln!(self.text, "  SHARED {number} shared[{}];", kernel.threads())?;
        }
        for (k, output) in self.shared() {
            match output.is_row() {
                true if items > 0 => writeln!(
                    self.text,
                    "  {number} s{k}[{items}];\n  UNROLL for (int j = 0; j < {items}; j++) s{k}[j] = 0;"
                )?,
                true => {}
                false => writeln!(self.text, "  {number} s{k} = 0;")?,
            }
        }
        let over = if is_split { " / (u32)a.sections" } else { "" };
        let (block, blocks) = (format!("(u32)BLOCK{over}"), format!("(u32)BLOCKS{over}"));
        writeln!(self.text, "  const i64 block = {block}, blocks = {blocks};")?;
        let section = if is_split { "(u32)BLOCK % (u32)a.sections" } else { "0" };
        writeln!(self.text, "  const i64 section = {section};")?;
        let width = lanes * kernel.shape.vector;
        let (begin, end, step) = match (is_split, is_beside) {
            (false, _) => ("0".to_owned(), "a.count", format!("{width}")),
            (true, true) => ("section * a.length".to_owned(), "least(begin + a.length, a.count)", format!("{width}")),
            // Blocks that run at the same time read neighbouring memory.
            (true, false) => (format!("section * {width}"), "a.count", format!("a.sections * {width}")),
        };
        writeln!(self.text, "  const i64 begin = {begin}, end = {end}, step = {step};")?;
        writeln!(self.text, "  for (i64 first = block * {rows}; first < a.rows; first += blocks * {rows}) {{")?;
        writeln!(
            self.text,
            "    const int is_row = first + group < a.rows;\n    i64 left = is_row ? first + group : 0;"
        )?;
        self.write_places()?;
        for (k, input) in kernel.inputs.iter().enumerate().filter(|(_, input)| input.is_some_and(|i| i.is_single)) {
            let memory = input.map_or("", |input| input.memory.name());
            writeln!(self.text, "    const {memory} x{k}_one = a.x{k}[x{k}_at];")?;
        }
        if items > 0 {
            self.write_loads()?;
        }
        let depth = self.schedule.levels.iter().copied().max().unwrap_or(0);
        for level in 0..=self.stage {
            self.write_numbers(level)?;
            match kernel.shape.is_split && level < self.stage {
                true => self.write_known(level)?,
                false => self.write_reductions(level)?,
            }
        }
        if self.stage == depth {
            self.write_outputs()?;
        }
        writeln!(self.text, "  }}")?;
        if self.stage == depth {
            self.write_shared()?;
        }
        writeln!(self.text, "}}")
    }

    /// Whether each block computes a section. The last kernel of a split program whose outputs are numbers only combines partial results.
    pub fn is_split(&self) -> bool {
        let has_rows = self.wanted().any(|(_, output)| output.is_row());
        self.kernel.shape.is_split && (has_rows || !self.reductions_of(self.stage).is_empty())
    }

    /// The C type of numbers.
    fn number(&self) -> &'static str {
        self.kernel.compute.name()
    }

    /// The wanted outputs that are sums over rows.
    fn shared(&self) -> impl Iterator<Item = (usize, RowOutput)> + use<> {
        let all: Vec<_> =
            self.wanted().filter(|(_, o)| matches!(o, RowOutput::SharedRow | RowOutput::SharedNumber)).collect();
        all.into_iter()
    }

    fn wanted(&self) -> impl Iterator<Item = (usize, RowOutput)> + use<> {
        let all: Vec<_> = self.kernel.outputs.iter().enumerate().filter_map(|(k, o)| Some((k, (*o)?))).collect();
        all.into_iter()
    }

    /// The names of the operands with places of their own, their types, and whether they are rows and outputs.
    fn operands(&self) -> Vec<(String, Type, bool, bool)> {
        let inputs = self.kernel.inputs.iter().enumerate().filter_map(|(k, input)| Some((k, (*input)?)));
        let mut all: Vec<_> = inputs.map(|(k, input)| (format!("x{k}"), input.memory, true, false)).collect();
        let numbers = self.kernel.numbers.iter().enumerate().filter_map(|(k, memory)| Some((k, (*memory)?)));
        all.extend(numbers.map(|(k, memory)| (format!("u{k}"), memory, false, false)));
        all.extend(self.wanted().filter_map(|(k, output)| match output {
            RowOutput::Row(memory) => Some((format!("y{k}"), memory, true, true)),
            RowOutput::Number(memory) => Some((format!("y{k}"), memory, false, true)),
            _ => None,
        }));
        all
    }

    fn write_arguments(&mut self, uniforms: usize) -> fmt::Result {
        let rank = self.kernel.rank;
        writeln!(self.text, "typedef struct {{\n  i64 rows, count, sizes[{rank}];")?;
        if self.kernel.positions > 0 {
            writeln!(self.text, "  u64 *status;")?;
        }
        if self.kernel.shape.is_split {
            writeln!(self.text, "  {} *partials; i64 sections, length;", self.number())?;
        }
        for (name, memory, is_row, is_output) in self.operands() {
            let constant = if is_output { "" } else { "const " };
            let step = if is_row { format!(" i64 {name}_step;") } else { String::new() };
            writeln!(self.text, "  {constant}{} *{name}; i64 {name}_strides[{rank}];{step}", memory.name())?;
        }
        for (k, _) in self.shared() {
            writeln!(self.text, "  {} *y{k};", self.number())?;
        }
        (self.kernel.numbers.len()..uniforms).try_for_each(|k| writeln!(self.text, "  u64 u{k};"))?;
        writeln!(self.text, "}} Arguments;\n")
    }

    /// The places of the row in each operand.
    fn write_places(&mut self) -> fmt::Result {
        let operands = self.operands();
        operands.iter().try_for_each(|(name, ..)| writeln!(self.text, "    i64 {name}_at = 0;"))?;
        for d in (0..self.kernel.rank).rev() {
            let place = if d == 0 { "left".to_owned() } else { format!("(left % a.sizes[{d}])") };
            for (name, ..) in &operands {
                writeln!(self.text, "    {name}_at += {place} * a.{name}_strides[{d}];")?;
            }
            if d > 0 {
                writeln!(self.text, "    left /= a.sizes[{d}];")?;
            }
        }
        Ok(())
    }

    /// Loads the elements of rows into registers.
    fn write_loads(&mut self) -> fmt::Result {
        let RowShape { lanes, items, vector, .. } = self.kernel.shape;
        let inputs = self.kernel.inputs.iter().enumerate().filter_map(|(k, input)| Some((k, (*input)?)));
        for (k, RowInput { memory, .. }) in inputs.filter(|(_, input)| !input.is_single) {
            let (name, memory) = (format!("x{k}"), memory.name());
            writeln!(self.text, "    {memory} {name}_kept[{items}];")?;
            writeln!(self.text, "    UNROLL for (int k = 0; k < {}; k++) {{", items / vector)?;
            writeln!(self.text, "      const i64 i = (k * {lanes} + lane) * {vector};")?;
            writeln!(self.text, "      if (i >= a.count) continue;")?;
            writeln!(
                self.text,
                "      const {memory}x{vector} all = *(const {memory}x{vector} *)(a.{name} + {name}_at + i);"
            )?;
            writeln!(
                self.text,
                "      UNROLL for (int j = 0; j < {vector}; j++) {name}_kept[k * {vector} + j] = all.at[j];"
            )?;
            writeln!(self.text, "    }}")?;
        }
        Ok(())
    }

    /// The numbers of the row that are known at a level.
    fn write_numbers(&mut self, level: usize) -> fmt::Result {
        let per_row = self.kernel.numbers.len();
        for (at, line) in self.schedule.lines.all.iter().enumerate() {
            if self.schedule.is_element[at] || self.schedule.levels[at] != level {
                continue;
            }
            let value = match &line.value {
                Value::Uniform(k) if *k < per_row => match self.kernel.numbers[*k] {
                    Some(_) if *k >= per_row - self.kernel.positions => {
                        format!("({})position(a.u{k}[u{k}_at], a.count, a.status)", line.c_type)
                    }
                    Some(memory) => loaded(memory, line, &format!("a.u{k}[u{k}_at]")),
                    None => "0".into(),
                },
                Value::Uniform(k) => uniform(line, &format!("a.u{k}")),
                Value::Reduced(k) => format!("r{k}"),
                Value::Count => format!("({})a.count", line.c_type),
                Value::Expression(text) => text.clone(),
                Value::Input(_) | Value::Position => return Err(fmt::Error),
            };
            writeln!(self.text, "    const {} v{at} = {value};", line.c_type)?;
        }
        Ok(())
    }

    /// The reductions whose arguments are known at a level, with their arguments.
    fn reductions_of(&self, level: usize) -> Vec<(usize, Reduction, usize)> {
        let all = self.schedule.lines.reductions.iter().enumerate();
        all.filter(|(_, (_, id))| self.schedule.levels[*id] == level).map(|(k, (r, id))| (k, *r, *id)).collect()
    }

    /// The place of a partial result.
    fn partial(k: usize, section: &str) -> String {
        format!("a.partials[({k} * a.rows + (is_row ? first + group : 0)) * a.sections + {section}]")
    }

    /// Combines the partial results of all sections.
    fn write_known(&mut self, level: usize) -> fmt::Result {
        let (number, lanes) = (self.number(), self.kernel.shape.lanes);
        for (k, reduction, _) in self.reductions_of(level) {
            let combined = format!("{number}_{}(r{k}, {})", combine(reduction), Self::partial(k, "j"));
            writeln!(self.text, "    {number} r{k} = {};", self.identity(reduction))?;
            writeln!(self.text, "    for (i64 j = lane; j < a.sections; j += {lanes}) r{k} = {combined};")?;
            self.write_combination(k, combine(reduction))?;
        }
        Ok(())
    }

    /// Computes the reductions whose arguments are known at a level.
    fn write_reductions(&mut self, level: usize) -> fmt::Result {
        let number = self.number();
        let of_level = self.reductions_of(level);
        if of_level.is_empty() {
            return Ok(());
        }
        for (k, reduction, _) in &of_level {
            writeln!(self.text, "    {number} r{k} = {};", self.identity(*reduction))?;
        }
        self.open_loop(&self.schedule.needed(of_level.iter().map(|(.., id)| *id)), "")?;
        for (k, reduction, id) in &of_level {
            let (_, value) = float_of(&self.schedule.lines.all[*id], *id);
            writeln!(self.text, "        r{k} = {number}_{}(r{k}, {value});", combine(*reduction))?;
        }
        writeln!(self.text, "      }}\n    }}")?;
        for (k, reduction, _) in of_level {
            self.write_combination(k, combine(reduction))?;
            if self.kernel.shape.is_split {
                writeln!(self.text, "    if (is_row && lane == 0) {} = r{k};", Self::partial(k, "section"))?;
            }
        }
        Ok(())
    }

    /// Combines the results of all lanes of a row.
    fn write_combination(&mut self, k: usize, combine: &str) -> fmt::Result {
        let RowShape { lanes, rows, is_beside, .. } = self.kernel.shape;
        let number = self.number();
        if !is_beside {
            let mut mask = lanes.min(32) / 2;
            while mask > 0 {
                writeln!(self.text, "    r{k} = {number}_{combine}(r{k}, OF_LANE({number}, r{k}, {mask}));")?;
                mask /= 2;
            }
        }
        let warps = lanes / 32;
        let (write, place, read, count) = match is_beside {
            true => ("", "THREAD".to_owned(), format!("j * {rows} + group"), lanes),
            false => ("if (lane % 32 == 0) ", "THREAD / 32".to_owned(), format!("group * {warps} + j"), warps),
        };
        if count > 1 {
            writeln!(self.text, "    {write}shared[{place}] = r{k};\n    BARRIER();")?;
            writeln!(self.text, "    r{k} = shared[{}];", read.replace('j', "0"))?;
            writeln!(
                self.text,
                "    UNROLL for (int j = 1; j < {count}; j++) r{k} = {number}_{combine}(r{k}, shared[{read}]);"
            )?;
            writeln!(self.text, "    BARRIER();")?;
        }
        Ok(())
    }

    /// Begins a loop over the elements of the row, and computes these lines along it. `declared` precedes those of neighbours that are
    /// computed together.
    fn open_loop(&mut self, needed: &[usize], declared: &str) -> fmt::Result {
        let RowShape { lanes, items, vector, is_beside, .. } = self.kernel.shape;
        let is_read = |k: usize| needed.iter().any(|id| self.schedule.lines.all[*id].value == Value::Input(k));
        let inputs = self.kernel.inputs.iter().enumerate().filter_map(|(k, input)| Some((k, (*input)?)));
        let inputs: Vec<(usize, RowInput)> = inputs.filter(|(k, input)| is_read(*k) && !input.is_single).collect();
        if items > 0 {
            writeln!(self.text, "    UNROLL for (int k = 0; k < {}; k++) {{", items / vector)?;
            writeln!(
                self.text,
                "      const i64 at = (k * {lanes} + lane) * {vector};\n      if (at >= a.count) continue;"
            )?;
        } else {
            writeln!(self.text, "    UNROLL_FEW for (i64 at = begin + lane * {vector}; at < end; at += step) {{")?;
            for (k, input) in inputs.iter().filter(|_| !is_beside) {
                let memory = input.memory.name();
                let from = format!("*(const {memory}x{vector} *)(a.x{k} + x{k}_at + at)");
                writeln!(self.text, "      const {memory}x{vector} x{k}_all = {from};")?;
            }
        }
        writeln!(self.text, "{declared}      UNROLL for (int j = 0; j < {vector}; j++) {{")?;
        for id in needed {
            let line: &Line = &self.schedule.lines.all[*id];
            let value = match &line.value {
                Value::Input(k) => match self.kernel.inputs[*k] {
                    None => "0".into(),
                    Some(RowInput { memory, is_single }) => {
                        let place = match () {
                            () if is_single => format!("x{k}_one"),
                            () if is_beside => format!("a.x{k}[x{k}_at + at * a.x{k}_step]"),
                            () if items > 0 => format!("x{k}_kept[k * {vector} + j]"),
                            () => format!("x{k}_all.at[j]"),
                        };
                        loaded(memory, line, &place)
                    }
                },
                Value::Position => format!("({})(at + j)", line.c_type),
                Value::Expression(text) => text.clone(),
                _ => return Err(fmt::Error),
            };
            writeln!(self.text, "        const {} v{id} = {value};", line.c_type)?;
        }
        Ok(())
    }

    fn write_outputs(&mut self) -> fmt::Result {
        let RowShape { items, vector, is_beside, .. } = self.kernel.shape;
        let lines = self.schedule.lines;
        let number = self.number();
        let rows: Vec<(usize, RowOutput)> = self.wanted().filter(|(_, output)| output.is_row()).collect();
        if !rows.is_empty() {
            writeln!(self.text, "    if (is_row) {{")?;
            let vectors: Vec<(usize, &str)> = rows
                .iter()
                .filter_map(|(k, output)| match output {
                    RowOutput::Row(memory) if !is_beside => Some((*k, memory.name())),
                    _ => None,
                })
                .collect();
            let declared: String =
                vectors.iter().map(|(k, memory)| format!("      {memory}x{vector} y{k}_all;\n")).collect();
            self.open_loop(&self.schedule.needed(rows.iter().map(|(k, _)| lines.outputs[*k])), &declared)?;
            for (k, output) in &rows {
                let id = lines.outputs[*k];
                let line = &lines.all[id];
                match output {
                    RowOutput::Row(memory) => {
                        let value = stored(*memory, line, id);
                        match is_beside {
                            true => writeln!(self.text, "        a.y{k}[y{k}_at + at * a.y{k}_step] = {value};")?,
                            false => writeln!(self.text, "        y{k}_all.at[j] = {value};")?,
                        }
                    }
                    _ => {
                        let (_, value) = float_of(line, id);
                        let sum = match items {
                            0 => format!("a.y{k}[(block * {} + group) * a.count + at + j]", self.kernel.shape.rows),
                            _ => format!("s{k}[k * {vector} + j]"),
                        };
                        writeln!(self.text, "        {sum} = {number}_add({sum}, {value});")?;
                    }
                }
            }
            writeln!(self.text, "      }}")?;
            for (k, memory) in vectors {
                writeln!(self.text, "      *({memory}x{vector} *)(a.y{k} + y{k}_at + at) = y{k}_all;")?;
            }
            writeln!(self.text, "    }}\n    }}")?;
        }
        for (k, output) in self.wanted().filter(|(_, output)| !output.is_row()) {
            let id = lines.outputs[k];
            let line = &lines.all[id];
            match output {
                RowOutput::Number(memory) => {
                    let value = stored(memory, line, id);
                    writeln!(self.text, "    if (is_row && lane == 0 && section == 0) a.y{k}[y{k}_at] = {value};")?;
                }
                _ => {
                    let (_, value) = float_of(line, id);
                    writeln!(self.text, "    if (is_row && lane == 0) s{k} = {number}_add(s{k}, {value});")?;
                }
            }
        }
        Ok(())
    }

    /// Stores the sums over rows that are in registers.
    fn write_shared(&mut self) -> fmt::Result {
        let RowShape { lanes, rows, items, vector, .. } = self.kernel.shape;
        for (k, output) in self.shared() {
            match output.is_row() {
                true if items == 0 => {}
                true => {
                    writeln!(self.text, "  UNROLL for (int j = 0; j < {items}; j++) {{")?;
                    writeln!(
                        self.text,
                        "    const i64 i = (j / {vector} * {lanes} + lane) * {vector} + j % {vector};"
                    )?;
                    writeln!(
                        self.text,
                        "    if (i < a.count) a.y{k}[(block * {rows} + group) * a.count + i] = s{k}[j];"
                    )?;
                    writeln!(self.text, "  }}")?;
                }
                false => {
                    writeln!(self.text, "  if (lane == 0 && section == 0) a.y{k}[block * {rows} + group] = s{k};")?
                }
            }
        }
        Ok(())
    }

    /// The result for no elements.
    fn identity(&self, reduction: Reduction) -> String {
        let compute = self.kernel.compute;
        match (reduction, compute) {
            (Reduction::Max, Type::F32) => "of_f32_bits(0xff800000u)".into(),
            (Reduction::Min, Type::F32) => "of_f32_bits(0x7f800000u)".into(),
            (Reduction::Max, Type::F64) => "of_f64_bits(0xfff0000000000000ull)".into(),
            (Reduction::Min, Type::F64) => "of_f64_bits(0x7ff0000000000000ull)".into(),
            (Reduction::Max, _) => constant(Const::Int(i128::MIN), compute),
            (Reduction::Min, _) => constant(Const::Int(i128::MAX), compute),
            (Reduction::Prod, _) => "1".into(),
            _ => "0".into(),
        }
    }
}

/// The function that combines two results.
fn combine(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Prod => "multiply",
        Reduction::Max => "maximum",
        Reduction::Min => "minimum",
        _ => "add",
    }
}
