//! Clauses as text mean the same as in the macro.

use minitensor::attr::{Attr, AttrKind};
use minitensor::autograd::grad;
use minitensor::clause;
use minitensor::op::{Arg, Backward, Call, OpRef, Role, ShapeRule, Value, bind, dispatch, dispatch_one};
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor::{CustomOp, CustomOpBuilder, registry};
use minitensor_ops as _;

/// Calls an op by its name.
fn op(name: &str, args: &[Value<'_>]) -> Result<Tensor> {
    let op = registry::get(name)?;
    let (inputs, attrs) = bind(&op, args, &[])?;
    dispatch_one(&op, &inputs, &attrs)
}

fn build(builder: CustomOpBuilder) -> Result<OpRef> {
    builder.build().map(CustomOp::definition)
}

fn ramp(shape: &[usize]) -> Tensor {
    let n = shape.iter().product::<usize>();
    let values = (0..n).map(|i| ((i * 7 + 3) % 11) as f64 * 0.31 - 1.2).collect();
    Tensor::from_vec(values, shape).expect("a ramp")
}

#[test]
fn the_text_of_every_registered_clause_reads_as_the_macro_reads_it() {
    let (mut shapes, mut conditions) = (0, 0);
    for op in registry::list_all() {
        let mut text = match &op.shape {
            ShapeRule::Core(rule) => rule.text.to_string(),
            _ => String::new(),
        };
        let predicates: Vec<&str> = op.predicates.iter().map(|p| p.text.as_ref()).collect();
        if !predicates.is_empty() {
            text = format!("{text} where {}", predicates.join(", "));
        }
        if text.is_empty() {
            continue;
        }
        let read = clause::shape(&op, &text).unwrap_or_else(|e| panic!("{e}"));
        if let ShapeRule::Core(rule) = &op.shape {
            assert_eq!(read.shapes.as_ref(), Some(rule), "{}", op.name);
            shapes += 1;
        }
        assert_eq!(read.predicates, op.predicates.as_ref(), "{}", op.name);
        let saved: Vec<usize> = (0..op.outputs.len()).filter(|k| op.outputs[*k].role == Role::Saved).collect();
        assert_eq!(read.saved, saved, "{}", op.name);
        conditions += predicates.len();
    }
    assert!(shapes > 50 && conditions > 30, "{shapes} shapes, {conditions} conditions");
}

// The examples of docs/defining-ops.md, with bodies made of other ops.

fn logistic() -> Result<OpRef> {
    let op = CustomOpBuilder::new("text::logistic", 1).forward(|x| op("sigmoid", &[x[0].into()]));
    build(op.formula("|d| { x: d * (out * (1 - out)).conj() }"))
}

fn weighted_dot() -> Result<OpRef> {
    let body = |x: &[&Tensor]| {
        let product = op("multiply", &[(&op("multiply", &[x[0].into(), x[1].into()])?).into(), x[2].into()])?;
        op("sum", &[(&product).into(), (-1).into()])
    };
    let op = CustomOpBuilder::new("text::weighted_dot", 0).inputs(["x", "y", "weight"]).forward(body);
    build(op.shape("(x: [.., n], y: [.., n], weight: [n]) -> [..]").formula(
        "|d| {
            let d = d.unsqueeze(-1);
            let scaled = d * weight.conj();
            x: scaled * y.conj(),
            y: scaled * x.conj(),
            weight: none,
        }",
    ))
}

fn quadratic_form() -> Result<OpRef> {
    let body = |x: &[&Tensor]| {
        let ax = op("matmul", &[x[0].into(), x[1].into()])?;
        op("sum", &[(&op("multiply", &[(&ax).into(), x[0].into()])?).into(), (-1).into()])
    };
    let op = CustomOpBuilder::new("text::quadratic_form", 0).inputs(["x", "a"]).forward(body);
    build(op.shape("(x: [.., n], a: [n, n]) -> [..]").formula(
        "|d| {
            let d = d.unsqueeze(-1);
            x: d * matmul(x, a + a.matrix_transpose()).conj(),
            a: matmul((d * x.conj()).unsqueeze(-1), x.conj().unsqueeze(-2)),
        }",
    ))
}

