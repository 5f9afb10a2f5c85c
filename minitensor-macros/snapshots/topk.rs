/// The `k` largest elements of every row, and where they stood.
#[allow(clippy::multiple_bound_locations)]
#[inline(always)]
pub fn topk<
    T: Real + ::minitensor::__private::Machine + ::core::cmp::PartialOrd
        + ::minitensor::__private::RealOperand,
>(x: &[T], k: usize, values: &mut [T], indices: &mut [i64])
where
    for<'reference> &'reference T: ::minitensor::__private::NumReference<T>,
{
    todo!()
}
///The op [`topk()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct topk {}
const _: () = {
    use ::minitensor::__private as __private;
    unsafe fn __topk_cell<
        T: __private::Real + __private::Machine + ::core::cmp::PartialOrd
            + __private::RealOperand,
    >(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()>
    where
        for<'reference> &'reference T: __private::NumReference<T>,
    {
        struct __Cell<'a, T> {
            attrs: &'a [__private::Attr],
            args: &'a [__private::CellArg<'a>],
            cells: __private::usize,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<
            T: __private::Real + __private::Machine + ::core::cmp::PartialOrd
                + __private::RealOperand,
        > __private::AtLevel for __Cell<'_, T>
        where
            for<'reference> &'reference T: __private::NumReference<T>,
        {
            type Output = __private::Result<()>;
            const VECTORIZE: __private::bool = false
                || <T as __private::Machine>::VECTORIZE;
            #[inline(always)]
            fn run(self) -> __private::Result<()> {
                let __Cell { attrs: attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    {
                        let (core0, core1, core2) = unsafe {
                            (
                                __private::slice::<T>(&args[0], cell),
                                __private::slice_mut::<T>(&args[1], cell),
                                __private::slice_mut::<__private::i64>(&args[2], cell),
                            )
                        };
                        let () = topk::<
                            T,
                        >(core0, __private::attr::<usize>(attrs, 0)?, core1, core2);
                    }
                }
                __private::Ok(())
            }
        }
        __private::at_level(__Cell::<T> {
            attrs,
            args,
            cells,
            _dtypes: ::core::marker::PhantomData,
        })
    }
    fn __topk_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::I8] => __private::Some(__topk_cell::<__private::i8>),
            [__private::DType::I16] => __private::Some(__topk_cell::<__private::i16>),
            [__private::DType::I32] => __private::Some(__topk_cell::<__private::i32>),
            [__private::DType::I64] => __private::Some(__topk_cell::<__private::i64>),
            [__private::DType::U8] => __private::Some(__topk_cell::<__private::u8>),
            [__private::DType::U16] => __private::Some(__topk_cell::<__private::u16>),
            [__private::DType::U32] => __private::Some(__topk_cell::<__private::u32>),
            [__private::DType::U64] => __private::Some(__topk_cell::<__private::u64>),
            [__private::DType::F32] => __private::Some(__topk_cell::<__private::f32>),
            [__private::DType::F64] => __private::Some(__topk_cell::<__private::f64>),
            _ => __private::None,
        }
    }
    fn __topk_backward(
        ctx: &__private::BackwardCall<'_>,
    ) -> __private::Result<__private::Vec<__private::Option<__private::Tensor>>> {
        static __OP0_SCATTER: __private::OpName = __private::OpName::new("scatter");
        __private::inventory::submit! {
            __private::CallsEntry { caller : "the gradient of op 'topk'", location :
            __private::Location { file : __private::Cow::Borrowed(::core::file!()), line
            : ::core::line!() }, calls : & [__private::Called { op : "scatter",
            positional : 4, keywords : & [], outputs : __private::Some(1) }], }
        }
        let d_values = ctx.cotangent(0)?;
        let indices = ctx.output(1)?;
        let n = ctx.dim("n");
        let mut found: __private::Vec<__private::Option<__private::Tensor>> = __private::vec![
            __private::None; 1
        ];
        if ctx.needs(0) {
            found[0] = __private::Some(
                __OP0_SCATTER
                    .call(
                        &[
                            __private::value(&d_values),
                            __private::value(&-1),
                            __private::value(&indices),
                            __private::value(&n),
                        ],
                        &[],
                    )?,
            );
        }
        __private::Ok(found)
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("topk"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed(
            "The `k` largest elements of every row, and where they stood.",
        ),
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
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("k"),
                    kind: __private::AttrKind::Size,
                    optional: false,
                    default: __private::None,
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("values"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Slice,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("indices"),
                    dtype: __private::DTypeRule::Fixed(__private::DType::I64),
                    role: __private::Role::Returned,
                    core: __private::Core::Slice,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
                    dtypes: __private::DTypeSet::REAL,
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
                        core: __private::Cow::Borrowed(&[__private::Dim::Attr(0)]),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(&[__private::Dim::Attr(0)]),
                    },
                ],
            ),
            text: __private::Cow::Borrowed(
                "(x: [.., n]) -> (values: [.., k], indices: [.., k])",
            ),
        }),
        predicates: __private::Cow::Borrowed(
            &[
                __private::Predicate {
                    left: __private::Dim::Attr(0),
                    relation: __private::Relation::LessEqual,
                    right: __private::Dim::Name(__private::Cow::Borrowed("n")),
                    text: __private::Cow::Borrowed("k <= n"),
                },
            ],
        ),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::Formula(__private::Formula {
            mode: __private::Mode::Reverse,
            run: __private::BackwardBody::Static(__topk_backward),
            saved_inputs: __private::Cow::Borrowed(&[]),
            saved_outputs: __private::Cow::Borrowed(&[1]),
            without: __private::Cow::Borrowed(&[]),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl topk {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            k: usize,
        ) -> __private::Result<(__private::Tensor, __private::Tensor)> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[<__private::Arg<'_> as __private::From<_>>::from(x)],
                &[<__private::Attr as __private::From<_>>::from(k)],
            )?;
            __private::Ok({
                let [output0, output1] = outputs.array();
                (output0, output1)
            })
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(topk, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Cells(__topk_kernel)) }
    }
};
