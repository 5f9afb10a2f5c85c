/// Scales.
#[inline(always)]
pub fn scaled<T: Float>(
    x: T,
    bias: Option<T>,
    n_scale: T,
    exact: bool,
    approximate: Approximate,
) -> T {
    let y = match approximate {
        Approximate::None => x,
        Approximate::Tanh => ::minitensor::__rt::lit::<T>(0.5),
    };
    let mut acc = ::minitensor::__rt::lit::<T>(0.0);
    for i in 0..3 {
        acc += y * ::minitensor::__rt::lit::<T>(i);
    }
    match bias {
        Some(b) => acc + b.maximum(::minitensor::__rt::lit::<T>(2.0)),
        None => {
            ::minitensor::__rt::select(
                ::minitensor::__rt::and(
                    <<T as ::minitensor::__rt::Element>::Mask as ::minitensor::__rt::Mask>::constant(
                        exact,
                    ),
                    ::minitensor::__rt::greater(x, ::minitensor::__rt::lit::<T>(0.0)),
                ),
                || ::minitensor::__rt::lit::<T>(1.0),
                || ::minitensor::__rt::negative(y),
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
    use ::minitensor::__rt as __rt;
    #[allow(unused_variables, unused_mut)]
    fn __scaled_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        type T = __rt::Symbol;
        let attr1 = __rt::attr::<bool>(attrs, 1)?;
        let attr2 = __rt::attr_enum::<Approximate>(attrs, 2)?;
        let has1 = __rt::attr::<__rt::bool>(attrs, 3usize)?;
        __rt::Ok(
            __rt::Program::write(
                &["x", "bias"],
                &["n_scale"],
                |inputs, uniforms| {
                    let input0 = inputs[0usize];
                    let input1 = inputs[1usize];
                    let attr0 = uniforms[0usize];
                    let (output0,) = {
                        (
                            scaled::<
                                T,
                            >(input0, has1.then_some(input1), attr0, attr1, attr2),
                        )
                    };
                    __rt::vec![__rt::named("out", output0)]
                },
            ),
        )
    }
    unsafe fn __scaled_loop<T: __rt::Float + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: bool,
            attr2: Approximate,
            has1: __rt::bool,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Float + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0, input1): Self::In) -> Self::Out {
                (
                    scaled::<
                        T,
                    >(
                        input0,
                        self.has1.then_some(input1),
                        self.attr0,
                        self.attr1,
                        self.attr2,
                    ),
                )
            }
        }
        let body = __Loop::<T> {
            attr0: __rt::uniform::<T>(attrs, 0, "n_scale")?,
            attr1: __rt::attr::<bool>(attrs, 1)?,
            attr2: __rt::attr_enum::<Approximate>(attrs, 2)?,
            has1: __rt::attr::<__rt::bool>(attrs, 3)?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __scaled_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__scaled_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__scaled_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    fn __scaled_backward(
        ctx: &__rt::BackwardCall<'_>,
    ) -> __rt::Result<__rt::Vec<__rt::Option<__rt::Tensor>>> {
        static __OP1_DIVIDE: __rt::OpName = __rt::OpName::new("divide");
        static __OP0_MULTIPLY: __rt::OpName = __rt::OpName::new("multiply");
        static __OP2_SUM: __rt::OpName = __rt::OpName::new("sum");
        let d_out = ctx.cotangent(0)?;
        let exact = __rt::attr::<bool>(ctx.attrs(), 1)?;
        let n_scale = __rt::attr::<f64>(ctx.attrs(), 0)?;
        let mut gradients: __rt::Vec<__rt::Option<__rt::Tensor>> = __rt::vec![
            __rt::None; 2
        ];
        if ctx.needs(0) {
            let s = __OP0_MULTIPLY.call(&[__rt::value(&d_out), __rt::value(&2.0)], &[])?;
            gradients[0] = __rt::Some(
                if exact {
                    __OP1_DIVIDE
                        .call(&[__rt::value(&s), __rt::value(&(1.0 + n_scale))], &[])?
                } else {
                    s.clone()
                },
            );
        }
        if ctx.needs(1) {
            gradients[1] = __rt::Some(
                __OP2_SUM
                    .call(
                        &[__rt::value(&d_out)],
                        &[("axis", __rt::value(&-1)), ("keepdims", __rt::value(&true))],
                    )?,
            );
        }
        __rt::Ok(gradients)
    }
    static __DEF: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("scaled"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("Scales."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("bias"),
                    arity: __rt::Arity::Optional,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("n_scale"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(1.0)),
                },
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("exact"),
                    kind: __rt::AttrKind::Bool,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Bool(true)),
                },
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("approximate"),
                    kind: __rt::AttrKind::Enum(<Approximate as __rt::AttrEnum>::WORDS),
                    optional: false,
                    default: __rt::Some(
                        __rt::Attr::Str(
                            __rt::Cow::Borrowed(<Approximate>::__word(Approximate::None)),
                        ),
                    ),
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("out"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(
            &[
                __rt::Generic {
                    name: __rt::Cow::Borrowed("T"),
                    dtypes: __rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __rt::ShapeRule::Broadcast,
        predicates: __rt::Cow::Borrowed(&[]),
        axis: __rt::None,
        body: __rt::Body::Element(
            __rt::Some(__rt::ProgramFn::Compiled(__scaled_program)),
        ),
        backward: __rt::Backward::Formula(__rt::Formula {
            run: __rt::BackwardBody::Static(__scaled_backward),
            saved_inputs: __rt::Cow::Borrowed(&[]),
            saved_outputs: __rt::Cow::Borrowed(&[]),
            without: __rt::Cow::Borrowed(&[]),
        }),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl scaled {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__rt::Tensor,
            bias: __rt::Option<&__rt::Tensor>,
            n_scale: f64,
            exact: bool,
            approximate: Approximate,
        ) -> __rt::Result<__rt::Tensor> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[
                    <__rt::Arg<'_> as __rt::From<_>>::from(x),
                    <__rt::Arg<'_> as __rt::From<_>>::from(bias),
                ],
                &[
                    <__rt::Attr as __rt::From<_>>::from(n_scale),
                    <__rt::Attr as __rt::From<_>>::from(exact),
                    __rt::Attr::Str(
                        __rt::Cow::Borrowed(__rt::AttrEnum::word(approximate)),
                    ),
                ],
            )?;
            __rt::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(scaled, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "scaled", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__scaled_kernel) }
    }
};
