//! Every mistake in a clause as text has a message, and no text causes a panic.

use minitensor::attr::AttrKind;
use minitensor::clause;
use minitensor::op::{Backward, Mode, OpDef, OpRef};
use minitensor::prelude::*;
use minitensor::{CustomOp, CustomOpBuilder, registry};
use minitensor_ops as _;

fn backward(op: &OpDef, text: &str) -> Result<Backward> {
    clause::formula(op, Mode::Reverse, text)
}

fn build(builder: CustomOpBuilder) -> Result<OpRef> {
    builder.build().map(CustomOp::definition)
}

/// An op for testing invalid clauses.
fn subject() -> Result<OpDef> {
    let op = CustomOpBuilder::new("ns::f", 2).outputs(["values", "order"]).forward(|x| x[0].copied());
    let op =
        op.attr("count", AttrKind::Size, None).attr("scale", AttrKind::Float, None).attr("flag", AttrKind::Bool, None);
    Ok((*build(op)?).clone())
}

/// The message of an error in a clause, and the part of the text that it underlines.
fn sentence_and_part(error: &str, clause: &str) -> (String, String) {
    let rest = error.strip_prefix(&format!("op 'ns::f': {clause} clause: ")).unwrap_or_else(|| panic!("{error}"));
    let lines: Vec<&str> = rest.split('\n').collect();
    match lines[..] {
        [sentence, line, marks] => {
            let part =
                marks.char_indices().filter(|(_, c)| *c == '^').map(|(at, _)| line.chars().nth(at).unwrap_or('$'));
            (sentence.into(), part.collect())
        }
        [sentence, ref line @ ..] => (sentence.into(), line.concat().trim().into()),
        [] => panic!("{error}"),
    }
}

#[test]
fn an_error_in_a_clause_underlines_the_part_that_it_is_about() -> Result<()> {
    let op = subject()?;
    let error = backward(&op, "|d, _| {\n    let double = 2 * d;\n    x: duoble, y: none }").expect_err("a typo");
    let shown = "op 'ns::f': backward clause: unknown name 'duoble' in the formula; did you mean 'double'?\n  \
                 x: duoble, y: none }\n     ^^^^^^";
    assert_eq!(error.to_string(), shown);
    Ok(())
}

