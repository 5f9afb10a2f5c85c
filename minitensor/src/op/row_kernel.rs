//! [`RowKernel`]: a program as a loop over rows.

use std::fmt;
use std::sync::Arc;

use minitensor_kernels::Const;
use minitensor_kernels::program::{Instruction, Program, RowPlan, Storage, Tile};
use minitensor_kernels::row::{Computed, RowFunction, Rows};
use smallvec::SmallVec;

use super::def::{Core, DTypeRule, OpDef, ProgramArguments, ShapeRule};
use super::kernel::CellArg;
use super::program::dtypes_of_rows;
use super::variants::Prepared;
use crate::attr::{Attr, uniform};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::tensor::try_vec;
use minitensor_kernels::Kept;

/// The kernel of a row op that a program computes.
pub struct RowKernel {
    plan: RowPlan,
    /// The plans of the program with only the outputs that are wanted.
    parts: Kept<Wanted, RowPlan>,
    /// The plans for rows that are stored in other ways, if they are machine code.
    stored: Kept<SmallVec<[Storage; 8]>, Option<Arc<RowPlan>>>,
    /// Whether the program scans rows.
    scans: bool,
    /// The rows that are truth values, by position among the rows.
    masks: Vec<usize>,
    dtypes: [DTypeSet; 1],
    arguments: ProgramArguments,
    /// The names of the inputs that are positions, for messages.
    names: Vec<String>,
    /// Whether the body computes with positions.
    has_positions: bool,
    /// Whether each output is stored as integers.
    integers: Vec<bool>,
    /// Whether each output is a row.
    gives: Vec<bool>,
    /// Whether each output is the sum over all rows, because it has no batch.
    shared: Vec<bool>,
}

/// Whether each output is wanted.
type Wanted = SmallVec<[bool; 4]>;

/// The number of elements that are computed before they are added to a sum over rows.
const TOGETHER: usize = 4096;

impl Prepared for RowKernel {
    /// The inputs that are no rows become uniforms.
    fn of_inputs(op: &OpDef, program: Program) -> Program {
        let ProgramArguments { inputs, numbers, positions, .. } = op.program_arguments();
        program.with_numbers(&inputs, &[numbers, positions].concat())
    }

    fn new(op: &OpDef, program: Program) -> Result<RowKernel> {
        let dtypes = [dtypes_of_rows(&program)?];
        if op.generics.len() != 1 {
            return Err(Error::value("a program over rows needs one dtype variable"));
        }
        let arguments = op.program_arguments();
        let gives: Vec<bool> = op.outputs.iter().map(|output| output.core == Core::Slice).collect();
        let is_mask = |i: usize| op.inputs[i].dtype == DTypeRule::Fixed(DType::Bool);
        if let Some(i) = arguments.positions.iter().find(|i| op.inputs[**i].dtype != DTypeRule::Fixed(DType::I64)) {
            let name = &op.inputs[*i].name;
            return Err(Error::value(match is_mask(*i) {
                true => format!("input '{name}' is boolean, so it must be a row"),
                false => format!("input '{name}' is one integer for each row, a position, so its dtype must be int64"),
            }));
        }
        let masks: Vec<usize> = (0..arguments.inputs.len()).filter(|k| is_mask(arguments.inputs[*k])).collect();
        let rule = if let ShapeRule::Core(rule) = &op.shape { Some(rule) } else { None };
        let has_batch = rule.is_some_and(|rule| rule.inputs.iter().any(|dims| dims.batch));
        let outputs = rule.iter().flat_map(|rule| rule.outputs.iter());
        let shared: Vec<bool> = outputs.map(|dims| has_batch && !dims.batch).collect();
        let has_own = |dtype| matches!(dtype, DTypeRule::Fixed(_));
        if let Some((output, _)) = op.outputs.iter().zip(&shared).find(|(o, s)| **s && has_own(o.dtype)) {
            return Err(Error::value(match output.dtype {
                DTypeRule::Fixed(DType::Bool) => {
                    format!("output '{}' is a sum over rows, which truth values do not have", output.name)
                }
                _ => format!("output '{}' is a sum over rows, so it cannot be stored as integers", output.name),
            }));
        }
        let is_position = |i: &Instruction| {
            use RowFunction::{Argsort, Put, Take};
            matches!(i, Instruction::Position | Instruction::Row(Argsort | Put | Take, _))
        };
        let has_positions = program.instructions().iter().any(is_position);
        let integers = op.outputs.iter().map(|o| matches!(o.dtype, DTypeRule::Fixed(d) if d.is_integer())).collect();
        let names = arguments.positions.iter().map(|i| op.inputs[*i].name.to_string()).collect();
        let scans = program.scans();
        let per_row = arguments.numbers.len() + arguments.positions.len();
        let plan = RowPlan::new(program, &gives, per_row, &masks).map_err(|e| Error::value(e.to_string()))?;
        Ok(RowKernel {
            plan,
            parts: Kept::new(),
            stored: Kept::new(),
            masks,
            scans,
            dtypes,
            arguments,
            names,
            has_positions,
            integers,
            gives,
            shared,
        })
    }

