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
#[derive(Clone, Copy, Debug, Default)]
pub struct clamp {}
const _: () = {
    use ::minitensor::__rt as rt;
    #[allow(unused_variables, unused_mut)]
    fn clamp_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        type T = rt::Symbol;
        Ok(
            rt::Program::write(
                &["x"],
                &["lo", "hi"],
                |inputs, uniforms| {
                    let x = inputs[0usize];
                    let lo = uniforms[0usize];
                    let hi = uniforms[1usize];
                    let (output0,) = { (clamp::<T>(x, lo, hi),) };
                    vec![("out".to_owned(), output0.into())]
                },
            ),
        )
    }
    unsafe fn clamp_loop<T: rt::Real + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            lo: T,
            hi: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Real + rt::Machine> rt::Map for Loop<T> {
            type In = (T,);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (x,): Self::In) -> Self::Out {
                (clamp::<T>(x, self.lo, self.hi),)
            }
        }
        let body = Loop::<T> {
            lo: rt::uniform::<T>(attrs, 0, "lo")?,
            hi: rt::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn clamp_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::I8 => Some(clamp_loop::<i8>),
            rt::DType::I16 => Some(clamp_loop::<i16>),
            rt::DType::I32 => Some(clamp_loop::<i32>),
            rt::DType::I64 => Some(clamp_loop::<i64>),
            rt::DType::U8 => Some(clamp_loop::<u8>),
            rt::DType::U16 => Some(clamp_loop::<u16>),
            rt::DType::U32 => Some(clamp_loop::<u32>),
            rt::DType::U64 => Some(clamp_loop::<u64>),
            rt::DType::F32 => Some(clamp_loop::<f32>),
            rt::DType::F64 => Some(clamp_loop::<f64>),
            _ => None,
        }
    }
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn clamp_vjp<T: rt::Real>(d_out: T, x: T, lo: T, hi: T) -> T {
        let d_x = rt::cotangent_times(
            d_out,
            clamp::<
                rt::Dual<T>,
            >(
                    rt::Dual::variable(x),
                    rt::Dual::constant_of(lo),
                    rt::Dual::constant_of(hi),
                )
                .tangent,
        );
        d_x
    }
    unsafe fn clamp_vjp_loop<T: rt::Real + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            lo: T,
            hi: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Real + rt::Machine> rt::Map for Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (d_out, x): Self::In) -> Self::Out {
                (clamp_vjp::<T>(d_out, x, self.lo, self.hi),)
            }
        }
        let body = Loop::<T> {
            lo: rt::uniform::<T>(attrs, 0, "lo")?,
            hi: rt::uniform::<T>(attrs, 1, "hi")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn clamp_vjp_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(clamp_vjp_loop::<f32>),
            rt::DType::F64 => Some(clamp_vjp_loop::<f64>),
            _ => None,
        }
    }
    fn clamp_vjp_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        rt::vjp_program(&clamp_program(attrs)?, &[0], &[0], false)
    }
    static VJP: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("clamp.vjp"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("The vector-Jacobian product of `clamp`."),
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
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("lo"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(f64::NEG_INFINITY)),
                },
                rt::Attribute {
                    name: rt::Cow::Borrowed("hi"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(f64::INFINITY)),
                },
            ],
        ),
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
            kernels: rt::Kernels::Compiled(clamp_vjp_kernel),
            program: Some(rt::ProgramFn::Compiled(clamp_vjp_program)),
        }),
        backward: rt::Backward::Program(rt::Gradients::new()),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("clamp"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("Limits every element to `[lo, hi]`."),
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
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("lo"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(f64::NEG_INFINITY)),
                },
                rt::Attribute {
                    name: rt::Cow::Borrowed("hi"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(f64::INFINITY)),
                },
            ],
        ),
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
                    dtypes: rt::DTypeSet::REAL,
                },
            ],
        ),
        shape: rt::ShapeRule::Broadcast,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Element(rt::ElementBody {
            kernels: rt::Kernels::Compiled(clamp_kernel),
            program: Some(rt::ProgramFn::Compiled(clamp_program)),
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
    impl clamp {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &rt::Tensor, lo: f64, hi: f64) -> rt::Result<rt::Tensor> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x)],
                &[rt::Attr::from(lo), rt::Attr::from(hi)],
            )?;
            Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(clamp, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
    rt::inventory::submit! {
        rt::OpEntry(& VJP)
    }
};