#[test]
fn every_mistake_in_a_shape_clause_has_a_sentence() -> Result<()> {
    let op = subject()?;
    let tail = "-> (values: [..], order: [..])";
    // Each clause, its message, and the part that is underlined.
    let cases: &[(&str, &str, &str)] = &[
        (
            "(x: [n], y: [n]) -> (values: [other], order: [..])",
            "the size of the dimension 'other' is unknown; use a dimension of an input, or the name of an integer \
             attribute; the names are 'n' and 'count'",
            "other",
        ),
        (
            "(x: [size], y: [n]) -> (values: [sise], order: [..])",
            "the size of the dimension 'sise' is unknown; use a dimension of an input, or the name of an integer \
             attribute; did you mean 'size'?",
            "sise",
        ),
        ("(x: [n], z: [n]) @", "there is no input 'z'; the names are 'x' and 'y'", "z"),
        ("(x: [n], x: [n], y: [n]) @", "the 'shape' clause mentions 'x' twice; remove one of them", "x"),
        ("(x: [n]) @", "the 'shape' clause does not mention the input 'y'; add 'y: [..]' to its inputs", "(x: [n]) @"),
        (
            "(x: [n], y: [n]) -> (values: [n])",
            "the 'shape' clause does not mention the output 'order'; add 'order: [..]' to its outputs",
            "(x: [n], y: [n]) -> (values: [n])",
        ),
        (
            "(x: [n], y: [n]) -> [n]",
            "the 'shape' clause describes one output, but the op has 2; name every output: '-> (values: [n], …)'",
            "[n]",
        ),
        (
            "([save] x: [n], y: [n]) @",
            "the input 'x' cannot be marked '[save]'; remove the marker; a formula saves the inputs that it mentions",
            "x",
        ),
        (
            "(x: [n], y: [n]) -> ([keep] values: [n], order: [n])",
            "unknown marker '[keep]'; the only marker is '[save]', for an output that only the gradient needs",
            "keep",
        ),
        (
            "(x: [scale], y: [n]) @",
            "the dimension 'scale' has the name of an attribute that is not an integer; rename one of them, or make the \
             attribute an integer",
            "scale",
        ),
        ("(x: [n / 0], y: [n]) @", "'n / 0' divides by 0; use a divisor other than 0", "n / 0"),
        (
            "(x: [n % 2], y: [n]) @",
            "'n % 2' is not a dimension; a dimension is a name, a number, or a combination of them with '+', '-', '*' and '/'",
            "n % 2",
        ),
        (
            "(x: [-1], y: [n]) @",
            "'-1' is not a dimension; a dimension is a name, a number, or a combination of them with '+', '-', '*' and '/'",
            "-1",
        ),
        (
            "(x: [0.5], y: [n]) @",
            "'0.5' is not a dimension; a dimension is a name, a number, or a combination of them with '+', '-', '*' and '/'",
            "0.5",
        ),
        (
            "(x: [n], y: [n]) @ where n",
            "'n' is not a condition; write a comparison such as 'k <= n' or 'eps >= 0.0'",
            "n",
        ),
        (
            "(x: [n], y: [n]) @ where n + 1",
            "'n + 1' is not a condition; write a comparison such as 'k <= n' or 'eps >= 0.0'",
            "n + 1",
        ),
        (
            "(x: [n], y: [n]) @ where flag == 1",
            "the attribute 'flag' is not a number, so it cannot be compared; compare dimensions and numeric attributes",
            "flag",
        ),
        ("where scael > 0.0", "'scael' is neither a dimension nor an attribute; did you mean 'scale'?", "scael"),
        (
            "where 1 < count < 2",
            "expected the end of the clause, found '<'; write the clause like 'k <= n, eps >= 0.0'",
            "<",
        ),
        ("(x: [n], y: [n]", "expected ',' or ')', found the end; write the clause like '(x: [.., n]) -> [.., n]'", "$"),
        (
            "(x: [..n], y: [n]) @",
            "expected ',' or ']', found 'n'; write the clause like '(x: [.., n]) -> [.., n]'",
            "n",
        ),
        (
            "(x: [n], y: [n]) (values: [n])",
            "expected '->', found '('; write the clause like '(x: [.., n]) -> [.., n]'",
            "(",
        ),
        ("x: [n]", "expected '(', found 'x'; write the clause like '(x: [.., n]) -> [.., n]'", "x"),
        (
            "(x: [n], y: [n]) @ scale > 0",
            "expected the end of the clause, found 'scale'; write the clause like '(x: [.., n]) -> [.., n]'",
            "scale",
        ),
        ("(x: [n], y: [$]) @", "unexpected character '$'; remove it", "$"),
        (
            "(x: [99999999999999999999], y: [n]) @",
            "'99999999999999999999' is not a number; write a number such as '12', '0.5' or '1e-6'",
            "99999999999999999999",
        ),
        ("(x: [2n], y: [n]) @", "'2n' is not a number; write a number such as '12', '0.5' or '1e-6'", "2n"),
    ];
    for (text, sentence, part) in cases {
        let (text, part) = (text.replace('@', tail), part.replace('@', tail));
        let error = clause::shape(&op, &text).expect_err(&text).to_string();
        let clause = if text.starts_with("where") { "where" } else { "shape" };
        assert_eq!(sentence_and_part(&error, clause), ((*sentence).into(), part), "{error}");
    }
    let list = build(CustomOpBuilder::new("f", 1).variadic().forward(|x| x[0].copied()))?;
    let error = clause::shape(&list, "(x: [n]) -> [n]").expect_err("a list").to_string();
    assert!(error.contains("'x' is a list of tensors, which may have different dimensions"), "{error}");
    let error = clause::shape(&*registry::get("exp")?, "(x: [n]) -> [n]").expect_err("an element op").to_string();
    assert!(error.contains("an element op cannot have a 'shape' clause; for rows, write 'R: Row'"), "{error}");
    Ok(())
}

#[test]
fn parameters_have_different_names_and_so_have_outputs() {
    let fails = |builder: CustomOpBuilder| match build(builder.forward(|x| x[0].copied())) {
        Err(error) => error.to_string(),
        Ok(op) => panic!("{op:?}"),
    };
    let twice = |name: &str| {
        format!(
            "op 'ns::f': the name '{name}' is used twice; rename one of them; the tensors, attributes, outputs and dimensions \
             of an op must have different names"
        )
    };
    let op = || CustomOpBuilder::new("ns::f", 2);
    assert_eq!(fails(op().inputs(["x", "x"])), twice("x"));
    assert_eq!(fails(op().attr("y", AttrKind::Float, None)), twice("y"));
    assert_eq!(fails(op().outputs(["a", "b", "a"])), twice("a"));
}

