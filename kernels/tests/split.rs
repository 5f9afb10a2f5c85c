//! A program over numbers of two types is split into two programs.

use minitensor_kernels::program::{Instruction, Primitive, Program, Symbol};
use minitensor_kernels::{Element, Field, Float, Int, lit};

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
    let split = program.split(&[Some(false), Some(true)], &[Some(false), Some(true), None]).expect("it has two parts");
    assert_eq!(split.is_second, [true, false]);
    let [first, second] = &split.parts;
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
    assert!(program.split(&[Some(false), Some(true)], &[Some(false), Some(true)]).is_none());
    // With one type, everything is in one part.
    let split = program.split(&[Some(false), Some(false)], &[Some(false), Some(false)]).expect("it has one type");
    assert!(split.masks == 0 && split.parts.iter().any(|part| part.inputs.is_empty()));
}

#[test]
fn numbers_of_two_types_must_not_meet() {
    let sum = Program::write(&["x", "e"], &[], |x, _| vec![("out".into(), (x[0] + x[1]).into())]);
    assert!(sum.split(&[Some(false), Some(true)], &[Some(false)]).is_none());
    let same = Program::write(&["e"], &[], |x, _| vec![("out".into(), x[0].into())]);
    assert!(same.split(&[Some(true)], &[Some(false)]).is_none());
    assert!(same.split(&[], &[Some(false)]).is_none());
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
