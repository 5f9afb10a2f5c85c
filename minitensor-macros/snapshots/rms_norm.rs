/// Root-mean-square normalization over the last axis.
#[inline(always)]
pub fn rms_norm<R: Row>(x: R, weight: Option<R>, eps: R) -> R {
    let y = x * (x.square().mean() + eps).rsqrt();
    if let Some(weight) = weight { y * weight } else { y }
}
///The op [`rms_norm()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct rms_norm {}
const _: () = {
    use ::minitensor::__private as __private;
    #[allow(unused_variables)]
    fn __rms_norm_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        let has1 = __private::attr::<__private::bool>(attrs, 1usize)?;
        __private::program(
            &["x", "weight"],
            &["eps"],
            |inputs, uniforms| {
                let &[input0, input1] = inputs else { return __private::vec![] };
                let &[attr0] = uniforms else { return __private::vec![] };
                let (output0,) = {
                    (
                        rms_norm::<
                            __private::Symbol,
                        >(input0, has1.then_some(input1), attr0),
                    )
                };
                __private::vec![__private::named("out", output0)]
            },
        )
    }
    fn __rms_norm_vjp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::vjp_of_rows(
            &__rms_norm_program(attrs)?,
            &[0],
            &[true],
            &[__private::Variable::Input(0), __private::Variable::Input(1)],
        )
    }
    static __DEF_VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("rms_norm.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The vector-Jacobian product of `rms_norm`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("d_out"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("weight"),
                    arity: __private::Arity::Optional,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("eps"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("d_x"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Slice,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_weight"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Slice,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("R"),
                    dtypes: __private::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __private::ShapeRule::Core(__private::CoreShapes {
            inputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: false,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: false,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __private::Cow::Borrowed(
                "(d_out: [.., n], x: [.., n], weight: [n]) -> (d_x: [.., n], d_weight: [n])",
            ),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(
            __private::Some(__private::ProgramFn::Compiled(__rms_norm_vjp_program)),
        ),
        backward: __private::Backward::Program(__private::Gradients::new()),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("rms_norm"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed(
            "Root-mean-square normalization over the last axis.",
        ),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("weight"),
                    arity: __private::Arity::Optional,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("eps"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Slice,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("R"),
                    dtypes: __private::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __private::ShapeRule::Core(__private::CoreShapes {
            inputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: false,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __private::Cow::Borrowed("(x: [.., n], weight: [n]) -> [.., n]"),
        }),
        predicates: __private::Cow::Borrowed(
            &[
                __private::Predicate {
                    left: __private::Dim::Attr(0),
                    relation: __private::Relation::GreaterEqual,
                    right: __private::Dim::Float(0.0),
                    text: __private::Cow::Borrowed("eps >= 0.0"),
                },
            ],
        ),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(
            __private::Some(__private::ProgramFn::Compiled(__rms_norm_program)),
        ),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__DEF_VJP),
            wrt: __private::Cow::Borrowed(&[0, 1]),
            gradients: __private::Gradients::new(),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl rms_norm {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            weight: __private::Option<&__private::Tensor>,
            eps: f64,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(x),
                    <__private::Arg<'_> as __private::From<_>>::from(weight),
                ],
                &[<__private::Attr as __private::From<_>>::from(eps)],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(rms_norm, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF_VJP, kernels : __private::None }
    }
};
