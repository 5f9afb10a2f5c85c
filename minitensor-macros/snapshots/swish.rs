/// Swish (SiLU): `x · σ(x)`.
#[inline(always)]
pub fn swish<T: Float>(x: T) -> T {
    x * x.sigmoid()
}
///The op [`swish()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
pub struct swish {}
const _: () = {
    use ::minitensor::__rt as rt;
    #[allow(unused_variables, unused_mut)]
    fn swish_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        type T = rt::Symbol;
        Ok(
            rt::Program::write(
                &["x"],
                &[],
                |inputs, uniforms| {
                    let x = inputs[0usize];
                    let (output0,) = { (swish::<T>(x),) };
                    vec![("out".to_owned(), output0.into())]
                },
            ),
        )
    }
    unsafe fn swish_loop<T: rt::Float + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Float + rt::Machine> rt::Map for Loop<T> {
            type In = (T,);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (x,): Self::In) -> Self::Out {
                (swish::<T>(x),)
            }
        }
        let body = Loop::<T> {
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn swish_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(swish_loop::<f32>),
            rt::DType::F64 => Some(swish_loop::<f64>),
            _ => None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn swish_vjp<T: rt::Float>(d_out: T, x: T) -> T {
        let d_x = rt::cotangent_times(
            d_out,
            swish::<rt::Dual<T>>(rt::Dual::variable(x)).tangent,
        );
        d_x
    }
    unsafe fn swish_vjp_loop<T: rt::Float + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Float + rt::Machine> rt::Map for Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (d_out, x): Self::In) -> Self::Out {
                (swish_vjp::<T>(d_out, x),)
            }
        }
        let body = Loop::<T> {
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn swish_vjp_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(swish_vjp_loop::<f32>),
            rt::DType::F64 => Some(swish_vjp_loop::<f64>),
            _ => None,
        }
    }
    fn swish_vjp_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        rt::vjp_program(&swish_program(attrs)?, &[0], &[0], false)
    }
    static VJP: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("swish.vjp"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("The vector-Jacobian product of `swish`."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("d_out"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(&[]),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("d_x"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("T"),
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Broadcast,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Element(rt::ElementBody {
            kernels: rt::Kernels::Compiled(swish_vjp_kernel),
            program: Some(rt::ProgramFn::Compiled(swish_vjp_program)),
        }),
        backward: rt::Backward::Program(rt::Gradients::new()),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("swish"),
        aliases: rt::Cow::Borrowed(&[rt::Cow::Borrowed("silu")]),
        doc: rt::Cow::Borrowed("Swish (SiLU): `x · σ(x)`."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(&[]),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("out"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("T"),
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Broadcast,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Element(rt::ElementBody {
            kernels: rt::Kernels::Compiled(swish_kernel),
            program: Some(rt::ProgramFn::Compiled(swish_program)),
        }),
        backward: rt::Backward::Derived(rt::Derived {
            vjp: rt::OpRef::Static(&VJP),
            wrt: rt::Cow::Borrowed(&[0]),
            gradients: rt::Gradients::new(),
        }),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    static IN_PLACE: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("swish_"),
        aliases: rt::Cow::Borrowed(&[rt::Cow::Borrowed("silu_")]),
        doc: rt::Cow::Borrowed("In-place form of `swish`."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(&[]),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("out"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Mutates(0),
                    core: rt::Core::Scalar,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("T"),
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Broadcast,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Element(rt::ElementBody {
            kernels: rt::Kernels::Compiled(swish_kernel),
            program: Some(rt::ProgramFn::Compiled(swish_program)),
        }),
        backward: rt::Backward::Derived(rt::Derived {
            vjp: rt::OpRef::Static(&VJP),
            wrt: rt::Cow::Borrowed(&[0]),
            gradients: rt::Gradients::new(),
        }),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl swish {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &rt::Tensor) -> rt::Result<rt::Tensor> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x)],
                &[],
            )?;
            Ok(outputs.single())
        }
        ///Calls the op on tensors, and writes to the first.
        #[allow(clippy::too_many_arguments)]
        pub fn call_(x: &rt::Tensor) -> rt::Result<()> {
            let _outputs = rt::dispatch(
                &rt::OpRef::Static(&IN_PLACE),
                &[rt::Arg::from(x)],
                &[],
            )?;
            Ok(())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(swish, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
    rt::inventory::submit! {
        rt::OpEntry(& VJP)
    }
    rt::inventory::submit! {
        rt::OpEntry(& IN_PLACE)
    }
};
