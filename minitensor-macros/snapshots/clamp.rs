/// Limits every element to `[lo, hi]`.
#[inline(always)]
pub fn clamp<T: Real>(x: T, lo: T, hi: T) -> T {
    ::minitensor::__rt::select(
        ::minitensor::__rt::less(x, lo),
        || lo,
        || ::minitensor::__rt::select(::minitensor::__rt::greater(x, hi), || hi, || x),
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
    use ::minitensor::__rt as __rt;
    #[allow(unused_variables, unused_mut)]
    fn __clamp_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        type T = __rt::Symbol;
        __rt::Ok(
            __rt::Program::write(
                &["x"],
                &["lo", "hi"],
                |inputs, uniforms| {
                    let input0 = inputs[0usize];
                    let attr0 = uniforms[0usize];
                    let attr1 = uniforms[1usize];
                    let (output0,) = { (clamp::<T>(input0, attr0, attr1),) };
                    __rt::vec![__rt::named("out", output0)]
                },
            ),
        )
    }
    unsafe fn __clamp_loop<T: __rt::Real + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Real + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T,);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0,): Self::In) -> Self::Out {
                (clamp::<T>(input0, self.attr0, self.attr1),)
            }
        }
        let body = __Loop::<T> {
            attr0: __rt::uniform::<T>(attrs, 0, "lo")?,
            attr1: __rt::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __clamp_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::I8 => __rt::Some(__clamp_loop::<__rt::i8>),
            __rt::DType::I16 => __rt::Some(__clamp_loop::<__rt::i16>),
            __rt::DType::I32 => __rt::Some(__clamp_loop::<__rt::i32>),
            __rt::DType::I64 => __rt::Some(__clamp_loop::<__rt::i64>),
            __rt::DType::U8 => __rt::Some(__clamp_loop::<__rt::u8>),
            __rt::DType::U16 => __rt::Some(__clamp_loop::<__rt::u16>),
            __rt::DType::U32 => __rt::Some(__clamp_loop::<__rt::u32>),
            __rt::DType::U64 => __rt::Some(__clamp_loop::<__rt::u64>),
            __rt::DType::F32 => __rt::Some(__clamp_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__clamp_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn __clamp_vjp<T: __rt::Real>(input0: T, input1: T, attr0: T, attr1: T) -> T {
        let gradient0 = __rt::cotangent_times(
            input0,
            clamp::<
                __rt::Dual<T>,
            >(
                    __rt::Dual::variable(input1),
                    __rt::Dual::constant_of(attr0),
                    __rt::Dual::constant_of(attr1),
                )
                .tangent,
        );
        gradient0
    }
    unsafe fn __clamp_vjp_loop<T: __rt::Real + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Real + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0, input1): Self::In) -> Self::Out {
                (__clamp_vjp::<T>(input0, input1, self.attr0, self.attr1),)
            }
        }
        let body = __Loop::<T> {
            attr0: __rt::uniform::<T>(attrs, 0, "lo")?,
            attr1: __rt::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __clamp_vjp_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__clamp_vjp_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__clamp_vjp_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    fn __clamp_vjp_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        __rt::vjp_program(&__clamp_program(attrs)?, &[0], &[0], false)
    }
    static __VJP: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("clamp.vjp"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("The vector-Jacobian product of `clamp`."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("d_out"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("lo"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(f64::NEG_INFINITY)),
                },
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("hi"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(f64::INFINITY)),
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("d_x"),
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
            __rt::Some(__rt::ProgramFn::Compiled(__clamp_vjp_program)),
        ),
        backward: __rt::Backward::Program(__rt::Gradients::new()),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    static __DEF: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("clamp"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("Limits every element to `[lo, hi]`."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("lo"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(f64::NEG_INFINITY)),
                },
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("hi"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(f64::INFINITY)),
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
                    dtypes: __rt::DTypeSet::REAL,
                },
            ],
        ),
        shape: __rt::ShapeRule::Broadcast,
        predicates: __rt::Cow::Borrowed(&[]),
        axis: __rt::None,
        body: __rt::Body::Element(
            __rt::Some(__rt::ProgramFn::Compiled(__clamp_program)),
        ),
        backward: __rt::Backward::Derived(__rt::Derived {
            vjp: __rt::OpRef::Static(&__VJP),
            wrt: __rt::Cow::Borrowed(&[0]),
            gradients: __rt::Gradients::new(),
        }),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl clamp {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &__rt::Tensor, lo: f64, hi: f64) -> __rt::Result<__rt::Tensor> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[<__rt::Arg<'_> as __rt::From<_>>::from(x)],
                &[
                    <__rt::Attr as __rt::From<_>>::from(lo),
                    <__rt::Attr as __rt::From<_>>::from(hi),
                ],
            )?;
            __rt::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(clamp, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::OpEntry(& __VJP)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "clamp.vjp", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__clamp_vjp_kernel) }
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "clamp", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__clamp_kernel) }
    }
};
