//! Tests of the clause `tune`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use minitensor::autograd::{Options, backward};
use minitensor::op::{Arg, Value, bind, dispatch};
use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor::{Attr, CustomOpBuilder, OpRef, tuning};
use minitensor_ops as _;

/// The transpose of a matrix, tile by tile.
#[custom_op(
    shape = (x: [.., m, n]) -> [.., n, m],
    backward = |d_out| { x: tiled_transpose(d_out) },
    tune = [tile = [8, 16, 32]],
)]
fn tiled_transpose<T: Num>(x: ArrayView2<T>, mut out: ArrayViewMut2<T>, tile: usize) {
    USED.lock().expect("no thread panics").push(tile);
    let (m, n) = x.dim();
    for top in (0..m).step_by(tile) {
        for left in (0..n).step_by(tile) {
            for i in top..m.min(top + tile) {
                for j in left..n.min(left + tile) {
                    out[[j, i]] = x[[i, j]];
                }
            }
        }
    }
}

/// The tiles that [`tiled_transpose`] was called with.
static USED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// An expensive function of an element.
#[custom_op(tune = [grain = [256, 4096, 65536]])]
fn slow_cosine<T: Float>(x: T) -> T {
    x.cos().cos().cos()
}

/// The differences to the mean of a row.
#[custom_op(shape = (x: [.., n], weight: [n]) -> [.., n], tune = [grain = [64, 16384]])]
fn centred<R: Row>(x: R, weight: R) -> R {
    (x - x.mean()) * weight
}

/// Sums in blocks, which is wrong: rounding depends on the block.
#[custom_op(shape = (x: [.., n]) -> (out: [..]), backward = none, tune = [block = [1, 4]])]
fn blocked_sum<T: Float>(x: &[T], out: &mut T, block: usize) {
    *out = x.chunks(block).map(|block| block.iter().fold(T::zero(), |sum, v| sum + *v)).fold(T::zero(), |a, b| a + b);
}

fn matrix(m: usize, n: usize) -> Tensor {
    Tensor::from_vec((0..m * n).map(|i| ((i * 37) % 101) as f64 / 7.0 - 5.0).collect(), [m, n]).expect("m·n values")
}

fn called(op: &OpRef, x: &Tensor, attrs: &[Attr]) -> Vec<f64> {
    let out = dispatch(op, &[Arg::Tensor(x)], attrs).expect("a correct call").single();
    out.to_vec().expect("float64 values")
}

/// Runs a test in a process of its own, whose cache is empty.
fn alone(name: &str, test: impl FnOnce()) {
    if std::env::var_os("MINITENSOR_CACHE_DIR").is_some() {
        return test();
    }
    let folder = folder(name);
    let output = process(name, &folder).output().expect("the process runs");
    let _ = std::fs::remove_dir_all(folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
}

/// A folder that does not exist.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("minitensor-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A process that runs one test with this folder as its cache.
fn process(test: &str, cache: &Path) -> Command {
    let program = std::env::current_exe().expect("a test program");
    // The emulator of `cargo xtask test portability` starts processes of this system only.
    let runner = std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok();
    let runner = runner.iter().filter(|_| cfg!(target_arch = "aarch64")).flat_map(|words| words.split(' '));
    let words: Vec<OsString> = runner.map(OsString::from).chain([program.into()]).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).env("MINITENSOR_CACHE_DIR", cache);
    command.env_remove("MINITENSOR_TUNE");
    command
}

/// The tiles that a call used.
fn tiles_of(call: impl FnOnce()) -> Vec<usize> {
    USED.lock().expect("no thread panics").clear();
    call();
    USED.lock().expect("no thread panics").clone()
}