    fn program(&self) -> &Program {
        self.plan.program()
    }

    fn dtypes(&self) -> &[DTypeSet] {
        &self.dtypes
    }
}

impl fmt::Debug for RowKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowKernel")
    }
}

/// What the plan says about a dtype; false if programs over rows do not run at it.
macro_rules! of_plan {
    ($kernel:ident, $dtype:ident, $method:ident($($arg:expr),*)) => {
        match $dtype {
            DType::F32 => $kernel.plan.$method::<f32>($($arg),*),
            DType::F64 => $kernel.plan.$method::<f64>($($arg),*),
            _ => false,
        }
    };
}

impl RowKernel {
    /// Computes `cells` rows in a dtype.
    ///
    /// # Safety
    /// Every argument has `cells` cores of that dtype, which the program supports: rows, or numbers. All rows are contiguous; or all are
    /// side by side, with a stride of `cells` elements, if no output is a sum over rows. Positions are `i64`. An input that is not given is null, and so is an output that
    /// is not wanted. With a `stored` plan, rows are stored as it expects, contiguous, and all outputs are wanted.
    pub unsafe fn run(
        &self,
        dtype: DType,
        attrs: &[Attr],
        args: &[CellArg<'_>],
        cells: usize,
        stored: Option<&RowPlan>,
    ) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match dtype {
                DType::F32 => self.run_at::<f32>(attrs, args, cells, stored),
                DType::F64 => self.run_at::<f64>(attrs, args, cells, stored),
                DType::I64 => self.run_at::<i64>(attrs, args, cells, stored),
                DType::U64 => self.run_at::<u64>(attrs, args, cells, stored),
                _ => Err(Error::type_(format!("a program over rows does not run at {dtype}"))),
            }
        }
    }

    unsafe fn run_at<T: Tile + Computed>(
        &self,
        attrs: &[Attr],
        args: &[CellArg<'_>],
        cells: usize,
        stored: Option<&RowPlan>,
    ) -> Result<()> {
        let ProgramArguments { inputs, numbers, positions, floats } = &self.arguments;
        let n = inputs.iter().find_map(|i| args[*i].shape.first()).copied().unwrap_or(0);
        let is_side_by_side = n > 1 && inputs.iter().any(|i| args[*i].strides.first().is_some_and(|s| *s != 1));
        // From one row to the next or, if rows are side by side, from one element of a row to the next.
        let step_of = |arg: &CellArg<'_>| match arg.strides.first() {
            Some(stride) if is_side_by_side => arg.step * stride,
            _ => arg.step,
        };
        if self.has_positions {
            check_positions::<T>(n, None)?;
        }
        if n == 0 && cells > 0 {
            self.check_empty(T::IS_EXACT)?;
        }
        let floats: SmallVec<[T; 4]> =
            floats.iter().map(|k| uniform::<T>(attrs, *k, "an attribute")).collect::<Result<_>>()?;
        // The program does not read an input that is not given.
        let nothing = T::ZERO;
        let input = |i: &usize| match args[*i].data.cast_const().cast::<T>() {
            data if data.is_null() => Rows { data: &raw const nothing, step: 0, is_large: false },
            data => Rows { data, step: step_of(&args[*i]), is_large: false },
        };
        let inputs: SmallVec<[Rows<*const T>; 4]> = inputs.iter().map(input).collect();
        let mut uniforms: SmallVec<[Rows<*const T>; 4]> = numbers.iter().map(input).collect();
        let step = size_of::<T>() as isize;
        let mut places: SmallVec<[Vec<T>; 1]> = SmallVec::new();
        for (i, name) in positions.iter().zip(&self.names).filter(|(i, _)| !args[**i].data.is_null()) {
            // SAFETY: by contract.
            places.push(unsafe { numbers_of(&args[*i], cells, n, name)? });
        }
        let mut places_left = places.iter();
        uniforms.extend(positions.iter().map(|i| match args[*i].data.is_null() {
            true => input(i),
            false => {
                Rows { data: places_left.next().map_or(&raw const nothing, |p| p.as_ptr()), step, is_large: false }
            }
        }));
        uniforms.extend(floats.iter().map(|v| Rows { data: std::ptr::from_ref(v), step: 0, is_large: false }));
        let all = &args[args.len() - self.gives.len()..];
        let wanted: Wanted = all.iter().map(|output| !output.data.is_null()).collect();
        let part = if wanted.contains(&false) { Some(self.part(&wanted)?) } else { None };
        let plan = stored.or(part.as_deref()).unwrap_or(&self.plan);
        let outputs: SmallVec<[usize; 4]> = (0..all.len()).filter(|k| wanted[*k]).collect();
        let is_any = outputs.iter().any(|k| self.shared[*k]);
        if is_any && !is_side_by_side {
            let sums: SmallVec<[bool; 4]> = outputs.iter().map(|k| self.shared[*k]).collect();
            let place = |k: &usize| {
                let step = if self.shared[*k] { 0 } else { all[*k].step };
                Rows { data: all[*k].data.cast(), step, is_large: all[*k].is_large }
            };
            let places: SmallVec<[Rows<*mut T>; 4]> = outputs.iter().map(place).collect();
            // SAFETY: by contract.
            if unsafe { plan.run_whole_rows(n, cells, &inputs, &uniforms, &places, &sums) } {
                return Ok(());
            }
        }
        // The rows of an output that is a sum over all rows are computed in a buffer.
        let together = if is_any { (TOGETHER / n.max(1)).clamp(1, cells.max(1)) } else { cells };
        let room = together * n.max(1);
        let count = if is_any { room * all.len() } else { 0 };
        let mut buffer = try_vec(count)?;
        buffer.resize(count, T::ZERO);
        for start in (0..cells).step_by(together.max(1)) {
            let rows = together.min(cells - start);
            let from = |rows: &Rows<*const T>| Rows { data: rows.row(start), ..*rows };
            let (inputs, uniforms): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
                (inputs.iter().map(from).collect(), uniforms.iter().map(from).collect());
            let mut places: SmallVec<[Rows<*mut T>; 4]> = SmallVec::new();
            for k in &outputs {
                places.push(match self.shared[*k] {
                    true => {
                        let step = (if self.gives[*k] { n } else { 1 } * size_of::<T>()) as isize;
                        Rows { data: buffer[k * room..].as_mut_ptr(), step, is_large: false }
                    }
                    false => {
                        let all =
                            Rows { data: all[*k].data.cast(), step: step_of(&all[*k]), is_large: all[*k].is_large };
                        Rows { data: all.row(start), ..all }
                    }
                });
            }
            // SAFETY: by contract; the op takes no dtypes but those that the program runs at.
            unsafe {
                match is_side_by_side {
                    true => plan.run_side_by_side(n, rows, &inputs, &uniforms, &places),
                    false => plan.run(n, rows, &inputs, &uniforms, &places),
                }
            }
            for k in outputs.iter().filter(|k| self.shared[**k]) {
                let width = if self.gives[*k] { n } else { 1 };
                // SAFETY: by contract, the output has one core, to which the rows are added.
                let sum = unsafe { std::slice::from_raw_parts_mut(all[*k].data.cast::<T>(), width) };
                for row in buffer[k * room..][..rows * width].chunks_exact(width.max(1)) {
                    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
                }
            }
        }
        Ok(())
    }

    /// Whether the program is machine code at a dtype if the rows are side by side.
    pub fn has_machine_code(&self, dtype: DType) -> bool {
        of_plan!(self, dtype, has_machine_code())
    }

    /// Whether rows that are side by side are read where they are, in large pieces.
    pub fn reads_in_place(&self) -> bool {
        self.plan.takes_steps() && !self.plan.keeps_elements()
    }

    /// Whether the program scans rows.
    pub fn scans(&self) -> bool {
        self.scans
    }

    /// Whether one call of machine code reduces several rows of `n` elements to numbers.
    pub fn reduces_at_once(&self, dtype: DType, n: usize) -> bool {
        of_plan!(self, dtype, reduces_at_once(n))
    }

    /// Whether machine code computes `cells` rows of `n` elements as a whole.
    pub fn has_whole_rows(&self, dtype: DType, n: usize, cells: usize) -> bool {
        of_plan!(self, dtype, has_whole_rows(n, cells))
    }

    /// What the arguments of the program are.
    pub fn arguments(&self) -> &ProgramArguments {
        &self.arguments
    }

    /// Whether each output is a row.
    pub fn gives(&self) -> &[bool] {
        &self.gives
    }

    /// Whether each output is the sum over all rows, because it has no batch.
    pub fn shared(&self) -> &[bool] {
        &self.shared
    }

    /// An error if not all positions in rows of `n` elements are numbers of a dtype, and the op takes or gives positions.
    pub fn check_positions(&self, n: usize, dtype: DType) -> Result<()> {
        let body = self.has_positions.then_some(None);
        body.into_iter().chain(self.names.iter().map(|name| Some(&**name))).try_for_each(|name| match dtype {
            DType::F64 => check_positions::<f64>(n, name),
            _ => check_positions::<f32>(n, name),
        })
    }

    /// Whether machine code is faster than loops that rustc compiles from the same body, for rows of `n` elements.
    pub fn is_faster_than_compiled(&self, dtype: DType, n: usize) -> bool {
        of_plan!(self, dtype, is_faster_than_compiled(n))
    }

    /// The plan for rows that are stored in these ways, if it is machine code for `f32`. There is a storage for each input and output of
    /// the op; that of an argument without rows is [`Storage::Own`].
    pub fn stored(&self, storage: &[Storage]) -> Option<Arc<RowPlan>> {
        if let Some(plan) = self.stored.find(|known| known[..] == *storage) {
            return Option::clone(plan);
        }
        let (inputs, outputs) = storage.split_at(storage.len() - self.gives.len());
        let inputs = self.arguments.inputs.iter().map(|i| inputs[*i]).collect();
        let per_row = self.arguments.numbers.len() + self.arguments.positions.len();
        let storage_of_plan = [inputs, outputs.into()];
        let plan = RowPlan::stored(self.program().clone(), &self.gives, per_row, &self.masks, storage_of_plan).ok();
        let plan = plan.filter(RowPlan::is_machine_code::<f32>).map(Arc::new);
        self.stored.keep(storage.into(), Arc::new(plan.clone()));
        plan
    }

    /// An error if an output of empty rows is an integer that does not exist. `is_exact` is whether the program computes integers.
    fn check_empty(&self, is_exact: bool) -> Result<()> {
        let (program, integers) = (self.program(), &self.integers);
        let needs = program.needs_elements();
        match (0..needs.len()).find(|k| needs[*k] && !self.gives[*k] && (is_exact || integers[*k])) {
            None => Ok(()),
            Some(k) => Err(Error::value(format!(
                "'{}' is an integer that depends on the largest or smallest element of a row, but the rows are empty; add \
                 `where n > 0` to the definition",
                program.outputs()[k].0
            ))),
        }
    }

    /// The plan of the program with only these outputs.
    fn part(&self, wanted: &Wanted) -> Result<Arc<RowPlan>> {
        if let Some(part) = self.parts.find(|known| known == wanted) {
            return Ok(part.clone());
        }
        let outputs: Vec<usize> = (0..wanted.len()).filter(|k| wanted[*k]).collect();
        let gives: Vec<bool> = outputs.iter().map(|k| self.gives[*k]).collect();
        let per_row = self.arguments.numbers.len() + self.arguments.positions.len();
        let plan = RowPlan::new(self.program().giving(&outputs), &gives, per_row, &self.masks);
        let plan = Arc::new(plan.map_err(|e| Error::value(e.to_string()))?);
        self.parts.keep(wanted.clone(), plan.clone());
        Ok(plan)
    }
}

