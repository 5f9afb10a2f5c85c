/// `x @ w + b`
pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
    todo!()
}
///The op [`linear()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct linear {}
const _: () = {
    use ::minitensor::__private as __private;
    fn __linear_body(
        call: &__private::Call<'_>,
    ) -> __private::Result<__private::Vec<__private::Tensor>> {
        __private::IntoOutputs::into_outputs(
            linear(call.tensor(0), call.tensor(1), call.optional(2)),
        )
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("nn::linear"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("`x @ w + b`"),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("w"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("b"),
                    arity: __private::Arity::Optional,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(&[]),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Any,
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(&[]),
        shape: __private::ShapeRule::Inferred,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Tensor(__linear_body),
        backward: __private::Backward::Composite,
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl linear {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            w: &__private::Tensor,
            b: __private::Option<&__private::Tensor>,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(x),
                    <__private::Arg<'_> as __private::From<_>>::from(w),
                    <__private::Arg<'_> as __private::From<_>>::from(b),
                ],
                &[],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(linear, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
};
