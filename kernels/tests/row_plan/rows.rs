//! Random programs, and rows in memory.

use std::sync::Mutex;

use minitensor_kernels::program::{Program, RowPlan, Symbol, Tile};
use minitensor_kernels::row::{ComputedFloat, Reduction, Rows};
use minitensor_kernels::simd::{Level, levels, set_level};
use minitensor_kernels::{Element, Field, Float, Num, Real, RealRow, Row, lit};

/// The SIMD level is that of the process, so tests that change it run one after the other.
pub static LEVEL: Mutex<()> = Mutex::new(());

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    pub fn number(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64 * 2.0 - 1.0
    }
}

/// The inputs, the uniforms with one value per row, and the attributes of all programs.
pub const NAMES: (&[&str], &[&str]) = (&["a", "b", "c"], &["s", "t", "eps"]);
pub const PER_ROW: usize = 2;

/// The number of rows from which on machine code computes rows as a whole, whatever their length.
pub const ENOUGH: usize = 1 << 17;

/// The longest rows for which programs use positions as numbers: the reference compares each with each.
pub const MOST_COMPARED: usize = 600;

/// The number of kinds of random values that machine code for whole rows has. The others are functions of whole rows.
pub const OF_WHOLE_ROWS: usize = 12;

/// A random program for rows of a length, of some kinds of values, and which of its outputs have one value per element.
pub fn random_program(seed: u64, n: usize, kinds: usize) -> (Program, Vec<bool>) {
    let mut random = Random(seed);
    let mut gives = Vec::new();
    let program = Program::write(NAMES.0, NAMES.1, |x, u| {
        // With whether they differ along a row.
        let mut all: Vec<(Symbol, bool)> = x.iter().map(|x| (*x, true)).collect();
        all.extend(u.iter().map(|u| (*u, false)));
        all.push((lit(0.75), false));
        all.push((x[0].count() * lit(0.01), false));
        all.push((x[0].position().tanh(), true));
        all.push((x[0].position(), true));
        for _ in 0..random.below(24) + 3 {
            let ((a, along), (b, other)) = (all[random.below(all.len())], all[random.below(all.len())]);
            let (c, third) = all[random.below(all.len())];
            let next = match random.below(if n <= MOST_COMPARED { kinds } else { kinds.min(21) }) {
                0 => (a + b, along || other),
                1 => (a - b, along || other),
                2 => (a * b.tanh(), along || other),
                3 => (a.tanh().exp(), along),
                4 => (a.sigmoid(), along),
                5 => (a.maximum(b).tanh(), along || other),
                6 => (Symbol::select(a.less(b), c, a), along || other || third),
                7 => (a / (b.square() + lit(1)), along || other),
                8 => (a.tanh().mean(), false),
                9 => (a.reduce(Reduction::Max), false),
                10 => (a.reduce(Reduction::Min).detach(), false),
                11 => ((a.tanh() * lit(0.1) + lit(1)).reduce(Reduction::Prod).tanh(), false),
                12 => (a.tanh().cumsum().tanh(), true),
                13 => (a.tanh().reverse_cumsum().tanh(), true),
                14 => (a.shift([1, -1, 3, -700, 0][random.below(5)]), true),
                15 => (a.reverse(), true),
                16 => (a.cummax(), true),
                17 => (a.tanh().recurrence(b.tanh()), true),
                18 => (a.tanh().reverse_recurrence(b.sigmoid()), true),
                19 => (Symbol::scan(a.tanh(), |h, x| h * lit(0.5) + (h * b).sin() * x), true),
                20 => {
                    let (h, g) = Symbol::scan((a.tanh(), b.tanh()), |(h, g), (x, y)| {
                        (Symbol::select(c.less(h), g, h * x), g * lit(0.5) + y * h.cos())
                    });
                    all.push((h, true));
                    (g, true)
                }
                21 => (a.sort(), true),
                22 => (a.take(b.argsort()), true),
                _ => (a.put((b.sigmoid() * lit(5)).floor()), true),
            };
            all.push(next);
        }
        let count = random.below(3) + 1;
        let chosen: Vec<(Symbol, bool)> = (0..count).map(|_| all[all.len() - 1 - random.below(4)]).collect();
        // A number of the row may be wanted for each element.
        gives = chosen.iter().map(|(_, along)| *along || random.below(3) == 0).collect();
        chosen.into_iter().enumerate().map(|(k, (y, _))| (format!("y{k}"), y.into())).collect()
    });
    (program, gives)
}

/// Rows in memory: some are apart, some are all the same row.
pub struct Operand<T> {
    pub values: Vec<T>,
    pub step: usize,
}

impl<T: Float> Operand<T> {
    pub fn new(random: &mut Random, n: usize, rows: usize) -> Operand<T> {
        let step = [n, n, n + 3, 0][random.below(4)];
        Operand { values: (0..n + step * (rows - 1)).map(|_| lit(random.number())).collect(), step }
    }

    pub fn rows(&self) -> Rows<*const T> {
        Rows { data: self.values.as_ptr(), step: (size_of::<T>() * self.step) as isize, is_large: false }
    }
}

