//! Declarative macros: for dtypes, and for the expansion of `#[custom_op]`.

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
            use $crate::__rt;
            use $crate::__rt::CustomOp as _;
            static __OP: __rt::OpRef = __rt::OpRef::Static(&$def);

            impl __rt::CustomOp for $op {
                fn name(&self) -> &__rt::str {
                    __OP.name()
                }
                fn validate_inputs(&self, inputs: &[&__rt::Tensor]) -> __rt::Result<()> {
                    __OP.validate_inputs(inputs)
                }
                fn forward(&self, inputs: &[&__rt::Tensor]) -> __rt::Result<__rt::Tensor> {
                    __OP.forward(inputs)
                }
                fn create_gradient_function(
                    &self,
                    inputs: &[&__rt::Tensor],
                    output: &__rt::Tensor,
                ) -> __rt::Option<::std::sync::Arc<dyn __rt::GradientFunction>> {
                    __OP.create_gradient_function(inputs, output)
                }
                fn num_inputs(&self) -> __rt::usize {
                    __OP.num_inputs()
                }
                fn output_shape(&self, shapes: &[&__rt::Shape]) -> __rt::Result<__rt::Shape> {
                    __OP.output_shape(shapes)
                }
                fn output_dtype(&self, dtypes: &[__rt::DType]) -> __rt::Result<__rt::DType> {
                    __OP.output_dtype(dtypes)
                }
                fn output_device(&self, devices: &[&__rt::Device]) -> __rt::Result<__rt::Device> {
                    __OP.output_device(devices)
                }
                fn definition(self: ::std::sync::Arc<Self>) -> __rt::OpRef {
                    ::core::clone::Clone::clone(&__OP)
                }
            }
        };
    };
}
