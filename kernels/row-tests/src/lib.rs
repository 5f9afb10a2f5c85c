//! The tests of compiled row bodies. They are a package of their own, because they are compiled without optimization: this takes one
//! minute, and with optimization seven.