fn middle() -> Result<OpRef> {
    let body = |call: &Call<'_>| {
        let x = call.tensor(0);
        let half = (x.shape()[x.ndim() - 1] / 2) as i64;
        let order = op("argsort", &[x.into()])?;
        let place = op("slice", &[(&order).into(), (-1).into(), half.into(), (half + 1).into()])?;
        let out = op("gather", &[x.into(), (&place).into()])?;
        [out, place].iter().map(|t| op("squeeze", &[t.into(), (-1).into()])).collect()
    };
    let op = CustomOpBuilder::new("text::middle", 1).outputs(["out", "place"]).body(body);
    let op = op.shape("(x: [.., n]) -> (out: [..], [save] place: [..]) where n > 0");
    build(op.formula("|d| { x: scatter(d.unsqueeze(-1), place.unsqueeze(-1), n) }"))
}

/// `outᵢ = Σⱼ≤ᵢ decayⁱ⁻ʲ · xⱼ`, so that the formula calls the op itself.
fn decayed_sum() -> Result<OpRef> {
    let body = |call: &Call<'_>| {
        let (x, decay) = (call.tensor(0), &call.attrs()[0]);
        let n = x.shape()[x.ndim() - 1];
        let mut total: Option<Tensor> = None;
        let mut columns = Vec::new();
        for i in 0..n as i64 {
            let column = op("slice", &[x.into(), (-1).into(), i.into(), (i + 1).into()])?;
            let sum = match &total {
                Some(total) => {
                    let past = op("multiply", &[total.into(), Value::Attr(decay.clone())])?;
                    op("add", &[(&past).into(), (&column).into()])?
                }
                None => column,
            };
            columns.push(sum.clone());
            total = Some(sum);
        }
        op("concat", &[Value::Tensors(columns.iter().collect()), (-1).into()]).map(|t| vec![t])
    };
    let op = CustomOpBuilder::new("text::decayed_sum", 1).body(body);
    let op = op.attr("decay", AttrKind::Float, Some(Attr::Float(0.9)));
    build(
        op.shape("(x: [.., n]) -> [.., n] where n > 0, decay >= 0.0, decay <= 1")
            .formula("|d| { x: flip(text::decayed_sum(flip(d, -1), decay = decay), -1) }"),
    )
}

/// Branches, several outputs, lists, properties, arithmetic on known values.
fn folded() -> Result<OpRef> {
    let body = |call: &Call<'_>| {
        let (x, y) = (call.tensor(0), call.tensor(1));
        let size = op("abs", &[x.into()])?;
        let scaled = op("multiply", &[(&size).into(), y.into()])?;
        let twice = call.attrs()[0] == Attr::Bool(true);
        Ok(vec![if twice { op("add", &[(&scaled).into(), (&scaled).into()])? } else { scaled }, size])
    };
    let op = CustomOpBuilder::new("text::folded", 2).outputs(["scaled", "size"]).body(body);
    let op = op.attr("twice", AttrKind::Bool, Some(Attr::Bool(true)));
    build(op.formula(
        "|d_scaled, d_size| {
            let factor = if twice && x.ndim >= 0 { let two = 6 / 3; d_scaled * two } else { d_scaled };
            let (first, second) = (factor * y, d_size);
            let both = if x.ndim == 2 { sum(stack([first, second], 0), [0]).reshape([x.shape[0], -1]) } else { first + second };
            let (sorted, order) = sort(both);
            let turned = gather(sorted, argsort(order)).reshape(x.shape);
            x: if x < 0 { -turned } else { turned },
            y: factor * size,
        }",
    ))
}

#[test]
fn formulas_as_text_pass_opcheck() -> Result<()> {
    for op in [logistic()?, weighted_dot()?, quadratic_form()?, middle()?, folded()?] {
        opcheck(&op, &[]).into_result()?;
    }
    let own = decayed_sum()?;
    registry::register_all(std::slice::from_ref(&own), None)?;
    opcheck(&own, &[]).into_result()?;
    registry::unregister("text::decayed_sum")?;
    // The formula calls the op itself, but must not keep it alive.
    let OpRef::Shared(own) = own else { panic!("made at run time") };
    assert_eq!(std::sync::Arc::strong_count(&own), 1);
    Ok(())
}