#[test]
fn the_first_call_of_a_class_measures_and_later_calls_use_the_fastest() {
    alone("the_first_call_of_a_class_measures_and_later_calls_use_the_fastest", || {
        let op = tiled_transpose::op();
        let x = matrix(70, 50);
        let expected = called(&op, &x, &[Attr::Int(16)]);
        let first = tiles_of(|| assert_eq!(called(&op, &x, &[Attr::None]), expected));
        // One run before, three rounds of three candidates, and the call.
        assert_eq!(first.len(), 1 + 3 * 3 + 1);
        let chosen = *first.last().expect("eleven tiles");
        assert!([8, 16, 32].iter().all(|tile| first.contains(tile)));
        assert_eq!(tiles_of(|| drop(called(&op, &x, &[Attr::None]))), [chosen]);
        // A size of the same power of two is in the same class; others are not, and neither are other dtypes and layouts.
        assert_eq!(tiles_of(|| drop(called(&op, &matrix(100, 33), &[Attr::None]))), [chosen]);
        assert_eq!(tiles_of(|| drop(called(&op, &matrix(130, 50), &[Attr::None]))).len(), 11);
        let half = x.cast(DType::F32).expect("float32");
        assert_eq!(tiles_of(|| drop(dispatch(&op, &[Arg::Tensor(&half)], &[Attr::None]))).len(), 11);
        // A value that is passed is used.
        assert_eq!(tiles_of(|| drop(called(&op, &matrix(300, 300), &[Attr::Int(32)]))), [32]);
        let classes = tuning::choices();
        let has = |start: &str| classes.iter().any(|(class, values)| class.starts_with(start) && values.len() == 1);
        assert!(has("tiled_transpose(float64[128, 64]; tile=8|16|32; "), "{classes:?}");
    });
}

#[test]
fn gradients_are_tuned_like_calls() {
    alone("gradients_are_tuned_like_calls", || {
        let x = matrix(20, 10).with_requires_grad().expect("a leaf");
        let y = tiled_transpose::call(&x, None).expect("a transpose");
        backward(&[y], &[Some(matrix(10, 20))], Options::default()).expect("a gradient");
        let grad = x.grad().expect("a gradient").to_vec::<f64>().expect("float64 values");
        assert_eq!(grad, called(&tiled_transpose::op(), &matrix(10, 20), &[Attr::Int(8)]));
    });
}

#[test]
fn ops_of_each_level_pass_opcheck() {
    alone("ops_of_each_level_pass_opcheck", || {
        for op in [tiled_transpose::op(), slow_cosine::op(), centred::op()] {
            opcheck(&op, &[]).into_result().expect("a correct op");
        }
        let tuned = |op: &OpRef| op.attrs.iter().filter(|a| a.kind.is_tuned()).count();
        assert_eq!([tuned(&tiled_transpose::op()), tuned(&slow_cosine::op()), tuned(&centred::op())], [1, 1, 1]);
    });
}

#[test]
fn opcheck_finds_a_candidate_that_changes_the_result() {
    alone("opcheck_finds_a_candidate_that_changes_the_result", || {
        let values = [1e16, 1.0, -1e16, 1.0, 3.0, 1e-3, 7.0, 0.1];
        let x = Tensor::from_vec(values.to_vec(), [8]).expect("eight values");
        let sample = Sample { inputs: vec![Some(x)], attrs: vec![Attr::None] };
        let report = opcheck(&blocked_sum::op(), &[sample]);
        let finding = report.findings.iter().find(|f| f.check == "tuning").expect("a finding");
        assert!(finding.message.contains("block=4 does not give the result of block=1"), "{}", finding.message);
    });
}

#[test]
fn values_are_checked() {
    let x = matrix(3, 3);
    let refused = |value: Value<'_>| {
        let op = tiled_transpose::op();
        bind(&op, &[(&x).into()], &[("tile", value)]).expect_err("no candidate").message().to_owned()
    };
    let message = "op 'tiled_transpose': attribute 'tile' takes one of 8, 16, 32 or None, got 12";
    assert_eq!(refused(12i64.into()), message);
    assert!(refused("8".into()).contains("takes one of 8, 16, 32 or None, got '8'"));
    let build = |candidates: &[i64]| {
        let op = CustomOpBuilder::new("tuned", 1).forward(|x| Ok(x[0].clone())).tune("tile", candidates);
        op.build().map(|op| op.definition()).map_err(|e| e.message().to_owned())
    };
    let message = "op 'tuned': the candidates of 'tile' must be 1 to 64 different positive integers; write a list such as \
                   '[16, 32, 64]'";
    let many: Vec<i64> = (1..=65).collect();
    for wrong in [&[][..], &[0], &[-1, 2], &[4, 4], &many] {
        assert_eq!(build(wrong).err().as_deref(), Some(message), "{wrong:?}");
    }
    assert!(build(&many[..64]).is_ok());
    let pair = CustomOpBuilder::new("tuned", 1).forward(|x| Ok(x[0].clone()));
    let pair = pair.tune("a", &many[..9]).tune("b", &many[..8]).build();
    let message = "op 'tuned': the candidates of all tuned attributes have 72 combinations; the limit is 64";
    assert_eq!(pair.err().map(|e| e.message().to_owned()).as_deref(), Some(message));
}

