//! The definitions of the built-in ops.
//!
//! Each file is a group of related ops. An op is found in the [registry](minitensor::registry) by its name. Here it is
//! also a function (its body) and a type of the same name (the op as a value, with `call`).
//!
//! ```
//! use minitensor::Tensor;
//! use minitensor_ops::activation::swish;
//!
//! assert_eq!(swish(0.0_f64), 0.0);                       // the body, at one number
//! let x = Tensor::from_vec(vec![0.0_f32, 1.0], [2])?;
//! assert_eq!(swish::call(&x)?.to_vec::<f32>()?[0], 0.0); // the op, on a tensor
//! # Ok::<(), minitensor::Error>(())
//! ```

#![forbid(unsafe_code)]
// An op has as many parameters as it has tensors and attributes.
#![allow(clippy::too_many_arguments)]

pub mod activation;
pub mod arithmetic;
pub mod comparison;
pub mod conversion;
pub mod convolution;
pub mod example;
pub mod exponential;
pub mod indexing;
pub mod joining;
pub mod linalg;
pub mod logic;
pub mod loss;
pub mod normalization;
pub mod optimizer;
pub mod pooling;
pub mod random;
pub mod reduction;
pub mod region;
pub mod rounding;
pub mod shape;
pub mod sorting;
pub mod special;
pub mod trigonometry;
pub mod unique;
pub mod window;