/// An error if not all positions in rows of `n` elements are numbers: those in the input `name`, or in the body.
fn check_positions<T: Tile>(n: usize, name: Option<&str>) -> Result<()> {
    // All integers up to this one are numbers.
    let most: u64 = match size_of::<T>() {
        _ if T::IS_EXACT => i64::MAX as u64,
        4 => 1 << 24,
        _ => 1 << 53,
    };
    if n as u64 <= most {
        return Ok(());
    }
    let of = name.map_or("that the body computes with".to_string(), |name| format!("in '{name}'"));
    Err(Error::value(format!(
        "rows of {n} elements are too long for the positions {of} at this dtype, which has the integers up to {most}; convert the tensors \
         to float64"
    )))
}

/// Positions in rows of `n` elements, as numbers.
///
/// # Safety
/// The argument has `cells` integers.
unsafe fn numbers_of<T: Tile + Computed>(arg: &CellArg<'_>, cells: usize, n: usize, name: &str) -> Result<Vec<T>> {
    let all = Rows::<*const i64> { data: arg.data.cast_const().cast(), step: arg.step, is_large: false };
    check_positions::<T>(n, Some(name))?;
    let mut numbers = try_vec(cells)?;
    for cell in 0..cells {
        // SAFETY: by contract.
        let index = unsafe { *all.row(cell) };
        if !(0..n as i64).contains(&index) {
            return Err(Error::index(format!(
                "'{name}' contains position {index}, which is out of range for a row of size {n}; positions start at 0"
            )));
        }
        numbers.push(T::constant(Const::Int(index.into())));
    }
    Ok(numbers)
}
