/// Limits every element to `[lo, hi]`.
#[inline(always)]
pub fn clamp<T: Real>(x: T, lo: T, hi: T) -> T {
    ::minitensor::__private::select(
        ::minitensor::__private::less(x, lo),
        || lo,
        || ::minitensor::__private::select(
            ::minitensor::__private::greater(x, hi),
            || hi,
            || x,
        ),
    )
}
///The op [`clamp()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct clamp {}
const _: () = {
    use ::minitensor::__private as __private;
    #[allow(unused_variables, unused_mut)]
    fn __clamp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        type T = __private::Symbol;
        __private::program(
            &["x"],
            &["lo", "hi"],
            |inputs, uniforms| {
                let input0 = inputs[0usize];
                let attr0 = uniforms[0usize];
                let attr1 = uniforms[1usize];
                let (output0,) = { (clamp::<T>(input0, attr0, attr1),) };
                __private::vec![__private::named("out", output0)]
            },
        )
    }
    unsafe fn __clamp_loop<T: __private::Real + __private::Machine>(
        attrs: &[__private::Attr],
        n: __private::usize,
        inputs: &[*const __private::u8],
        outputs: &[*mut __private::u8],
    ) -> __private::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Real + __private::Machine> __private::Map for __Loop<T> {
            type In = (T,);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0,): Self::In) -> Self::Out {
                (clamp::<T>(input0, self.attr0, self.attr1),)
            }
        }
        let body = __Loop::<T> {
            attr0: __private::uniform::<T>(attrs, 0, "lo")?,
            attr1: __private::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __private::map(&body, n, inputs, outputs) };
        __private::Ok(())
    }
    fn __clamp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::ElementKernel> {
        match dtypes {
            [__private::DType::I8] => __private::Some(__clamp_loop::<__private::i8>),
            [__private::DType::I16] => __private::Some(__clamp_loop::<__private::i16>),
            [__private::DType::I32] => __private::Some(__clamp_loop::<__private::i32>),
            [__private::DType::I64] => __private::Some(__clamp_loop::<__private::i64>),
            [__private::DType::U8] => __private::Some(__clamp_loop::<__private::u8>),
            [__private::DType::U16] => __private::Some(__clamp_loop::<__private::u16>),
            [__private::DType::U32] => __private::Some(__clamp_loop::<__private::u32>),
            [__private::DType::U64] => __private::Some(__clamp_loop::<__private::u64>),
            [__private::DType::F32] => __private::Some(__clamp_loop::<__private::f32>),
            [__private::DType::F64] => __private::Some(__clamp_loop::<__private::f64>),
            _ => __private::None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn __clamp_vjp<T: __private::Real>(input0: T, input1: T, attr0: T, attr1: T) -> T {
        let gradient0 = __private::cotangent_times(
            input0,
            clamp::<
                __private::Dual<T>,
            >(
                    __private::Dual::variable(input1),
                    __private::Dual::constant_of(attr0),
                    __private::Dual::constant_of(attr1),
                )
                .tangent,
        );
        gradient0
    }
    unsafe fn __clamp_vjp_loop<T: __private::Real + __private::Machine>(
        attrs: &[__private::Attr],
        n: __private::usize,
        inputs: &[*const __private::u8],
        outputs: &[*mut __private::u8],
    ) -> __private::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Real + __private::Machine> __private::Map for __Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0, input1): Self::In) -> Self::Out {
                (__clamp_vjp::<T>(input0, input1, self.attr0, self.attr1),)
            }
        }
        let body = __Loop::<T> {
            attr0: __private::uniform::<T>(attrs, 0, "lo")?,
            attr1: __private::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __private::map(&body, n, inputs, outputs) };
        __private::Ok(())
    }
    fn __clamp_vjp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::ElementKernel> {
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__clamp_vjp_loop::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__clamp_vjp_loop::<__private::f64>)
            }
            _ => __private::None,
        }
    }
    fn __clamp_vjp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::vjp_program(&__clamp_program(attrs)?, &[0], &[0], false)
    }
    static __VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("clamp.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The vector-Jacobian product of `clamp`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("d_out"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("lo"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(f64::NEG_INFINITY)),
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("hi"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(f64::INFINITY)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("d_x"),
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
            __private::Some(__private::ProgramFn::Compiled(__clamp_vjp_program)),
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
        name: __private::Cow::Borrowed("clamp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("Limits every element to `[lo, hi]`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("lo"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(f64::NEG_INFINITY)),
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("hi"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(f64::INFINITY)),
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
                    dtypes: __private::DTypeSet::REAL,
                },
            ],
        ),
        shape: __private::ShapeRule::Broadcast,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Element(
            __private::Some(__private::ProgramFn::Compiled(__clamp_program)),
        ),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__VJP),
            wrt: __private::Cow::Borrowed(&[0]),
            gradients: __private::Gradients::new(),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl clamp {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            lo: f64,
            hi: f64,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[<__private::Arg<'_> as __private::From<_>>::from(x)],
                &[
                    <__private::Attr as __private::From<_>>::from(lo),
                    <__private::Attr as __private::From<_>>::from(hi),
                ],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(clamp, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Elements(__clamp_kernel)) }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __VJP, kernels :
        __private::Some(__private::Kernels::Elements(__clamp_vjp_kernel)) }
    }
};
