//! Graphs in Rust: recording, the verifier, and runs.

use minitensor::graph::{Operand, Reads, Recording, Source, Traced, ValueId, verify};
use minitensor::op::OpName;
use minitensor::{Result, Tensor};
use minitensor_ops as _;

static EXP: OpName = OpName::new("exp");
static MATMUL: OpName = OpName::new("matmul");
static SUM: OpName = OpName::new("sum");

fn matrix(first: f32) -> Result<Tensor> {
    Tensor::from_vec((0..4).map(|i| first + i as f32 / 4.0).collect(), [2, 2])
}

/// `exp(x) @ exp(x)`, and its sum.
fn function(x: &Tensor) -> Result<Vec<Tensor>> {
    let y = EXP.call(&[x.into()], &[])?;
    let z = MATMUL.call(&[(&y).into(), (&y).into()], &[])?;
    let sum = SUM.call(&[(&z).into()], &[])?;
    Ok(vec![z, sum])
}

fn traced() -> Result<Traced> {
    let x = matrix(0.0)?;
    let recording = Recording::start(std::slice::from_ref(&x))?;
    let results = function(&x)?;
    Traced::new(recording, &[x], &results, &[]).map(|(traced, _)| traced)
}

#[test]
fn a_run_computes_the_function() -> Result<()> {
    let (traced, x) = (traced()?, matrix(1.0)?);
    assert!(traced.matches(std::slice::from_ref(&x)) && !traced.is_stale());
    assert!(!traced.matches(&[Tensor::zeros([3, 2], x.dtype(), x.device())?]));
    for (a, b) in traced.run(std::slice::from_ref(&x), &[])?.iter().zip(function(&x)?) {
        assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn a_thread_has_one_recording() -> Result<()> {
    let recording = Recording::start(&[])?;
    assert!(Recording::start(&[]).is_err_and(|e| e.message().contains("records a graph already")));
    drop(recording);
    Recording::start(&[]).map(drop)
}

#[test]
fn the_verifier_finds_wrong_graphs() -> Result<()> {
    let traced = traced()?;
    let valid = traced.graph();
    verify(valid)?;
    let broken = |change: &dyn Fn(&mut minitensor::graph::Graph), expected: &str| {
        let mut graph = valid.clone();
        change(&mut graph);
        let message = verify(&graph).expect_err("the graph is not valid").to_string();
        assert!(message.contains(expected), "{message}");
    };
    broken(&|graph| graph.calls.swap(0, 1), "before it is computed");
    broken(&|graph| graph.calls.truncate(1), "its output");
    broken(&|graph| graph.calls.push(graph.calls[0].clone()), "computed already");
    broken(&|graph| graph.calls[0].args[0] = Operand::Value(ValueId(99)), "before it is computed");
    broken(&|graph| graph.calls[0].outputs[0] = Some(ValueId(99)), "does not exist");
    broken(&|graph| graph.values[0].source = Source::Computed, "before it is computed");
    broken(&|graph| graph.calls[1].args.clear(), "has 0 arguments, expected 2");
    Ok(())
}

#[test]
fn reads_are_the_arguments_of_a_run() -> Result<()> {
    let (traced, x) = (traced()?, matrix(0.5)?);
    let executable = minitensor::graph::Executable::new(traced.graph().clone());
    let results = executable.run(Reads { args: std::slice::from_ref(&x), captured: &[], numbers: &[] }, false)?;
    assert_eq!(results[1].to_vec::<f32>()?, function(&x)?[1].to_vec::<f32>()?);
    Ok(())
}