#[test]
fn every_mistake_in_a_formula_has_a_sentence() -> Result<()> {
    let op = subject()?;
    let like = "write the clause like '|d_out| { x: d_out * out }'";
    let order = "a formula has 'let' statements first, then its entries";
    let tensor = "compute the entry from tensors, or write 'none'";
    let cases: &[(&str, &str, &str)] = &[
        (
            "|d| { x: d, y: d }",
            "the formula takes 1 cotangent, but the op returns 2 outputs; take one cotangent for each output; write '_' \
             for one that is not used",
            "d",
        ),
        ("|d, _| { x: d }", "the gradient of 'y' is missing; write a formula for it, or 'y: none'", "|d, _| { x: d }"),
        ("|d, _| { x: d, y: d, x: d }", "the gradient of 'x' is defined twice; remove one of them", "x"),
        ("|d, _| { x: d, y: d, z: d }", "'z' is not an input of the op; the names are 'x' and 'y'", "z"),
        (
            "|d, _| { x: d, y: d, count: d }",
            "'count' is an attribute, so it has no gradient; remove the entry; only tensors have one",
            "count",
        ),
        ("|grad, _| { x: gard, y: none }", "unknown name 'gard' in the formula; did you mean 'grad'?", "gard"),
        ("|d, _| { x: 2 * scale, y: none }", &format!("'2 * scale' is not a tensor; {tensor}"), "2 * scale"),
        ("|d, _| { x: [d, d], y: none }", &format!("'[d, d]' is not a tensor; {tensor}"), "[d, d]"),
        (
            "|d, _| { x: d.size, y: none }",
            "a tensor in a formula has no property 'size'; it has 'shape', 'dtype' and 'ndim'",
            "size",
        ),
        (
            "|d, _| { x: d * count.shape, y: none }",
            "in 'count.shape', 'count' is not a tensor; only tensors have the property 'shape'",
            "count",
        ),
        (
            "|d, _| { x: d * d[0], y: none }",
            "'d[0]' is not supported in a formula; use calls, methods and operators on tensors, or name a function in place of the formula",
            "d[0]",
        ),
        (
            "|d, _| { x: if flag { d } else { 0 }, y: none }",
            "one branch of 'if flag { d } else { 0 }' is a tensor, but the other is not; both branches must be tensors, or neither",
            "if flag { d } else { 0 }",
        ),
        ("|d, _| { x: if flag { d }, y: none }", "an 'if' in a formula needs an 'else'; write 'else { … }'", "if"),
        (
            "|d, _| { let (a, b) = d; x: a, y: b }",
            "'d' is not a call of an op; only a call of an op returns several tensors",
            "d",
        ),
        ("|d, _| { x: d, let a = d; y: none }", &format!("a 'let' cannot follow an entry; {order}"), "let"),
        ("|d, _| { let a d; x: d, y: none }", &format!("expected '=', found 'd'; {like}"), "d"),
        (
            "|d, _| { d * 2 }",
            "expected the gradient of an input; write an entry such as 'x: d_out * out' for every input, or 'none' as its value",
            "d",
        ),
        ("|d, _| { x: d * , y: none }", &format!("expected a value, found ','; {like}"), ","),
        ("|d, _| { x: ns::f, y: none }", &format!("expected the arguments of 'ns::f', found ','; {like}"), ","),
        ("|d, _| { x: match d { _ => d }, y: none }", &format!("expected ',' or '}}', found 'd'; {like}"), "d"),
        ("|d, _| { x: f(\"a, y: none }", "unterminated string; add '\"' at its end", "\""),
        ("|d, _| { x: f(\"\\n\"), y: none }", "a string cannot contain '\\'; write the character itself", "\"\\n\""),
        ("|d, _| { x: d, y: none } x", &format!("expected the end of the clause, found 'x'; {like}"), "x"),
        ("", &format!("expected '|', found the end; {like}"), ""),
    ];
    for (text, sentence, part) in cases {
        let error = backward(&op, text).expect_err(text).to_string();
        assert_eq!(sentence_and_part(&error, "backward"), ((*sentence).into(), (*part).into()), "{error}");
    }
    let forward: &[(&str, &str, &str)] = &[
        (
            "|dx| { values: dx, order: dx }",
            "the formula takes 1 tangent, but the op takes 2 inputs; take one tangent for each input; write '_' for an input \
             without a gradient",
            "dx",
        ),
        (
            "|dx, _| { values: dx }",
            "the tangent of 'order' is missing; write a formula for it, or 'order: none'",
            "|dx, _| { values: dx }",
        ),
        (
            "|dx, _| { values: dx, order: dx, values: dx }",
            "the tangent of 'values' is defined twice; remove one of them",
            "values",
        ),
        (
            "|dx, _| { values: dx, order: dx, x: dx }",
            "'x' is not an output of the op; the names are 'values' and 'order'",
            "x",
        ),
        (
            "|dx, _| { values: dx, order: dx, count: dx }",
            "'count' is an attribute, so it has no tangent; remove the entry; only tensors have one",
            "count",
        ),
        (
            "|dx, dy| { values: dx, order: dx }",
            "the tangent 'dy' is not used; use it in the formula; or write '_' in its place, if 'y' has no gradient",
            "dy",
        ),
        (
            "|dx, _| { dx }",
            "expected the tangent of an output; write an entry such as 'out: d_x * out' for every output, or 'none' as its value",
            "dx",
        ),
        ("none", "expected '|', found 'none'; write the clause like '|d_x| { out: d_x * out }'", "none"),
    ];
    for (text, sentence, part) in forward {
        let error = clause::formula(&op, Mode::Forward, text).expect_err(text).to_string();
        assert_eq!(sentence_and_part(&error, "jvp"), ((*sentence).into(), (*part).into()), "{error}");
    }
    let list = build(CustomOpBuilder::new("f", 1).variadic().forward(|x| x[0].copied()))?;
    let error = backward(&list, "|d| { x: d }").expect_err("a list").to_string();
    assert!(
        error.contains("a formula cannot contain the tensors of the list 'x'; write 'backward' as a function instead"),
        "{error}"
    );
    let error = backward(&*registry::get("gather")?, "|d| { x: d, index: d }").expect_err("integers").to_string();
    assert!(error.contains("'index' is never a floating-point tensor, so it has no gradient; remove"), "{error}");
    assert!(matches!(backward(&op, " none ")?, Backward::None(_)));
    Ok(())
}

