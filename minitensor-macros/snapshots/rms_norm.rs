/// Root-mean-square normalization over the last axis.
#[inline(always)]
pub fn rms_norm<R: Row>(x: R, weight: Option<R>, eps: R) -> R {
    let y = x * (x.square().mean() + eps).rsqrt();
    if let Some(weight) = weight { y * weight } else { y }
}
///The op [`rms_norm()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct rms_norm {}
const _: () = {
    use ::minitensor::__rt as __rt;
    struct __Body<'a> {
        attr0: f64,
        has1: __rt::bool,
        _attrs: ::core::marker::PhantomData<&'a ()>,
    }
    impl<'a> __Body<'a> {
        #[allow(unused_variables)]
        fn of(attrs: &'a [__rt::Attr], has: [__rt::bool; 1]) -> __rt::Result<Self> {
            let [has1] = has;
            __rt::Ok(__Body {
                attr0: __rt::attr::<f64>(attrs, 0)?,
                has1,
                _attrs: ::core::marker::PhantomData,
            })
        }
    }
    impl __rt::RowBody<2usize, 0usize, 1usize> for __Body<'_> {
        const ALONG: [__rt::bool; 2usize] = [true, true];
        const GIVES: [__rt::bool; 1usize] = [true];
        const REDUCTIONS: __rt::usize = 1usize;
        const LEVELS: (__rt::usize, __rt::usize) = (1usize, 1usize);
        const RUNS: __rt::bool = false;
        #[inline(always)]
        fn eval<__R: __rt::Row>(
            &self,
            [input0,
            input1,
            ]: [__R; 2usize],
            []: [__R::Index; 0usize],
        ) -> [__R; 1usize] {
            [
                rms_norm::<
                    __R,
                >(input0, self.has1.then_some(input1), __rt::lit::<__R>(self.attr0)),
            ]
        }
    }
    unsafe fn __rms_norm_rows<__T: __rt::Computed>(
        attrs: &[__rt::Attr],
        args: &[__rt::CellArg<'_>],
        cells: __rt::usize,
    ) -> __rt::Result<()> {
        let body = __Body::of(attrs, [!__rt::is_absent(&args[1])])?;
        unsafe { __rt::rows::<__T, _, _, _, _>(&body, args, cells, [0, 1], []) }
    }
    fn __rms_norm_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::CellKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__rms_norm_rows::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__rms_norm_rows::<__rt::f64>),
            _ => __rt::None,
        }
    }
    #[allow(unused_variables)]
    fn __rms_norm_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        let has1 = __rt::attr::<__rt::bool>(attrs, 1usize)?;
        __rt::Ok(
            __rt::Program::write(
                &["x", "weight"],
                &["eps"],
                |inputs, uniforms| {
                    let &[input0, input1] = inputs else { return __rt::vec![] };
                    let &[attr0] = uniforms else { return __rt::vec![] };
                    let [output0] = {
                        [rms_norm::<__rt::Symbol>(input0, has1.then_some(input1), attr0)]
                    };
                    __rt::vec![__rt::named("out", output0)]
                },
            ),
        )
    }
    unsafe fn __rms_norm_vjp_rows<__T: __rt::Computed>(
        attrs: &[__rt::Attr],
        args: &[__rt::CellArg<'_>],
        cells: __rt::usize,
    ) -> __rt::Result<()> {
        let body = __Body::of(attrs, [!__rt::is_absent(&args[2])])?;
        unsafe {
            __rt::rows_vjp::<
                __T,
                _,
                _,
                _,
                _,
            >(&body, args, cells, [1, 2], [], [false, true])
        }
    }
    fn __rms_norm_vjp_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::CellKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__rms_norm_vjp_rows::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__rms_norm_vjp_rows::<__rt::f64>),
            _ => __rt::None,
        }
    }
    fn __rms_norm_vjp_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        __rt::vjp_of_rows(
            &__rms_norm_program(attrs)?,
            &[true],
            &[__rt::Variable::Input(0), __rt::Variable::Input(1)],
        )
    }
    static __DEF_VJP: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("rms_norm.vjp"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("The vector-Jacobian product of `rms_norm`."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("d_out"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("weight"),
                    arity: __rt::Arity::Optional,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("eps"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("d_x"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Slice,
                },
                __rt::Output {
                    name: __rt::Cow::Borrowed("d_weight"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(
            &[
                __rt::Generic {
                    name: __rt::Cow::Borrowed("R"),
                    dtypes: __rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __rt::ShapeRule::Core(__rt::CoreShapes {
            inputs: __rt::Cow::Borrowed(
                &[
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                    __rt::Dims {
                        batch: false,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __rt::Cow::Borrowed(
                &[
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                    __rt::Dims {
                        batch: false,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __rt::Cow::Borrowed(
                "(d_out: [.., n], x: [.., n], weight: [n]) -> (d_x: [.., n], d_weight: [n])",
            ),
        }),
        predicates: __rt::Cow::Borrowed(&[]),
        axis: __rt::None,
        body: __rt::Body::Cell(
            __rt::Some(__rt::ProgramFn::Compiled(__rms_norm_vjp_program)),
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
        name: __rt::Cow::Borrowed("rms_norm"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("Root-mean-square normalization over the last axis."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("weight"),
                    arity: __rt::Arity::Optional,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("eps"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(1e-5)),
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("out"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(
            &[
                __rt::Generic {
                    name: __rt::Cow::Borrowed("R"),
                    dtypes: __rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __rt::ShapeRule::Core(__rt::CoreShapes {
            inputs: __rt::Cow::Borrowed(
                &[
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                    __rt::Dims {
                        batch: false,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __rt::Cow::Borrowed(
                &[
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(
                            &[__rt::Dim::Name(__rt::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __rt::Cow::Borrowed("(x: [.., n], weight: [n]) -> [.., n]"),
        }),
        predicates: __rt::Cow::Borrowed(
            &[
                __rt::Predicate {
                    left: __rt::Dim::Attr(0),
                    relation: __rt::Relation::GreaterEqual,
                    right: __rt::Dim::Float(0.0),
                    text: __rt::Cow::Borrowed("eps >= 0.0"),
                },
            ],
        ),
        axis: __rt::None,
        body: __rt::Body::Cell(
            __rt::Some(__rt::ProgramFn::Compiled(__rms_norm_program)),
        ),
        backward: __rt::Backward::Derived(__rt::Derived {
            vjp: __rt::OpRef::Static(&__DEF_VJP),
            wrt: __rt::Cow::Borrowed(&[0, 1]),
            gradients: __rt::Gradients::new(),
        }),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl rms_norm {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__rt::Tensor,
            weight: __rt::Option<&__rt::Tensor>,
            eps: f64,
        ) -> __rt::Result<__rt::Tensor> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[
                    <__rt::Arg<'_> as __rt::From<_>>::from(x),
                    <__rt::Arg<'_> as __rt::From<_>>::from(weight),
                ],
                &[<__rt::Attr as __rt::From<_>>::from(eps)],
            )?;
            __rt::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(rms_norm, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF_VJP)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "rms_norm.vjp", device : "cpu", kernels : ||
        __rt::Kernels::Cells(__rms_norm_vjp_kernel) }
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "rms_norm", device : "cpu", kernels : ||
        __rt::Kernels::Cells(__rms_norm_kernel) }
    }
};
