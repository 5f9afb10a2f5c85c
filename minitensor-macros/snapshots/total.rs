/// The sum of a row.
#[inline(always)]
pub fn total<R: Row>(x: R) -> R {
    x.sum()
}
///The op [`total()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct total {}
const _: () = {
    use ::minitensor::__private as __private;
    struct __Body<'a> {
        _attrs: ::core::marker::PhantomData<&'a ()>,
    }
    impl<'a> __Body<'a> {
        #[allow(unused_variables)]
        fn of(
            attrs: &'a [__private::Attr],
            has: [__private::bool; 0],
        ) -> __private::Result<Self> {
            let [] = has;
            __private::Ok(__Body {
                _attrs: ::core::marker::PhantomData,
            })
        }
    }
    impl __private::RowBody<1usize, 0usize, 1usize> for __Body<'_> {
        const ALONG: [__private::bool; 1usize] = [true];
        const GIVES: [__private::bool; 1usize] = [false];
        const REDUCTIONS: __private::usize = 1usize;
        const LEVELS: (__private::usize, __private::usize) = (1usize, 1usize);
        const RUNS: __private::bool = false;
        #[inline(always)]
        fn eval<__R: __private::Row>(
            &self,
            [input0,
            ]: [__R; 1usize],
            []: [__R::Index; 0usize],
        ) -> [__R; 1usize] {
            let (result0,) = { (total::<__R>(input0),) };
            [result0]
        }
    }
    unsafe fn __total_rows<__T: __private::ComputedFloat>(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()> {
        let body = __Body::of(attrs, [])?;
        unsafe { __private::rows::<__T, _, _, _, _>(&body, args, cells, [0], []) }
    }
    fn __total_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::F32] => __private::Some(__total_rows::<__private::f32>),
            [__private::DType::F64] => __private::Some(__total_rows::<__private::f64>),
            _ => __private::None,
        }
    }
    #[allow(unused_variables)]
    fn __total_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::program(
            &["x"],
            &[],
            |inputs, uniforms| {
                let &[input0] = inputs else { return __private::vec![] };
                let &[] = uniforms else { return __private::vec![] };
                let (output0,) = { (total::<__private::Symbol>(input0),) };
                __private::vec![__private::named("out", output0)]
            },
        )
    }
    unsafe fn __total_vjp_rows<__T: __private::ComputedFloat>(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()> {
        let body = __Body::of(attrs, [])?;
        unsafe {
            __private::rows_vjp::<__T, _, _, _, _>(&body, args, cells, [1], [], [false])
        }
    }
    fn __total_vjp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__total_vjp_rows::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__total_vjp_rows::<__private::f64>)
            }
            _ => __private::None,
        }
    }
    fn __total_vjp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::vjp_of_rows(
            &__total_program(attrs)?,
            &[0],
            &[false],
            &[__private::Variable::Input(0)],
        )
    }
    static __DEF_VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("total.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The vector-Jacobian product of `total`."),
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
                    core: __private::Core::Slice,
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
                    core: __private::Core::Slice,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("R"),
                    dtypes: __private::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __private::ShapeRule::Core(__private::CoreShapes {
            inputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(&[]),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __private::Cow::Borrowed("(d_out: [..], x: [.., n]) -> (d_x: [.., n])"),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(
            __private::Some(__private::ProgramFn::Compiled(__total_vjp_program)),
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
        name: __private::Cow::Borrowed("total"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The sum of a row."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
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
                    name: __private::Cow::Borrowed("R"),
                    dtypes: __private::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __private::ShapeRule::Core(__private::CoreShapes {
            inputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            outputs: __private::Cow::Borrowed(
                &[
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(&[]),
                    },
                ],
            ),
            text: __private::Cow::Borrowed("(x: [.., n]) -> [..]"),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(
            __private::Some(__private::ProgramFn::Compiled(__total_program)),
        ),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__DEF_VJP),
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
    impl total {
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
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(total, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : if ::core::cfg!(debug_assertions) {
        __private::None } else {
        __private::Some(__private::Kernels::Cells(__total_kernel)) } }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF_VJP, kernels : if
        ::core::cfg!(debug_assertions) { __private::None } else {
        __private::Some(__private::Kernels::Cells(__total_vjp_kernel)) } }
    }
};