#[test]
fn depth_and_length_have_limits() -> Result<()> {
    let op = subject()?;
    let fails = |formula: String| {
        backward(&op, &format!("|d, _| {{ x: {formula}, y: none }}")).expect_err("too much").to_string()
    };
    let deep = "the clause is nested more than 64 levels deep; simplify the clause";
    for (open, close) in
        [("(", ")"), ("-", ""), ("& ", ""), ("[", "]"), ("f(", ")"), ("if d { d } else { ", "}"), ("{", "}")]
    {
        assert!(fails(format!("{}d{}", open.repeat(500), close.repeat(500))).contains(deep), "{open}");
    }
    for chain in [" + d", ".exp()", " if d { d } else"] {
        assert!(fails(format!("d{}", chain.repeat(500))).len() < 400, "{chain}");
    }
    assert!(fails(format!("d{}", " + d".repeat(64))).contains(deep));
    assert!(fails("d + d".repeat(8000)).ends_with("bytes; the limit is 16384 bytes"));
    // A long sequence of `let`s is not nested.
    let lets: String = (0..500).map(|_| "let d = d * 2;").collect();
    backward(&op, &format!("|d, _| {{ {lets} x: d, y: none }}"))?;
    Ok(())
}

#[test]
fn no_text_makes_it_panic() -> Result<()> {
    let op = subject()?;
    let mut texts = vec![
        "(x: [.., n], y: [n, m]) -> (values: [.., m], [save] order: [.., (count - 1) / 2]) where count <= n, (count - 1) * 2 < n",
        "where scale >= -0.5, count != 3",
        "|d, d_order| { let g = d.scatter(-1, order, count); let (a, b) = split(g, 2); x: if x < 0 { a } else { -b * scale }, y: none }",
        "|d, _| { let s = x.shape; x: if flag { sum(d, axis = -1, keepdims = true) } else { f([d, y], \"é\") }, y: d % 2.5e-3 & !y }",
    ];
    // Characters outside ASCII may occur anywhere.
    let pieces = [
        "(", ")", "[", "]", "{", "}", "|", "&", "..", "::", ".", "1e", "0.", "\"", "é", "\0", "let ", "if ", " where ",
        "-", "=", "r#",
    ];
    texts.extend(pieces);
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below.max(1)
    };
    let (mut good, mut bad) = (0, 0);
    for _ in 0..30_000 {
        let mut text: Vec<char> = texts[random(4)].chars().collect();
        for _ in 0..=random(4) {
            let (from, to) = (random(text.len() + 1), random(text.len() + 1));
            let (from, to) = (from.min(to), from.max(to));
            match random(4) {
                0 => drop(text.drain(from..to.min(from + 6))),
                1 => drop(text.splice(from..from, pieces[random(pieces.len())].chars())),
                2 => {
                    let part = text[from..to].to_vec();
                    let at = random(text.len() + 1);
                    drop(text.splice(at..at, part));
                }
                _ if from < text.len() => text[from] = char::from_u32(random(0x250) as u32).unwrap_or(' '),
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        for result in [clause::shape(&op, &text).map(drop), backward(&op, &text).map(drop)] {
            match result {
                Ok(()) => good += 1,
                Err(error) => {
                    assert!(error.message().starts_with("op 'ns::f': "), "{error}");
                    bad += 1;
                }
            }
        }
    }
    assert!(good > 100 && bad > 1000, "{good} good, {bad} bad");
    Ok(())
}
