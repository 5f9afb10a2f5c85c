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
#[derive(Clone, Copy, Debug, Default)]
pub struct scaled {}
const _: () = {
    use ::minitensor::__rt as rt;
    #[allow(unused_variables, unused_mut)]
    fn scaled_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        type T = rt::Symbol;
        let exact = rt::attr::<bool>(attrs, 1)?;
        let approximate = rt::attr_enum::<Approximate>(attrs, 2)?;
        let has_bias = rt::attr::<bool>(attrs, 3usize)?;
        Ok(
            rt::Program::write(
                &["x", "bias"],
                &["n_scale"],
                |inputs, uniforms| {
                    let x = inputs[0usize];
                    let bias = inputs[1usize];
                    let n_scale = uniforms[0usize];
                    let (output0,) = {
                        (
                            scaled::<
                                T,
                            >(x, has_bias.then_some(bias), n_scale, exact, approximate),
                        )
                    };
                    vec![("out".to_owned(), output0.into())]
                },
            ),
        )
    }
    unsafe fn scaled_loop<T: rt::Float + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            n_scale: T,
            exact: bool,
            approximate: Approximate,
            has_bias: bool,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Float + rt::Machine> rt::Map for Loop<T> {
            type In = (T, T);
            type Out = (T,);
            #[inline(always)]
            fn eval(&self, (x, bias): Self::In) -> Self::Out {
                (
                    scaled::<
                        T,
                    >(
                        x,
                        self.has_bias.then_some(bias),
                        self.n_scale,
                        self.exact,
                        self.approximate,
                    ),
                )
            }
        }
        let body = Loop::<T> {
            n_scale: rt::uniform::<T>(attrs, 0, "n_scale")?,
            exact: rt::attr::<bool>(attrs, 1)?,
            approximate: rt::attr_enum::<Approximate>(attrs, 2)?,
            has_bias: rt::attr::<bool>(attrs, 3)?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn scaled_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(scaled_loop::<f32>),
            rt::DType::F64 => Some(scaled_loop::<f64>),
            _ => None,
        }
    }
    fn scaled_backward(
        ctx: &rt::BackwardCall<'_>,
    ) -> rt::Result<Vec<Option<rt::Tensor>>> {
        static DIVIDE: rt::OpName = rt::OpName::new("divide");
        static MULTIPLY: rt::OpName = rt::OpName::new("multiply");
        static SUM: rt::OpName = rt::OpName::new("sum");
        let d_out = ctx.cotangent(0)?;
        let exact = rt::attr::<bool>(ctx.attrs(), 1)?;
        let n_scale = rt::attr::<f64>(ctx.attrs(), 0)?;
        let mut gradients: Vec<Option<rt::Tensor>> = vec![None; 2];
        if ctx.needs(0) {
            let s = MULTIPLY.call(&[rt::value(&d_out), rt::value(&2.0)], &[])?;
            gradients[0] = Some(
                if exact {
                    DIVIDE.call(&[rt::value(&s), rt::value(&(1.0 + n_scale))], &[])?
                } else {
                    s.clone()
                },
            );
        }
        if ctx.needs(1) {
            gradients[1] = Some(
                SUM
                    .call(
                        &[rt::value(&d_out)],
                        &[("axis", rt::value(&-1)), ("keepdims", rt::value(&true))],
                    )?,
            );
        }
        Ok(gradients)
    }
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("scaled"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("Scales."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("bias"),
                    arity: rt::Arity::Optional,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("n_scale"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(1.0)),
                },
                rt::Attribute {
                    name: rt::Cow::Borrowed("exact"),
                    kind: rt::AttrKind::Bool,
                    optional: false,
                    default: Some(rt::Attr::Bool(true)),
                },
                rt::Attribute {
                    name: rt::Cow::Borrowed("approximate"),
                    kind: rt::AttrKind::Enum(<Approximate as rt::AttrEnum>::WORDS),
                    optional: false,
                    default: Some(
                        rt::Attr::Str(
                            rt::Cow::Borrowed(
                                <Approximate>::word_const(Approximate::None),
                            ),
                        ),
                    ),
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
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Broadcast,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Element(rt::ElementBody {
            kernels: rt::Kernels::Compiled(scaled_kernel),
            program: Some(rt::ProgramFn::Compiled(scaled_program)),
        }),
        backward: rt::Backward::Formula(rt::Formula {
            run: rt::BackwardBody::Static(scaled_backward),
            saved_inputs: rt::Cow::Borrowed(&[]),
            saved_outputs: rt::Cow::Borrowed(&[]),
            without: rt::Cow::Borrowed(&[]),
        }),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl scaled {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &rt::Tensor,
            bias: Option<&rt::Tensor>,
            n_scale: f64,
            exact: bool,
            approximate: Approximate,
        ) -> rt::Result<rt::Tensor> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x), rt::Arg::from(bias)],
                &[
                    rt::Attr::from(n_scale),
                    rt::Attr::from(exact),
                    rt::Attr::Str(rt::Cow::Borrowed(rt::AttrEnum::word(approximate))),
                ],
            )?;
            Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(scaled, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
};
