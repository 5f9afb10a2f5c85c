/// Root-mean-square normalization over the last axis.
#[inline(always)]
pub fn rms_norm<R: Row>(x: R, weight: Option<R>, eps: R) -> R {
    let y = x * (x.square().mean() + eps).rsqrt();
    if let Some(weight) = weight { y * weight } else { y }
}
///The op [`rms_norm()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
pub struct rms_norm {}
const _: () = {
    use ::minitensor::__rt as rt;
    struct Body<'a> {
        eps: f64,
        has_weight: bool,
        _attrs: ::core::marker::PhantomData<&'a ()>,
    }
    impl<'a> Body<'a> {
        #[allow(unused_variables)]
        fn of(attrs: &'a [rt::Attr], has: [bool; 1]) -> rt::Result<Self> {
            let [has_weight] = has;
            Ok(Body {
                eps: rt::attr::<f64>(attrs, 0)?,
                has_weight,
                _attrs: ::core::marker::PhantomData,
            })
        }
    }
    impl rt::RowBody<2usize, 0usize, 1usize> for Body<'_> {
        const ALONG: [bool; 2usize] = [true, true];
        const GIVES: [bool; 1usize] = [true];
        const REDUCTIONS: usize = 1usize;
        const LEVELS: (usize, usize) = (1usize, 1usize);
        const RUNS: bool = false;
        #[inline(always)]
        fn eval<R: rt::Row>(
            &self,
            [x,
            weight,
            ]: [R; 2usize],
            []: [R::Index; 0usize],
        ) -> [R; 1usize] {
            [rms_norm::<R>(x, self.has_weight.then_some(weight), rt::lit::<R>(self.eps))]
        }
    }
    unsafe fn rms_norm_rows<T: rt::Computed>(
        attrs: &[rt::Attr],
        args: &[rt::CellArg<'_>],
        cells: usize,
    ) -> rt::Result<()> {
        let body = Body::of(attrs, [!rt::is_absent(&args[1])])?;
        unsafe { rt::rows::<T, _, _, _, _>(&body, args, cells, [0, 1], []) }
    }
    fn rms_norm_kernel(dtypes: &[rt::DType]) -> Option<rt::CellKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(rms_norm_rows::<f32>),
            rt::DType::F64 => Some(rms_norm_rows::<f64>),
            _ => None,
        }
    }
    #[allow(unused_variables)]
    fn rms_norm_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        let has_weight = rt::attr::<bool>(attrs, 1usize)?;
        Ok(
            rt::Program::write(
                &["x", "weight"],
                &["eps"],
                |inputs, uniforms| {
                    let &[x, weight] = inputs else { return vec![] };
                    let &[eps] = uniforms else { return vec![] };
                    let results = {
                        [rms_norm::<rt::Symbol>(x, has_weight.then_some(weight), eps)]
                    };
                    ["out"]
                        .into_iter()
                        .map(str::to_owned)
                        .zip(results.map(Into::into))
                        .collect()
                },
            ),
        )
    }
    unsafe fn rms_norm_vjp_rows<T: rt::Computed>(
        attrs: &[rt::Attr],
        args: &[rt::CellArg<'_>],
        cells: usize,
    ) -> rt::Result<()> {
        let body = Body::of(attrs, [!rt::is_absent(&args[2])])?;
        unsafe {
            rt::rows_vjp::<T, _, _, _, _>(&body, args, cells, [1, 2], [], [false, true])
        }
    }
    fn rms_norm_vjp_kernel(dtypes: &[rt::DType]) -> Option<rt::CellKernel> {
        match dtypes[0] {
            rt::DType::F32 => Some(rms_norm_vjp_rows::<f32>),
            rt::DType::F64 => Some(rms_norm_vjp_rows::<f64>),
            _ => None,
        }
    }
    fn rms_norm_vjp_program(attrs: &[rt::Attr]) -> rt::Result<rt::Program> {
        rt::vjp_of_rows(
            &rms_norm_program(attrs)?,
            &[true],
            &[rt::Variable::Input(0), rt::Variable::Input(1)],
        )
    }
    static DEF_VJP: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("rms_norm.vjp"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("The vector-Jacobian product of `rms_norm`."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("d_out"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("weight"),
                    arity: rt::Arity::Optional,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("eps"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("d_x"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Slice,
                },
                rt::Output {
                    name: rt::Cow::Borrowed("d_weight"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Slice,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("R"),
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Core(rt::CoreShapes {
            inputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                    rt::Dims {
                        batch: false,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                ],
            ),
            outputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                    rt::Dims {
                        batch: false,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                ],
            ),
            text: rt::Cow::Borrowed(
                "(d_out: [.., n], x: [.., n], weight: [n]) -> (d_x: [.., n], d_weight: [n])",
            ),
        }),
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Cell(rt::CellBody {
            kernels: rt::Kernels::Compiled(rms_norm_vjp_kernel),
            program: Some(rt::ProgramFn::Compiled(rms_norm_vjp_program)),
        }),
        backward: rt::Backward::Program(rt::Gradients::new()),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("rms_norm"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("Root-mean-square normalization over the last axis."),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("weight"),
                    arity: rt::Arity::Optional,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("eps"),
                    kind: rt::AttrKind::Float,
                    optional: false,
                    default: Some(rt::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("out"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Slice,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("R"),
                    dtypes: rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: rt::ShapeRule::Core(rt::CoreShapes {
            inputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                    rt::Dims {
                        batch: false,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                ],
            ),
            outputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                ],
            ),
            text: rt::Cow::Borrowed("(x: [.., n], weight: [n]) -> [.., n]"),
        }),
        predicates: rt::Cow::Borrowed(
            &[
                rt::Predicate {
                    left: rt::Dim::Attr(0),
                    relation: rt::Relation::GreaterEqual,
                    right: rt::Dim::Float(0.0),
                    text: rt::Cow::Borrowed("eps >= 0.0"),
                },
            ],
        ),
        axis: None,
        body: rt::Body::Cell(rt::CellBody {
            kernels: rt::Kernels::Compiled(rms_norm_kernel),
            program: Some(rt::ProgramFn::Compiled(rms_norm_program)),
        }),
        backward: rt::Backward::Derived(rt::Derived {
            vjp: rt::OpRef::Static(&DEF_VJP),
            wrt: rt::Cow::Borrowed(&[0, 1]),
            gradients: rt::Gradients::new(),
        }),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl rms_norm {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &rt::Tensor,
            weight: Option<&rt::Tensor>,
            eps: f64,
        ) -> rt::Result<rt::Tensor> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x), rt::Arg::from(weight)],
                &[rt::Attr::from(eps)],
            )?;
            Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(rms_norm, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
    rt::inventory::submit! {
        rt::OpEntry(& DEF_VJP)
    }
};
