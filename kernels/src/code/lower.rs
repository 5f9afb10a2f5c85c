//! Replaces the operations that AVX2 lacks.
//!
//! Without mask registers, a truth value is a vector whose numbers have all bits set, or none. It is as wide as the numbers
//! that were compared. Integers are compared as signed ones.

use super::form::{Form, Id, Op, Width};

/// The same form without comparisons of unsigned integers, and with truth values of the width that their users need.
/// `width` is that of the inputs.
pub fn lower(form: &Form, width: Width) -> Form {
    let mut lowered = Form::default();
    let mut moved: Vec<Id> = Vec::with_capacity(form.nodes.len());
    for node in &form.nodes {
        let mut operands: Vec<Id> = node.operands().iter().map(|id| moved[*id as usize]).collect();
        let width = match node.op {
            Op::Test(_) | Op::Truth(_) => width,
            Op::Both | Op::Either | Op::Not => lowered.nodes[operands[0] as usize].width,
            _ => node.width,
        };
        match node.op {
            Op::Both | Op::Either => operands[1] = truth(&mut lowered, operands[1], width),
            Op::Select => operands[0] = truth(&mut lowered, operands[0], width),
            _ => {}
        }
        let mut constant = |bits| lowered.add(Op::Constant(bits), width, &[]);
        let ones = u64::MAX >> (64 - width.bits());
        moved.push(match node.op {
            Op::Truth(value) => constant(if value { ones } else { 0 }),
            Op::Not => {
                let ones = constant(ones);
                lowered.add(Op::Xor, width, &[operands[0], ones])
            }
            Op::Both => lowered.add(Op::And, width, &operands),
            Op::Either => lowered.add(Op::Or, width, &operands),
            Op::LessInt => {
                let sign = constant(width.sign());
                let [a, b] = [0, 1].map(|k| lowered.add(Op::Xor, width, &[operands[k], sign]));
                lowered.add(Op::GreaterSigned, width, &[b, a])
            }
            Op::MultiplyWrapping if width == Width::Double => {
                let [x, y] = [operands[0], operands[1]];
                let [high_x, high_y] = [x, y].map(|x| lowered.add(Op::ShiftRight(32), width, &[x]));
                let mut product = |x, y| lowered.add(Op::MultiplyInt, width, &[x, y]);
                let (low, [p, q]) = (product(x, y), [product(high_x, y), product(x, high_y)]);
                let middle = lowered.add(Op::AddInt, width, &[p, q]);
                let high = lowered.add(Op::ShiftLeft(32), width, &[middle]);
                lowered.add(Op::AddInt, width, &[low, high])
            }
            Op::ShiftRightSignedBy if width == Width::Double => {
                let zero = constant(0);
                let sign = lowered.add(Op::GreaterSigned, width, &[zero, operands[0]]);
                let positive = lowered.add(Op::Xor, width, &[operands[0], sign]);
                let shifted = lowered.add(Op::ShiftRightBy, width, &[positive, operands[1]]);
                lowered.add(Op::Xor, width, &[shifted, sign])
            }
            Op::IsNegative if width == Width::Double => {
                let zero = constant(0);
                lowered.add(Op::GreaterSigned, width, &[zero, operands[0]])
            }
            op => lowered.add(op, width, &operands),
        });
    }
    for id in &form.outputs {
        let output = moved[*id as usize];
        // Truth values are stored from singles.
        let is_truth = form.nodes[*id as usize].op.is_truth();
        let output = if is_truth { truth(&mut lowered, output, Width::Single) } else { output };
        lowered.outputs.push(output);
    }
    lowered.without_dead()
}

/// A truth value in this width.
fn truth(form: &mut Form, id: Id, width: Width) -> Id {
    match (form.nodes[id as usize].width, width) {
        (Width::Single, Width::Double) => form.add(Op::WidenTruth, width, &[id]),
        (Width::Double, Width::Single) => form.add(Op::NarrowTruth, width, &[id]),
        _ => id,
    }
}
