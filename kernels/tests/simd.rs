//! The environment variable that names the SIMD level. Only one test uses it, since the environment belongs to the process.

use minitensor_kernels::simd::{Level, choose, detected, level, levels};

#[test]
fn the_variable_names_the_level_and_an_unknown_name_is_an_error() {
    // SAFETY: no other thread reads the environment.
    let set = |value: &str| unsafe { std::env::set_var("MINITENSOR_SIMD", value) };
    for wanted in Level::ALL {
        set(wanted.name());
        assert_eq!(choose(), Ok(wanted.min(detected())));
        assert_eq!(level(), wanted.min(detected()));
    }
    set("");
    assert_eq!(choose(), Ok(detected()));
    let foreign = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    for unknown in ["avx1024", "AVX2", " ", foreign] {
        set(unknown);
        let error = choose().unwrap_err();
        assert!(error.contains(&format!("MINITENSOR_SIMD is {unknown:?}")), "{error}");
        assert!(Level::ALL.iter().all(|level| error.contains(level.name())), "{error}");
        assert_eq!(level(), detected());
    }
}

#[test]
fn the_levels_of_the_cpu_end_with_the_highest() {
    assert_eq!(levels().next(), Some(Level::Baseline));
    assert_eq!(levels().last(), Some(detected()));
    if cfg!(target_arch = "aarch64") {
        assert_eq!(detected().name(), "neon");
    }
}
