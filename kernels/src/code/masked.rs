//! Products that are 0 where a condition fails, as AVX-512 computes them in one instruction.

use super::form::{Form, Id, Node, Op};

/// The same form, where a product that is only selected against 0 is a [product with a condition](Op::MultiplyIf).
pub fn masked(form: &Form) -> Form {
    let mut uses = vec![0; form.nodes.len()];
    let operands = form.nodes.iter().flat_map(Node::operands);
    operands.chain(&form.outputs).for_each(|id| uses[*id as usize] += 1);
    let is_zero = |id: Id| form.nodes[id as usize].op == Op::Constant(0);
    let is_product = |id: Id| form.nodes[id as usize].op == Op::Multiply && uses[id as usize] == 1;
    let mut masked = Form::default();
    let mut moved: Vec<Id> = Vec::with_capacity(form.nodes.len());
    for node in &form.nodes {
        let of = |id: &Id| moved[*id as usize];
        moved.push(match (node.op, node.operands()) {
            (Op::Select, &[condition, a, b]) if is_zero(b) && is_product(a) => {
                let [x, y] = [0, 1].map(|k| of(&form.nodes[a as usize].operands()[k]));
                masked.add(Op::MultiplyIf, node.width, &[of(&condition), x, y])
            }
            (Op::Select, &[condition, a, b]) if is_zero(a) && is_product(b) => {
                let [x, y] = [0, 1].map(|k| of(&form.nodes[b as usize].operands()[k]));
                let Node { op, width, .. } = form.nodes[condition as usize];
                let condition = match form.nodes[condition as usize].operands() {
                    [p, q] if op == Op::Equal => masked.add(Op::Unequal, width, &[of(p), of(q)]),
                    _ => masked.add(Op::Not, width, &[of(&condition)]),
                };
                masked.add(Op::MultiplyIf, node.width, &[condition, x, y])
            }
            (op, operands) => {
                let operands: Vec<Id> = operands.iter().map(of).collect();
                masked.add(op, node.width, &operands)
            }
        });
    }
    masked.outputs = form.outputs.iter().map(|id| moved[*id as usize]).collect();
    masked.without_dead()
}
