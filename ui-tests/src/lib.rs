//! The tests are in `tests/`, the cases in `ui/`.
