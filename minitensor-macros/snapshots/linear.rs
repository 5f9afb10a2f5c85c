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
    use ::minitensor::__rt as __rt;
    fn __linear_body(call: &__rt::Call<'_>) -> __rt::Result<__rt::Vec<__rt::Tensor>> {
        __rt::IntoOutputs::into_outputs(
            linear(call.tensor(0), call.tensor(1), call.optional(2)),
        )
    }
    static __DEF: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("nn::linear"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("`x @ w + b`"),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Any,
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("w"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Any,
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("b"),
                    arity: __rt::Arity::Optional,
                    dtype: __rt::DTypeRule::Any,
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(&[]),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("out"),
                    dtype: __rt::DTypeRule::Any,
                    role: __rt::Role::Returned,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(&[]),
        shape: __rt::ShapeRule::Traced,
        predicates: __rt::Cow::Borrowed(&[]),
        axis: __rt::None,
        body: __rt::Body::Tensor(__linear_body),
        backward: __rt::Backward::Traced,
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl linear {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__rt::Tensor,
            w: &__rt::Tensor,
            b: __rt::Option<&__rt::Tensor>,
        ) -> __rt::Result<__rt::Tensor> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[
                    <__rt::Arg<'_> as __rt::From<_>>::from(x),
                    <__rt::Arg<'_> as __rt::From<_>>::from(w),
                    <__rt::Arg<'_> as __rt::From<_>>::from(b),
                ],
                &[],
            )?;
            __rt::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(linear, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
};
