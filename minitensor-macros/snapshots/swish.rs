/// Swish (SiLU): `x · σ(x)`.
#[inline(always)]
pub fn swish<T: Float>(x: T) -> T {
    x * x.sigmoid()
}
///The op [`swish()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct swish {}
const _: () = {
    use ::minitensor::__rt as __rt;
    #[allow(unused_variables, unused_mut)]
    fn __swish_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        type T = __rt::Symbol;
        __rt::Ok(
            __rt::Program::write(
                &["x"],
                &[],
                |inputs, uniforms| {
                    let input0 = inputs[0usize];
                    let (output0,) = { (swish::<T>(input0),) };
                    __rt::vec![__rt::named("out", output0)]
                },
            ),
        )
    }
    unsafe fn __swish_loop<T: __rt::Float + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Float + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T,);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0,): Self::In) -> Self::Out {
                (swish::<T>(input0),)
            }
        }
        let body = __Loop::<T> {
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __swish_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__swish_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__swish_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn __swish_vjp<T: __rt::Float>(input0: T, input1: T) -> T {
        let gradient0 = __rt::cotangent_times(
            input0,
            swish::<__rt::Dual<T>>(__rt::Dual::variable(input1)).tangent,
        );
        gradient0
    }
    unsafe fn __swish_vjp_loop<T: __rt::Float + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Float + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (input0, input1): Self::In) -> Self::Out {
                (__swish_vjp::<T>(input0, input1),)
            }
        }
        let body = __Loop::<T> {
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __swish_vjp_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__swish_vjp_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__swish_vjp_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    fn __swish_vjp_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        __rt::vjp_program(&__swish_program(attrs)?, &[0], &[0], false)
    }
    static __VJP: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("swish.vjp"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("The vector-Jacobian product of `swish`."),
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
        attrs: __rt::Cow::Borrowed(&[]),
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
            __rt::Some(__rt::ProgramFn::Compiled(__swish_vjp_program)),
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
        name: __rt::Cow::Borrowed("swish"),
        aliases: __rt::Cow::Borrowed(&[__rt::Cow::Borrowed("silu")]),
        doc: __rt::Cow::Borrowed("Swish (SiLU): `x · σ(x)`."),
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
        attrs: __rt::Cow::Borrowed(&[]),
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
            __rt::Some(__rt::ProgramFn::Compiled(__swish_program)),
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
    static __IN_PLACE: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("swish_"),
        aliases: __rt::Cow::Borrowed(&[__rt::Cow::Borrowed("silu_")]),
        doc: __rt::Cow::Borrowed("In-place form of `swish`."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(&[]),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("out"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Mutates(0),
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
            __rt::Some(__rt::ProgramFn::Compiled(__swish_program)),
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
    impl swish {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &__rt::Tensor) -> __rt::Result<__rt::Tensor> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[<__rt::Arg<'_> as __rt::From<_>>::from(x)],
                &[],
            )?;
            __rt::Ok(outputs.single())
        }
        ///Calls the op on tensors, and writes to the first.
        #[allow(clippy::too_many_arguments)]
        pub fn call_(x: &__rt::Tensor) -> __rt::Result<()> {
            let _outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__IN_PLACE),
                &[<__rt::Arg<'_> as __rt::From<_>>::from(x)],
                &[],
            )?;
            __rt::Ok(())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(swish, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::OpEntry(& __VJP)
    }
    __rt::inventory::submit! {
        __rt::OpEntry(& __IN_PLACE)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "swish.vjp", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__swish_vjp_kernel) }
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "swish", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__swish_kernel) }
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "swish_", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__swish_kernel) }
    }
};