#[test]
fn what_a_formula_mentions_is_saved_and_nothing_else() -> Result<()> {
    let saves = |op: &OpRef| match &op.backward {
        Backward::Formula(f) => (f.saved_inputs.to_vec(), f.saved_outputs.to_vec(), f.without.to_vec()),
        other => panic!("{other:?}"),
    };
    assert_eq!(saves(&logistic()?), (vec![], vec![0], vec![]));
    assert_eq!(saves(&weighted_dot()?), (vec![0, 1, 2], vec![], vec![2]));
    assert_eq!(saves(&middle()?), (vec![], vec![1], vec![]));
    // Raw keywords of the grammar are names.
    let op = CustomOpBuilder::new("text::raw", 0).inputs(["let_", "match", "where"]).forward(|x| x[0].copied());
    let formula = "|d| { let r#else = d * r#where; let_: r#else, match: none, r#where: d * r#match }";
    assert_eq!(saves(&build(op.formula(formula))?), (vec![1, 2], vec![], vec![1]));
    // A shape is not saved.
    let op = CustomOpBuilder::new("text::shape", 2).forward(|x| x[0].copied());
    assert_eq!(saves(&build(op.formula("|d| { x: d.reshape(x.shape), y: y }"))?), (vec![1], vec![], vec![]));
    Ok(())
}

#[test]
fn a_part_that_no_wanted_gradient_uses_does_not_run() -> Result<()> {
    let op = CustomOpBuilder::new("text::lazy", 2).forward(|x| x[0].copied());
    let op = build(op.formula("|d| { let bad = no_such_op(d); let worse = bad * 2; x: d, y: worse }"))?;
    let run = |x: &Tensor, y: &Tensor| {
        let out = dispatch(&op, &[Arg::Tensor(x), Arg::Tensor(y)], &[])?.single();
        grad(&[out], &[if x.requires_grad() { x.clone() } else { y.clone() }], &[Some(ramp(&[3]))], Default::default())
    };
    let (x, leaf) = (ramp(&[3]), ramp(&[3]).with_requires_grad()?);
    assert_eq!(run(&leaf, &x)?[0].as_ref().map(|t| t.to_vec::<f64>()).transpose()?, Some(x.to_vec()?));
    let error = run(&x, &leaf).expect_err("there is no such op").to_string();
    assert!(error.contains("op 'text::lazy', formula of its gradient: there is no op 'no_such_op'"), "{error}");
    Ok(())
}

#[test]
fn a_formula_asks_for_words_and_for_inputs_that_may_be_absent() -> Result<()> {
    let body = |call: &Call<'_>| {
        let x = call.tensor(0);
        let scaled = call.optional(1).map_or(Ok(x.clone()), |w| op("multiply", &[x.into(), w.into()]))?;
        op(if call.attrs()[0] == Attr::from("mean") { "mean" } else { "sum" }, &[(&scaled).into()]).map(|t| vec![t])
    };
    let scaled = CustomOpBuilder::new("text::scaled", 0).inputs(["x", "weight"]).optional(1).body(body);
    let scaled = build(scaled.attr("reduction", AttrKind::Enum(&["mean", "sum"]), Some("mean".into())).formula(
        r#"|d| {
            let each = d.expand(x.shape);
            let each = if reduction == "mean" { each / sum(x * 0 + 1) } else { each };
            x: if weight == None { each } else { each * weight.conj() },
            weight: each * x.conj(),
        }"#,
    ))?;
    opcheck(&scaled, &[]).into_result()
}

#[test]
fn a_shape_clause_is_checked_before_and_after_a_body() -> Result<()> {
    let op = build(
        CustomOpBuilder::new("text::wrong", 1)
            .forward(|x| x[0].copied())
            .shape("(x: [.., n]) -> [.., n / 2] where n > 1"),
    )?;
    let run = |n: usize| dispatch_one(&op, &[Arg::Tensor(&ramp(&[n]))], &[]).expect_err("wrong").to_string();
    assert_eq!(run(1), "op 'text::wrong' needs n > 1, got n = 1");
    assert!(run(3).contains("the size of an output dimension is not an integer (output 'out')"), "{}", run(3));
    assert!(run(4).contains("declares shape (2,) for 'out', but its body returned (4,)"), "{}", run(4));
    let op = build(CustomOpBuilder::new("text::two", 1).outputs(["a", "b"]).forward(|x| x[0].copied()))?;
    let error = dispatch(&op, &[Arg::Tensor(&ramp(&[2]))], &[]).expect_err("one output of two").to_string();
    assert!(error.contains("declares 2 outputs, but its body returned 1"), "{error}");
    Ok(())
}
