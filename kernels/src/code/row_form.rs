//! The form of a whole row: its extents, and its stages.

use std::ops::Range;

use super::form::{Form, Id, Node, Op, Width};
use crate::program::Storage;
use crate::runtime::simd::Level;

/// How many values a node has, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// One number for all rows, or for a row, which is loaded into all lanes.
    Fixed,
    /// A number of a row, in the first lane.
    Number,
    /// A value for each element.
    Element,
}

impl Extent {
    /// The extent of each node of a loop over elements, which has no rows.
    pub fn in_loop(form: &Form) -> Vec<Extent> {
        form.nodes.iter().map(|node| if is_fixed(node.op) { Extent::Fixed } else { Extent::Element }).collect()
    }

    /// The extent of each node of a row.
    pub fn in_row(form: &Form) -> Vec<Extent> {
        let mut all: Vec<Extent> = Vec::with_capacity(form.nodes.len());
        for node in &form.nodes {
            all.push(match node.op {
                op if is_fixed(op) => Extent::Fixed,
                Op::Input(..) | Op::Test(_) | Op::Repeat => Extent::Element,
                Op::Reduce(_) => Extent::Number,
                _ => node.operands().iter().map(|id| all[*id as usize]).fold(Extent::Number, Ord::max),
            });
        }
        all
    }
}

fn is_fixed(op: Op) -> bool {
    matches!(op, Op::Constant(_) | Op::Uniform(_) | Op::Truth(_) | Op::Input(_, Storage::One))
}

/// The same form, where numbers of a row that elements are computed from are repeated. `gives` marks the outputs with elements. `None` if
/// another output has elements, or a truth value.
pub fn with_repeats(form: &Form, gives: &[bool], level: Level) -> Option<Form> {
    let extents = Extent::in_row(form);
    let mut repeated = Form::default();
    let mut moved: Vec<Id> = Vec::with_capacity(form.nodes.len());
    for (at, node) in form.nodes.iter().enumerate() {
        let takes_elements = extents[at] == Extent::Element || matches!(node.op, Op::Reduce(_));
        let mut operands: Vec<Id> = Vec::new();
        for id in node.operands() {
            let is_number = takes_elements && extents[*id as usize] == Extent::Number;
            let operand = moved[*id as usize];
            operands.push(if is_number { repeat(&mut repeated, operand, level) } else { operand });
        }
        moved.push(repeated.add(node.op, node.width, &operands));
    }
    for (id, gives) in form.outputs.iter().zip(gives) {
        let output = moved[*id as usize];
        let output = match (extents[*id as usize], gives) {
            (Extent::Number, true) => repeat(&mut repeated, output, level),
            (_, true) => output,
            (Extent::Element, false) => return None,
            (_, false) if form.nodes[*id as usize].op.is_truth() => return None,
            (_, false) => output,
        };
        repeated.outputs.push(output);
    }
    let repeated = by_stage(&repeated.without_dead());
    let is_missing = |(node, extent): (&Node, Extent)| {
        extent == Extent::Number && matches!(node.op, Op::NearestFloat16 | Op::NarrowTruth | Op::WidenTruth)
    };
    (!repeated.nodes.iter().zip(Extent::in_row(&repeated)).any(is_missing)).then_some(repeated)
}

/// The part of a form between two reductions: nodes that follow each other. First come numbers of the row, then elements, and at last the
/// reductions of these.
#[derive(Clone, Debug)]
pub struct Stage {
    pub numbers: Range<Id>,
    pub elements: Range<Id>,
    pub reductions: Range<Id>,
}

/// The stage of each node, and its place within the stage. Elements belong to the first stage that needs them.
fn places(form: &Form) -> Vec<(usize, u8)> {
    let extents = Extent::in_row(form);
    let is_reduction = |id: Id| matches!(form.nodes[id as usize].op, Op::Reduce(_));
    let mut stages: Vec<usize> = Vec::new();
    for node in &form.nodes {
        let operands = node.operands().iter();
        stages.push(operands.map(|id| stages[*id as usize] + usize::from(is_reduction(*id))).max().unwrap_or(0));
    }
    let last = stages.iter().copied().max().unwrap_or(0);
    let mut needed = vec![last; form.nodes.len()];
    let is_element = |at: usize| extents[at] == Extent::Element && form.nodes[at].op != Op::Repeat;
    for at in (0..form.nodes.len()).rev() {
        let stage = if is_element(at) && !is_reduction(at as Id) { needed[at] } else { stages[at] };
        stages[at] = stage;
        form.nodes[at].operands().iter().for_each(|id| needed[*id as usize] = needed[*id as usize].min(stage));
    }
    let place = |at: usize| match () {
        () if is_reduction(at as Id) => 2,
        () if is_element(at) => 1,
        () => 0,
    };
    (0..form.nodes.len()).map(|at| (stages[at], place(at))).collect()
}

/// The same form, whose nodes are in the order of their stages.
fn by_stage(form: &Form) -> Form {
    let places = places(form);
    let mut order: Vec<usize> = (0..form.nodes.len()).collect();
    order.sort_by_key(|at| places[*at]);
    form.in_order(&order)
}

/// The stages of a form that is in their order.
pub fn stages(form: &Form) -> Vec<Stage> {
    let places = places(form);
    let begin = |place: (usize, u8)| places.partition_point(|other| *other < place) as Id;
    let last = places.last().map_or(0, |(stage, _)| *stage);
    (0..=last)
        .map(|stage| Stage {
            numbers: begin((stage, 0))..begin((stage, 1)),
            elements: begin((stage, 1))..begin((stage, 2)),
            reductions: begin((stage, 2))..begin((stage + 1, 0)),
        })
        .collect()
}

/// A number for each element.
fn repeat(form: &mut Form, id: Id, level: Level) -> Id {
    let Node { op, width, .. } = form.nodes[id as usize];
    if !op.is_truth() || level != Level::Avx512 {
        return form.add(Op::Repeat, width, &[id]);
    }
    // A mask register has a bit for each lane.
    let [zero, one] = [0.0, 1.0].map(|x: f64| match width {
        Width::Single => u64::from((x as f32).to_bits()),
        Width::Double => x.to_bits(),
    });
    let [zero, one] = [zero, one].map(|bits| form.add(Op::Constant(bits), width, &[]));
    let number = form.add(Op::Select, width, &[id, one, zero]);
    let number = form.add(Op::Repeat, width, &[number]);
    form.add(Op::Less, width, &[zero, number])
}