#[test]
fn empty_and_failing_calls_keep_nothing() {
    alone("empty_and_failing_calls_keep_nothing", || {
        let op = tiled_transpose::op();
        let empty = Tensor::from_vec(Vec::<f64>::new(), [0, 4]).expect("no values");
        assert!(tiles_of(|| drop(called(&op, &empty, &[Attr::None]))).len() <= 1);
        let build = |name: &str, run: fn(&[&Tensor]) -> Result<Tensor>| {
            let op = CustomOpBuilder::new(name, 1).forward(run).tune("tile", &[1, 2]);
            op.build().expect("a complete op").definition()
        };
        let fails = build("tuned_failure", |_| Err(Error::runtime("no such row")));
        let x = matrix(2, 2);
        let error = dispatch(&fails, &[Arg::Tensor(&x)], &[Attr::None]).expect_err("the op fails");
        assert!(error.message().contains("no such row"));
        let draws = build("tuned_draw", |x| {
            minitensor::random::next_key(1, minitensor::random::Block::Floats, Device::Cpu).map(|_| x[0].clone())
        });
        let error = dispatch(&draws, &[Arg::Tensor(&x)], &[Attr::None]).expect_err("a draw while measuring");
        assert!(error.message().contains("give the op a key"), "{error}");
        assert!(dispatch(&draws, &[Arg::Tensor(&x)], &[Attr::Int(1)]).is_ok());
        let kept = |class: &str| class.starts_with("tuned_") || class.contains("[0, 4]");
        assert!(!tuning::choices().iter().any(|(class, _)| kept(class)));
    });
}

// Processes with a cache of their own.

/// The tiles of a call in a process with this cache.
fn child(cache: &Path, variables: &[(&str, &str)]) -> String {
    let output = process("child_process", cache).envs(variables.iter().copied()).output().expect("the child runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.split_once("tiles: ")).map(|(_, tiles)| tiles.to_owned());
    line.unwrap_or_else(|| panic!("no tiles in {text}"))
}

#[test]
#[ignore = "later_processes_read_the_file_and_do_not_trust_it runs it in a process of its own"]
fn child_process() {
    let tiles = tiles_of(|| drop(called(&tiled_transpose::op(), &matrix(5, 5), &[Attr::None])));
    println!("tiles: {tiles:?}");
}

fn only_file(folder: &Path) -> PathBuf {
    let files: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|f| f.expect("a file").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn later_processes_read_the_file_and_do_not_trust_it() {
    let folder = folder("file");
    assert_eq!(child(&folder, &[("MINITENSOR_TUNE", "off")]), "[8]", "the first candidate");
    assert!(!folder.exists());
    let measured = child(&folder, &[]);
    assert_eq!(measured.split(", ").count(), 11, "{measured}");
    let file = only_file(&folder);
    let text = std::fs::read_to_string(&file).expect("a text");
    let (value, class) = text.trim_end().split_once('\t').expect("one line");
    assert!(class.starts_with("tiled_transpose(float64[8, 8]; tile=8|16|32; "), "{class}");
    assert_eq!(child(&folder, &[]), format!("[{value}]"));
    for other in [8, 16, 32] {
        std::fs::write(&file, format!("garbage\n{other}\t{class}\n\u{0}\n")).expect("the file can be written");
        assert_eq!(child(&folder, &[]), format!("[{other}]"));
    }
    // No candidate, too many values, no text: measured again.
    for wrong in [format!("12\t{class}\n"), format!("8,16\t{class}\n"), "\u{fffd}".to_owned()] {
        std::fs::write(&file, &wrong).expect("the file can be written");
        assert_eq!(child(&folder, &[]).split(", ").count(), 11, "{wrong:?}");
    }
    std::fs::write(&file, [0xff, 0xfe, b'\t']).expect("the file can be written");
    assert_eq!(child(&folder, &[]).split(", ").count(), 11);
    // A folder that cannot be made.
    let inside = file.join("folder");
    assert_eq!(child(&inside, &[]).split(", ").count(), 11);
    std::fs::remove_dir_all(&folder).expect("the folder can be deleted");
}