/// The outputs at a level. Places around the rows keep their value.
pub fn run<T: Tile + ComputedFloat>(
    (plan, gives): (&RowPlan, &[bool]),
    (n, rows): (usize, usize),
    inputs: &[Operand<T>],
    uniforms: &[Operand<T>],
    level: Level,
) -> Vec<Vec<T>> {
    set_level(level);
    plan.has_whole_rows::<T>(n, ENOUGH);
    let width = |gives: bool| if gives { n } else { 1 };
    let (size, unchanged) = (size_of::<T>(), lit::<T>(7.5));
    let mut outputs: Vec<Vec<T>> = gives.iter().map(|gives| vec![unchanged; (width(*gives) + 1) * rows]).collect();
    let places: Vec<Rows<*mut T>> = outputs
        .iter_mut()
        .zip(gives)
        .map(|(y, gives)| Rows { data: y.as_mut_ptr(), step: (size * (width(*gives) + 1)) as isize, is_large: false })
        .collect();
    let of = |all: &[Operand<T>]| all.iter().map(Operand::rows).collect::<Vec<_>>();
    // SAFETY: all operands have these rows.
    unsafe { plan.run::<T>(n, rows, &of(inputs), &of(uniforms), &places) };
    for (y, gives) in outputs.iter_mut().zip(gives) {
        let width = width(*gives);
        assert!(y.chunks(width + 1).all(|row| row[width] == unchanged), "an element after a row has changed");
        *y = y.chunks(width + 1).flat_map(|row| row[..width].to_vec()).collect();
    }
    outputs
}

/// The outputs for the same rows side by side, with gaps between their elements if the plan takes them.
pub fn run_side_by_side<T: Tile + ComputedFloat>(
    (plan, gives): (&RowPlan, &[bool]),
    (n, rows): (usize, usize),
    inputs: &[Operand<T>],
    uniforms: &[Operand<T>],
) -> Vec<Vec<T>> {
    let (gap, unchanged) = (if plan.takes_steps() { n % 3 } else { 0 }, lit(7.5));
    let width = rows + gap;
    let beside = |x: &Operand<T>| -> Vec<T> {
        (0..n * width).map(|at| x.values.get(at % width * x.step + at / width).copied().unwrap_or(unchanged)).collect()
    };
    let inputs: Vec<Vec<T>> = inputs.iter().map(beside).collect();
    let mut outputs: Vec<Vec<T>> =
        gives.iter().map(|gives| vec![unchanged; if *gives { n * width } else { rows }]).collect();
    let size = size_of::<T>() as isize;
    let step = width as isize * size;
    let places: Vec<_> = outputs
        .iter_mut()
        .zip(gives)
        .map(|(y, gives)| Rows { data: y.as_mut_ptr(), step: if *gives { step } else { size }, is_large: false })
        .collect();
    let inputs: Vec<_> = inputs.iter().map(|x| Rows { data: x.as_ptr(), step, is_large: false }).collect();
    let uniforms: Vec<_> = uniforms.iter().map(Operand::rows).collect();
    // SAFETY: all operands have these rows.
    unsafe { plan.run_side_by_side::<T>(n, rows, &inputs, &uniforms, &places) };
    let in_rows = |(y, gives): (&Vec<T>, &bool)| -> Vec<T> {
        if !gives {
            return y.clone();
        }
        let gaps = || y.chunks(width).flat_map(|position| &position[rows..]);
        assert!(gaps().all(|gap| *gap == unchanged), "an element in a gap has changed");
        (0..rows).flat_map(|row| (0..n).map(move |at| y[at * width + row])).collect()
    };
    outputs.iter().zip(gives).map(in_rows).collect()
}

pub fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * (1.0 + b.abs()) || a == b || a.is_nan() && b.is_nan()
}

/// The outputs of a random program over random rows, which have the same bits at all levels and for rows that are side by side.
#[allow(clippy::type_complexity)]
pub fn outputs<T: Tile + ComputedFloat>(
    (program, gives): (&Program, &[bool]),
    (n, rows): (usize, usize),
    random: &mut Random,
) -> (Vec<Operand<T>>, Vec<Operand<T>>, Vec<Vec<T>>) {
    let plan = RowPlan::new(program.clone(), gives, PER_ROW, &[]).unwrap_or_else(|e| panic!("{e}: {program}"));
    let inputs: Vec<Operand<T>> = NAMES.0.iter().map(|_| Operand::new(random, n, rows)).collect();
    let mut uniforms: Vec<Operand<T>> = NAMES.1.iter().map(|_| Operand::new(random, 1, rows)).collect();
    uniforms[PER_ROW].step = 0;
    let mut all: Vec<Vec<Vec<T>>> = vec![];
    for level in levels() {
        all.push(run((&plan, gives), (n, rows), &inputs, &uniforms, level));
        all.push(run_side_by_side((&plan, gives), (n, rows), &inputs, &uniforms));
    }
    for outputs in &all[1..] {
        for (a, b) in all[0].iter().flatten().zip(outputs.iter().flatten()) {
            let is_same = a == b && a.sign() == b.sign() && a.recip() == b.recip() || a.isnan() && b.isnan();
            assert!(is_same, "{a:?} {b:?} at different levels or layouts, {rows} rows of {n}: {program}");
        }
    }
    (inputs, uniforms, all.swap_remove(0))
}
