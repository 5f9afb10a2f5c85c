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
    use ::minitensor::__private as __private;
    #[allow(unused_variables, unused_mut)]
    fn __swish_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        type T = __private::Symbol;
        __private::program(
            &["x"],
            &[],
            |inputs, uniforms| {
                let input0 = inputs[0usize];
                let (output0,) = { (swish::<T>(input0),) };
                __private::vec![__private::named("out", output0)]
            },
        )
    }
    unsafe fn __swish_loop<T: __private::Float + __private::Machine>(
        attrs: &[__private::Attr],
        n: __private::usize,
        inputs: &[*const __private::u8],
        outputs: &[*mut __private::u8],
    ) -> __private::Result<()> {
        struct __Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Float + __private::Machine> __private::Map for __Loop<T> {
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
        unsafe { __private::map(&body, n, inputs, outputs) };
        __private::Ok(())
    }
    fn __swish_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::ElementKernel> {
        match dtypes {
            [__private::DType::F32] => __private::Some(__swish_loop::<__private::f32>),
            [__private::DType::F64] => __private::Some(__swish_loop::<__private::f64>),
            _ => __private::None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn __swish_vjp<T: __private::Float>(input0: T, input1: T) -> T {
        let gradient0 = __private::cotangent_times(
            input0,
            swish::<__private::Dual<T>>(__private::Dual::variable(input1)).tangent,
        );
        gradient0
    }
    unsafe fn __swish_vjp_loop<T: __private::Float + __private::Machine>(
        attrs: &[__private::Attr],
        n: __private::usize,
        inputs: &[*const __private::u8],
        outputs: &[*mut __private::u8],
    ) -> __private::Result<()> {
        struct __Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Float + __private::Machine> __private::Map for __Loop<T> {
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
        unsafe { __private::map(&body, n, inputs, outputs) };
        __private::Ok(())
    }
    fn __swish_vjp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::ElementKernel> {
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__swish_vjp_loop::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__swish_vjp_loop::<__private::f64>)
            }
            _ => __private::None,
        }
    }
    fn __swish_vjp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::vjp_program(&__swish_program(attrs)?, &[0], &[0], false)
    }
    static __VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("swish.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The vector-Jacobian product of `swish`."),
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
        attrs: __private::Cow::Borrowed(&[]),
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
            __private::Some(__private::ProgramFn::Compiled(__swish_vjp_program)),
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
        name: __private::Cow::Borrowed("swish"),
        aliases: __private::Cow::Borrowed(&[__private::Cow::Borrowed("silu")]),
        doc: __private::Cow::Borrowed("Swish (SiLU): `x · σ(x)`."),
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
        attrs: __private::Cow::Borrowed(&[]),
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
            __private::Some(__private::ProgramFn::Compiled(__swish_program)),
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
    static __IN_PLACE: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("swish_"),
        aliases: __private::Cow::Borrowed(&[__private::Cow::Borrowed("silu_")]),
        doc: __private::Cow::Borrowed("In-place form of `swish`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: true,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(&[]),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Mutates(0),
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
            __private::Some(__private::ProgramFn::Compiled(__swish_program)),
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
    impl swish {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &__private::Tensor) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[<__private::Arg<'_> as __private::From<_>>::from(x)],
                &[],
            )?;
            __private::Ok(outputs.single())
        }
        ///Calls the op on tensors, and writes to the first.
        #[allow(clippy::too_many_arguments)]
        pub fn call_(x: &__private::Tensor) -> __private::Result<()> {
            let _outputs = __private::dispatch(
                &__private::OpRef::Static(&__IN_PLACE),
                &[<__private::Arg<'_> as __private::From<_>>::from(x)],
                &[],
            )?;
            __private::Ok(())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(swish, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Elements(__swish_kernel)) }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __VJP, kernels :
        __private::Some(__private::Kernels::Elements(__swish_vjp_kernel)) }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __IN_PLACE, kernels :
        __private::Some(__private::Kernels::Elements(__swish_kernel)) }
    }
};
