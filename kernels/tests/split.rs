//! A program over numbers of several types is split into one program for each.

use minitensor_kernels::program::{Instruction, Primitive, Program, Symbol};
use minitensor_kernels::{Element, Field, Float, Int, Real, lit};

/// A function of floats and integers, in which conditions pass from the integers to the floats.
fn body<T: Float, U: Int<Mask = T::Mask>>(x: T, e: U, scale: T) -> (T, U, T::Mask) {
    let one = U::one();
    let is_odd = (e & one).truthy() | e.greater(one);
    let y = T::select(is_odd, (x * scale).exp(), T::select(x.less(T::zero()), T::one(), x));
    (y, e * e + one, is_odd & x.greater(y))
}

#[test]
fn both_parts_together_compute_the_body_at_two_types() {
    let program = Program::write(&["x", "e"], &["scale"], |x, u| {
        let (y, n, is_less) = body::<Symbol, Symbol>(x[0], x[1], u[0]);
        vec![("y".into(), y.into()), ("n".into(), n.into()), ("is_less".into(), is_less.into())]
    });
    let split = program.split(2, &[Some(0), Some(1)], &[Some(0), Some(1), None]).expect("it has two parts");
    let [first, second] = &split.parts[..] else { panic!("{split:?}") };
    assert_eq!((first.of, second.of), (1, 0));
    assert_eq!((&first.gives, &second.takes), (&vec![0, 1], &vec![0, 1]));
    assert_eq!((&first.inputs[..], &first.outputs[..]), (&[1][..], &[1][..]));
    assert_eq!((&second.inputs[..], &second.outputs[..]), (&[0][..], &[0, 2][..]));
    for part in &split.parts {
        part.program.verify().expect("a valid program");
    }
    for (x, e) in [(0.5, 3_i64), (-0.5, 2), (-0.5, 1), (0.25, i64::MAX), (0.0, (1 << 53) + 1), (f64::NAN, i64::MIN)] {
        let of_first = first.program.at(&[e], &[]).expect("integers");
        let masks = of_first[1..].iter().map(|mask| f64::from(u8::from(mask.mask() == Some(true))));
        let inputs: Vec<f64> = [x].into_iter().chain(masks).collect();
        let of_second = second.program.at(&inputs, &[1.5]).expect("floats");
        let (y, n, is_less) = body(x, e, 1.5);
        assert_eq!(of_first[0].number(), Some(n));
        assert_eq!(of_second[0].number().map(f64::to_bits), Some(y.to_bits()));
        assert_eq!(of_second[1].mask(), Some(is_less));
    }
}

#[test]
fn parts_that_need_conditions_of_each_other_are_none() {
    let program = Program::write(&["x", "e"], &[], |x, _| {
        let more = Symbol::select(x[0].truthy(), x[1] + Symbol::one(), x[1]);
        vec![("y".into(), Symbol::select(more.truthy(), x[0], x[0] * x[0]).into()), ("more".into(), more.into())]
    });
    assert!(program.split(2, &[Some(0), Some(1)], &[Some(0), Some(1)]).is_none());
    // With one type, everything is in one part.
    let split = program.split(1, &[Some(0), Some(0)], &[Some(0), Some(0)]).expect("it has one type");
    assert!(split.masks == 0 && split.parts.len() == 1 && split.parts[0].inputs == [0, 1]);
}

#[test]
fn numbers_of_different_types_must_not_meet() {
    let sum = Program::write(&["x", "e"], &[], |x, _| vec![("out".into(), (x[0] + x[1]).into())]);
    assert!(sum.split(2, &[Some(0), Some(1)], &[Some(0)]).is_none());
    let same = Program::write(&["e"], &[], |x, _| vec![("out".into(), x[0].into())]);
    assert!(same.split(2, &[Some(1)], &[Some(0)]).is_none());
    assert!(same.split(2, &[], &[Some(0)]).is_none());
}

#[test]
fn conditions_of_integers_pass_through_a_gradient() {
    let program = Program::write(&["x", "e"], &[], |x, _| {
        let is_odd = (x[1] & lit(1)).truthy();
        vec![("out".into(), Symbol::select(is_odd, x[0].exp(), x[0] * x[0]).into())]
    });
    let vjp = program.vjp(&[0]).expect("the integer has no derivative, but x has one");
    let is_of_bits = |i: &Instruction| matches!(i, Instruction::Apply(Primitive::BitwiseAnd, _));
    assert!(vjp.instructions().iter().any(is_of_bits), "{vjp}");
    // The integer itself has none.
    assert!(program.vjp(&[1]).is_none());
}

#[test]
fn conditions_pass_along_a_chain_of_three_types_in_any_order() {
    // The condition on `a` chooses among `b`; that on the choice, and the one on `a`, choose among `c`.
    let types = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let program = Program::write(&["a", "b", "c"], &[], |x, _| {
        let chosen = Symbol::select(x[0].truthy(), x[1] + x[1], x[1]);
        let both = chosen.greater(Symbol::one()) & x[0].truthy();
        vec![("c".into(), Symbol::select(both, x[2] * x[2], -x[2]).into()), ("b".into(), chosen.into())]
    });
    for [a, b, c] in types {
        let split = program.split(3, &[Some(a), Some(b), Some(c)], &[Some(c), Some(b)]).expect("a chain");
        assert_eq!(split.parts.iter().map(|part| part.of).collect::<Vec<_>>(), [a, b, c]);
        for given in [[0.0, 1.0, 3.0], [1.0, 1.0, 3.0], [1.0, 0.25, 3.0], [0.0, 0.25, 3.0]] {
            let mut masks = vec![f64::NAN; split.masks];
            let mut results = [f64::NAN; 2];
            for part in &split.parts {
                part.program.verify().expect("a valid program");
                let inputs = part.inputs.iter().map(|k| given[*k]).chain(part.takes.iter().map(|k| masks[*k]));
                let found = part.program.at(&inputs.collect::<Vec<f64>>(), &[]).expect("numbers");
                let (outputs, gives) = found.split_at(part.outputs.len());
                part.outputs.iter().zip(outputs).for_each(|(k, y)| results[*k] = y.number().expect("a number"));
                part.gives
                    .iter()
                    .zip(gives)
                    .for_each(|(k, y)| masks[*k] = f64::from(u8::from(y.mask().expect("a mask"))));
            }
            let whole = program.at(&given, &[]).expect("numbers");
            assert_eq!(results.map(Some), [whole[0].number(), whole[1].number()]);
        }
    }
    let ring = Program::write(&["a", "b", "c"], &[], |x, _| {
        let outputs = [(0, 1), (1, 2), (2, 0)].map(|(of, by)| Symbol::select(x[by].truthy(), x[of], -x[of]));
        outputs.into_iter().enumerate().map(|(k, y)| (format!("y{k}"), y.into())).collect()
    });
    // Each type needs a condition on the next one, so none comes first.
    assert!(ring.split(3, &[Some(0), Some(1), Some(2)], &[Some(0), Some(1), Some(2)]).is_none());
}
