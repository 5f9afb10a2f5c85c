/// Scales.
#[inline(always)]
pub fn scaled<T: Float>(
    x: T,
    bias: Option<T>,
    n_scale: T,
    exact: bool,
    approximate: Approximate,
) -> T {
    let _ = &n_scale;
    let y = match approximate {
        Approximate::None => x,
        Approximate::Tanh => ::minitensor::__private::lit::<T>(0.5),
    };
    let mut acc = ::minitensor::__private::lit::<T>(0.0);
    for i in 0..3 {
        acc += y * ::minitensor::__private::lit::<T>(i);
    }
    match bias {
        Some(b) => acc + b.maximum(::minitensor::__private::lit::<T>(2.0)),
        None => {
            ::minitensor::__private::select(
                ::minitensor::__private::and(
                    <<T as ::minitensor::__private::Element>::Mask as ::minitensor::__private::Mask>::constant(
                        exact,
                    ),
                    ::minitensor::__private::greater(
                        x,
                        ::minitensor::__private::lit::<T>(0.0),
                    ),
                ),
                || ::minitensor::__private::lit::<T>(1.0),
                || ::minitensor::__private::negative(y),
            )
        }
    }
}
///The op [`scaled()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct scaled {}
const _: () = {
    use ::minitensor::__private as __private;
    #[allow(unused_variables, unused_mut)]
    fn __scaled_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        type T = __private::Symbol;
        let attr1 = __private::attr::<bool>(attrs, 1)?;
        let attr2 = {
            #[allow(unused_imports)]
            use __private::{KnownEnum as _, UnknownEnum as _};
            (&__private::EnumOf::<Approximate>::NEW).read(attrs, 2)?
        };
        let has1 = __private::attr::<__private::bool>(attrs, 3usize)?;
        __private::program(
            &["x", "bias"],
            &["n_scale"],
            |inputs, uniforms| {
                let input0 = inputs[0usize];
                let input1 = inputs[1usize];
                let attr0 = uniforms[0usize];
                let (output0,) = {
                    (scaled::<T>(input0, has1.then_some(input1), attr0, attr1, attr2),)
                };
                __private::vec![__private::named("out", output0)]
            },
        )
    }
    fn __scaled_backward(
        ctx: &__private::BackwardCall<'_>,
    ) -> __private::Result<__private::Vec<__private::Option<__private::Tensor>>> {
        static __OP1_DIVIDE: __private::OpName = __private::OpName::new("divide");
        static __OP0_MULTIPLY: __private::OpName = __private::OpName::new("multiply");
        static __OP2_SUM: __private::OpName = __private::OpName::new("sum");
        __private::inventory::submit! {
            __private::CallsEntry { caller : "the gradient of op 'scaled'", location :
            __private::Location { file : __private::Cow::Borrowed(::core::file!()), line
            : ::core::line!() }, calls : & [__private::Called { op : "divide", positional
            : 2, keywords : & [], outputs : __private::Some(1) }, __private::Called { op
            : "multiply", positional : 2, keywords : & [], outputs : __private::Some(1)
            }, __private::Called { op : "sum", positional : 1, keywords : & ["axis",
            "keepdims"], outputs : __private::Some(1) }], }
        }
        let d_out = ctx.cotangent(0)?;
        let exact = __private::attr::<bool>(ctx.attrs(), 1)?;
        let n_scale = __private::attr::<f64>(ctx.attrs(), 0)?;
        let mut found: __private::Vec<__private::Option<__private::Tensor>> = __private::vec![
            __private::None; 2
        ];
        if ctx.needs(0) {
            let s = __OP0_MULTIPLY
                .call(&[__private::value(&d_out), __private::value(&2.0)], &[])?;
            found[0] = __private::Some(
                if exact {
                    __OP1_DIVIDE
                        .call(
                            &[__private::value(&s), __private::value(&(1.0 + n_scale))],
                            &[],
                        )?
                } else {
                    s.clone()
                },
            );
        }
        if ctx.needs(1) {
            found[1] = __private::Some(
                __OP2_SUM
                    .call(
                        &[__private::value(&d_out)],
                        &[
                            ("axis", __private::value(&-1)),
                            ("keepdims", __private::value(&true)),
                        ],
                    )?,
            );
        }
        __private::Ok(found)
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("scaled"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("Scales."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("bias"),
                    arity: __private::Arity::Optional,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("n_scale"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1.0)),
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("exact"),
                    kind: __private::AttrKind::Bool,
                    optional: false,
                    default: __private::Some(__private::Attr::Bool(true)),
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("approximate"),
                    kind: __private::AttrKind::Enum(
                        <Approximate as __private::AttrEnum>::WORDS,
                    ),
                    optional: false,
                    default: __private::Some(
                        __private::Attr::Str(
                            __private::Cow::Borrowed(
                                <Approximate>::__word(Approximate::None),
                            ),
                        ),
                    ),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
                    dtypes: __private::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __private::ShapeRule::Broadcast,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Element(
            __private::Some(__private::ProgramFn::Compiled(__scaled_program)),
        ),
        backward: __private::Backward::Formula(__private::Formula {
            mode: __private::Mode::Reverse,
            run: __private::BackwardBody::Static(__scaled_backward),
            saved_inputs: __private::Cow::Borrowed(&[]),
            saved_outputs: __private::Cow::Borrowed(&[]),
            without: __private::Cow::Borrowed(&[]),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl scaled {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            bias: __private::Option<&__private::Tensor>,
            n_scale: f64,
            exact: bool,
            approximate: Approximate,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(x),
                    <__private::Arg<'_> as __private::From<_>>::from(bias),
                ],
                &[
                    <__private::Attr as __private::From<_>>::from(n_scale),
                    <__private::Attr as __private::From<_>>::from(exact),
                    __private::Attr::Str(
                        __private::Cow::Borrowed({
                            #[allow(unused_imports)]
                            use __private::{KnownEnum as _, UnknownEnum as _};
                            (&__private::EnumOf::<Approximate>::NEW).word(approximate)
                        }),
                    ),
                ],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(scaled, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
};
