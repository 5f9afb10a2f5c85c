/// One SGD step.
#[inline(always)]
pub fn sgd_step<T: Float>(p: &mut T, v: &mut T, g: T, lr: T, momentum: T) {
    *v = *v * momentum + g;
    *p = *p - *v * lr;
}
///The op [`sgd_step()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
pub struct sgd_step {}
const _: () = {
    use ::minitensor::__rt as rt;
    #[allow(unused_variables, unused_mut)]
    fn sgd_step_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        type T = rt::Symbol;
        Ok(
            rt::Program::write(
                &["p", "v", "g"],
                &["lr", "momentum"],
                |inputs, uniforms| {
                    let mut p = inputs[0usize];
                    let mut v = inputs[1usize];
                    let g = inputs[2usize];
                    let lr = uniforms[0usize];
                    let momentum = uniforms[1usize];
                    let (output0, output1) = {
                        sgd_step::<T>(&mut p, &mut v, g, lr, momentum);
                        (p, v)
                    };
                    vec![
                        ("p".to_owned(), output0.into()), ("v".to_owned(), output1
                        .into())
                    ]
                },
            ),
        )
    }
    unsafe fn sgd_step_loop<T: rt::Float + rt::Machine>(
        attrs: &[rt::Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> rt::Result<()> {
        struct Loop<T> {
            lr: T,
            momentum: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Float + rt::Machine> rt::Map for Loop<T> {
            type In = (T, T, T);
            type Out = (T, T);
            #[inline(always)]
            fn eval(&self, (mut p, mut v, g): Self::In) -> Self::Out {
                sgd_step::<T>(&mut p, &mut v, g, self.lr, self.momentum);
                (p, v)
            }
        }
        let body = Loop::<T> {
            lr: rt::uniform::<T>(attrs, 0, "lr")?,
            momentum: rt::uniform::<T>(attrs, 1, "momentum")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { rt::map(&body, n, inputs, outputs) };
        Ok(())
    }
    fn sgd_step_kernel(dtypes: &[rt::DType]) -> Option<rt::ElementKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(sgd_step_loop::<f32>),
            rt::DType::F64 => Some(sgd_step_loop::<f64>),
            _ => None,
        }
    }
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("sgd_step"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("One SGD step."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("p"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("v"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("g"),
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
                    name: rt::Cow::Borrowed("lr"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: None,
                },
                rt::Attribute {
                    name: rt::Cow::Borrowed("momentum"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(0.9)),
                },
            ],
        ),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("p"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Mutates(0),
                    core: rt::Core::Scalar,
                },
                rt::Output {
                    name: rt::Cow::Borrowed("v"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Mutates(1),
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
            kernels: rt::Kernels::Compiled(sgd_step_kernel),
            program: Some(rt::ProgramFn::Compiled(sgd_step_program)),
        }),
        backward: rt::Backward::None(
            rt::Cow::Borrowed("'sgd_step' changes its arguments in place"),
        ),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl sgd_step {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            p: &rt::Tensor,
            v: &rt::Tensor,
            g: &rt::Tensor,
            lr: f64,
            momentum: f64,
        ) -> rt::Result<()> {
            let _outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(p), rt::Arg::from(v), rt::Arg::from(g)],
                &[rt::Attr::from(lr), rt::Attr::from(momentum)],
            )?;
            Ok(())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(sgd_step, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
};
