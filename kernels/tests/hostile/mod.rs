//! Processes untrusted text as a program. No step may panic or take long.

use minitensor_kernels::program::{Program, RowPlan, Variable};
use minitensor_kernels::row::Rows;

/// Longer programs are only parsed, because their gradients are even longer.
const SHORT: usize = 64;

/// Processes the text, and returns true if it is a program.
pub fn treat(text: &str) -> bool {
    let Ok(program) = Program::from_json(text) else { return false };
    let written = program.to_json();
    assert_eq!(Program::from_json(&written).expect("a program that was read").to_json(), written);
    if program.instructions().len() > SHORT || program.inputs().len() + program.uniforms().len() > SHORT {
        return true;
    }
    assert!(!program.to_latex().is_empty() || program.outputs().is_empty(), "{program} has no LaTeX");
    let simple = program.simplified();
    let (x, u) = (vec![0.5; program.inputs().len()], vec![0.25; program.uniforms().len()]);
    // Numbers don't support reductions. The simplified program lacks unused nodes, so it may support more.
    assert!(simple.at(&x, &u).is_some() || program.at(&x, &u).is_none(), "{program} simplified: {simple}");
    assert!(simple.verify().is_ok(), "{program} simplified is no program: {simple}");
    for gradient in [program.vjp(&[0]), by_rows(&program)].into_iter().flatten() {
        assert!(gradient.verify().is_ok(), "the gradient of {program} is no program: {gradient}");
        let _ = gradient.simplified();
    }
    run(&program);
    true
}

fn by_rows(program: &Program) -> Option<Program> {
    let wrt = (0..program.inputs().len()).map(Variable::Input).collect::<Vec<_>>();
    program.vjp_of_rows(&vec![true; program.outputs().len()], &wrt)
}

/// Computes one row with the reference and in tiles.
fn run(program: &Program) {
    const N: usize = 5;
    let row = [0.5, -2.0, 0.0, f64::INFINITY, f64::NAN];
    let inputs = vec![&row[..]; program.inputs().len()];
    let uniforms = vec![0.25; program.uniforms().len()];
    let _ = program.at_row(&inputs, &uniforms, N);
    let mut outputs = vec![[0.0; N]; program.outputs().len()];
    let input = |data: *const f64| Rows { data, step: 0, is_large: false };
    let places: Vec<_> = outputs.iter_mut().map(|o| Rows { data: o.as_mut_ptr(), step: 0, is_large: false }).collect();
    let (inputs, uniforms): (Vec<_>, Vec<_>) =
        (inputs.iter().map(|x| input(x.as_ptr())).collect(), uniforms.iter().map(|u| input(u)).collect());
    if let Ok(plan) = RowPlan::new(program.clone(), &vec![true; places.len()], uniforms.len(), &[])
        && program.runs_at::<f64>()
    {
        // SAFETY: all arguments have the row, and the outputs don't overlap.
        unsafe { plan.run(N, 1, &inputs, &uniforms, &places) };
    }
}
