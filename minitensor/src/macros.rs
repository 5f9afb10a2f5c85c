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
            use $crate::__private;
            use $crate::__private::CustomOp as _;
            static __OP: __private::OpRef = __private::OpRef::Static(&$def);

            impl __private::CustomOp for $op {
                fn name(&self) -> &__private::str {
                    __OP.name()
                }
                fn validate_inputs(&self, inputs: &[&__private::Tensor]) -> __private::Result<()> {
                    __OP.validate_inputs(inputs)
                }
                fn forward(&self, inputs: &[&__private::Tensor]) -> __private::Result<__private::Tensor> {
                    __OP.forward(inputs)
                }
                fn create_gradient_function(
                    &self,
                    inputs: &[&__private::Tensor],
                    output: &__private::Tensor,
                ) -> __private::Option<::std::sync::Arc<dyn __private::GradientFunction>> {
                    __OP.create_gradient_function(inputs, output)
                }
                fn num_inputs(&self) -> __private::usize {
                    __OP.num_inputs()
                }
                fn output_shape(&self, shapes: &[&__private::Shape]) -> __private::Result<__private::Shape> {
                    __OP.output_shape(shapes)
                }
                fn output_dtype(&self, dtypes: &[__private::DType]) -> __private::Result<__private::DType> {
                    __OP.output_dtype(dtypes)
                }
                fn output_device(&self, devices: &[&__private::Device]) -> __private::Result<__private::Device> {
                    __OP.output_device(devices)
                }
                fn definition(self: ::std::sync::Arc<Self>) -> __private::OpRef {
                    ::core::clone::Clone::clone(&__OP)
                }
            }
        };
    };
}
