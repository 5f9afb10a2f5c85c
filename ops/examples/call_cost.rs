use minitensor::*;
use minitensor_ops as _;
use std::time::Instant;
fn main() {
    let x = Tensor::from_vec(vec![0.1f32; 8], [8]).unwrap();
    let op = registry::get("swish").unwrap();
    let bench = |name: &str, f: &dyn Fn()| {
        for _ in 0..10000 {
            f()
        }
        let mut best = f64::MAX;
        for _ in 0..7 {
            let t = Instant::now();
            for _ in 0..100000 {
                f()
            }
            best = best.min(t.elapsed().as_nanos() as f64 / 1e5);
        }
        println!("{name} {best:.1} ns");
    };
    bench("empty", &|| {
        std::hint::black_box(Tensor::empty([8], DType::F32, Device::Cpu).unwrap());
    });
    bench("clone", &|| {
        std::hint::black_box(x.clone());
    });
    bench("dispatch swish", &|| {
        std::hint::black_box(dispatch(&op, &[op::Arg::Tensor(&x)], &[]).unwrap());
    });
    let add = registry::get("add").unwrap();
    bench("dispatch add", &|| {
        std::hint::black_box(dispatch(&add, &[op::Arg::Tensor(&x), op::Arg::Tensor(&x)], &[]).unwrap());
    });
    let xr = x.detach().with_requires_grad().unwrap();
    let g = Tensor::from_vec(vec![1f32; 8], [8]).unwrap();
    bench("recorded", &|| {
        std::hint::black_box(dispatch(&op, &[op::Arg::Tensor(&xr)], &[]).unwrap());
    });
    bench("fwd+bwd", &|| {
        let y = dispatch(&op, &[op::Arg::Tensor(&xr)], &[]).unwrap().single();
        autograd::backward(&[y], &[Some(g.clone())], Default::default()).unwrap();
    });
}
