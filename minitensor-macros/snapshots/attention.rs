/// Attention.
pub fn attention(
    q: &Tensor,
    k: &Tensor,
    mask: Option<&Tensor>,
    scale: Option<f64>,
) -> Result<Tensor> {
    use ::minitensor::__private as __private;
    static __OP3_ADD: __private::OpName = __private::OpName::new("add");
    static __OP5_CONCAT: __private::OpName = __private::OpName::new("concat");
    static __OP1_MATMUL: __private::OpName = __private::OpName::new("matmul");
    static __OP0_MATRIX_TRANSPOSE: __private::OpName = __private::OpName::new(
        "matrix_transpose",
    );
    static __OP2_MULTIPLY: __private::OpName = __private::OpName::new("multiply");
    static __OP4_TOPK: __private::OpName = __private::OpName::new("topk");
    __private::inventory::submit! {
        __private::CallsEntry { caller : "op 'attention'", location : __private::Location
        { file : __private::Cow::Borrowed(::core::file!()), line : ::core::line!() },
        calls : & [__private::Called { op : "add", positional : 2, keywords : & [],
        outputs : __private::Some(1) }, __private::Called { op : "concat", positional :
        1, keywords : & ["axis"], outputs : __private::Some(1) }, __private::Called { op
        : "matmul", positional : 2, keywords : & [], outputs : __private::Some(1) },
        __private::Called { op : "matrix_transpose", positional : 1, keywords : & [],
        outputs : __private::Some(1) }, __private::Called { op : "multiply", positional :
        2, keywords : & [], outputs : __private::Some(1) }, __private::Called { op :
        "slice", positional : 0, keywords : & [], outputs : __private::Some(1) },
        __private::Called { op : "squeeze", positional : 0, keywords : & [], outputs :
        __private::Some(1) }, __private::Called { op : "topk", positional : 1, keywords :
        & ["k"], outputs : __private::Some(2) }], }
    }
    let scale = scale.unwrap_or(1.0 / (q.shape()[q.ndim() - 1] as f64).sqrt());
    let mut scores = __OP2_MULTIPLY
        .call(
            &[
                __private::value(
                    &__OP1_MATMUL
                        .call(
                            &[
                                __private::value(&q),
                                __private::value(
                                    &__OP0_MATRIX_TRANSPOSE.call(&[__private::value(&k)], &[])?,
                                ),
                            ],
                            &[],
                        )?,
                ),
                __private::value(&scale),
            ],
            &[],
        )?;
    if let Some(mask) = mask {
        scores = __OP3_ADD
            .call(&[__private::value(&scores), __private::value(&mask)], &[])?;
    }
    let (top, _) = <(
        __private::Tensor,
        __private::Tensor,
    ) as __private::From<
        _,
    >>::from(
        __OP4_TOPK
            .call_many::<
                2,
            >(&[__private::value(&scores)], &[("k", __private::value(&3))])?,
    );
    Ok(
        __OP5_CONCAT
            .call(
                &[
                    __private::list(
                        &[
                            __private::value(&top),
                            __private::value(
                                &__private::sliced(
                                    &scores,
                                    &[
                                        __private::Part::Rest,
                                        __private::Part::Range(
                                            __private::Some(__private::at(1)),
                                            __private::Some(__private::at(n)),
                                        ),
                                        __private::Part::At(__private::at(0)),
                                    ],
                                )?,
                            ),
                        ],
                    )?,
                ],
                &[("axis", __private::value(&-1))],
            )?,
    )
}
///The op [`attention()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct attention {}
const _: () = {
    use ::minitensor::__private as __private;
    fn __attention_body(
        call: &__private::Call<'_>,
    ) -> __private::Result<__private::Vec<__private::Tensor>> {
        __private::IntoOutputs::into_outputs(
            attention(
                call.tensor(0),
                call.tensor(1),
                call.optional(2),
                __private::attr::<__private::Option<f64>>(call.attrs(), 0)?,
            ),
        )
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("attention"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("Attention."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("q"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("k"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("mask"),
                    arity: __private::Arity::Optional,
                    dtype: __private::DTypeRule::Any,
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("scale"),
                    kind: __private::AttrKind::Float,
                    optional: true,
                    default: __private::Some(__private::Attr::None),
                },
            ],
        ),
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
        body: __private::Body::Tensor(__attention_body),
        backward: __private::Backward::Composite,
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl attention {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            q: &__private::Tensor,
            k: &__private::Tensor,
            mask: __private::Option<&__private::Tensor>,
            scale: __private::Option<f64>,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(q),
                    <__private::Arg<'_> as __private::From<_>>::from(k),
                    <__private::Arg<'_> as __private::From<_>>::from(mask),
                ],
                &[<__private::Attr as __private::From<_>>::from(scale)],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(attention, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
};
