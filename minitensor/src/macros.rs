//! Macros by example: over dtypes, and for the expansion of `#[custom_op]`.

/// Runs an expression with `T` bound to the Rust type of a dtype.
#[doc(hidden)]
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::with_dtype!(@ $dtype, $T, $body; Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 C64 C128)
    };
    (@ $dtype:expr, $T:ident, $body:expr; $($variant:ident)* $(; else $otherwise:expr)?) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $T = $crate::dtype::scalars::$variant;
                $body
            })*
            $(_ => $otherwise,)?
        }
    };
}

/// Implements [`CustomOp`](crate::CustomOp) for an op's unit struct by reading its definition.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_custom_op {
    ($op:ident, $def:ident) => {
        const _: () = {
            use rt::CustomOp as _;
            use $crate::__rt as rt;
            static OP: rt::OpRef = rt::OpRef::Static(&$def);

            impl rt::CustomOp for $op {
                fn name(&self) -> &str {
                    OP.name()
                }
                fn validate_inputs(&self, inputs: &[&rt::Tensor]) -> rt::Result<()> {
                    OP.validate_inputs(inputs)
                }
                fn forward(&self, inputs: &[&rt::Tensor]) -> rt::Result<rt::Tensor> {
                    OP.forward(inputs)
                }
                fn create_gradient_function(
                    &self,
                    inputs: &[&rt::Tensor],
                    output: &rt::Tensor,
                ) -> Option<::std::sync::Arc<dyn rt::GradientFunction>> {
                    OP.create_gradient_function(inputs, output)
                }
                fn num_inputs(&self) -> usize {
                    OP.num_inputs()
                }
                fn output_shape(&self, shapes: &[&rt::Shape]) -> rt::Result<rt::Shape> {
                    OP.output_shape(shapes)
                }
                fn output_dtype(&self, dtypes: &[rt::DType]) -> rt::Result<rt::DType> {
                    OP.output_dtype(dtypes)
                }
                fn output_device(&self, devices: &[&rt::Device]) -> rt::Result<rt::Device> {
                    OP.output_device(devices)
                }
                fn definition(self: ::std::sync::Arc<Self>) -> rt::OpRef {
                    OP.clone()
                }
            }
        };
    };
}
