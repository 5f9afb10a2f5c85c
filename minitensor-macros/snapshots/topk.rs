/// The `k` largest elements of every row, and where they stood.
#[inline(always)]
pub fn topk<T: Real + ::minitensor::__rt::Machine + ::core::cmp::PartialOrd>(
    x: &[T],
    k: usize,
    values: &mut [T],
    indices: &mut [i64],
) {
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
    use ::minitensor::__rt as __rt;
    unsafe fn __topk_cell<T: __rt::Real + __rt::Machine + ::core::cmp::PartialOrd>(
        attrs: &[__rt::Attr],
        args: &[__rt::CellArg<'_>],
        cells: __rt::usize,
    ) -> __rt::Result<()> {
        struct __Cell<'a, T> {
            attrs: &'a [__rt::Attr],
            args: &'a [__rt::CellArg<'a>],
            cells: __rt::usize,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Real + __rt::Machine + ::core::cmp::PartialOrd> __rt::AtLevel
        for __Cell<'_, T> {
            type Output = __rt::Result<()>;
            const VECTORIZE: __rt::bool = false || <T as __rt::Machine>::VECTORIZE;
            #[inline(always)]
            fn run(self) -> __rt::Result<()> {
                let __Cell { attrs: attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    let (core0, core1, core2) = unsafe {
                        (
                            __rt::slice::<T>(&args[0], cell),
                            __rt::slice_mut::<T>(&args[1], cell),
                            __rt::slice_mut::<__rt::i64>(&args[2], cell),
                        )
                    };
                    __rt::CellResult::into_result(
                        topk::<T>(core0, __rt::attr::<usize>(attrs, 0)?, core1, core2),
                    )?;
                }
                __rt::Ok(())
            }
        }
        __rt::at_level(__Cell::<T> {
            attrs,
            args,
            cells,
            _dtypes: ::core::marker::PhantomData,
        })
    }
    fn __topk_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::CellKernel> {
        match dtypes[0] {
            __rt::DType::I8 => __rt::Some(__topk_cell::<__rt::i8>),
            __rt::DType::I16 => __rt::Some(__topk_cell::<__rt::i16>),
            __rt::DType::I32 => __rt::Some(__topk_cell::<__rt::i32>),
            __rt::DType::I64 => __rt::Some(__topk_cell::<__rt::i64>),
            __rt::DType::U8 => __rt::Some(__topk_cell::<__rt::u8>),
            __rt::DType::U16 => __rt::Some(__topk_cell::<__rt::u16>),
            __rt::DType::U32 => __rt::Some(__topk_cell::<__rt::u32>),
            __rt::DType::U64 => __rt::Some(__topk_cell::<__rt::u64>),
            __rt::DType::F32 => __rt::Some(__topk_cell::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__topk_cell::<__rt::f64>),
            _ => __rt::None,
        }
    }
    fn __topk_backward(
        ctx: &__rt::BackwardCall<'_>,
    ) -> __rt::Result<__rt::Vec<__rt::Option<__rt::Tensor>>> {
        static __OP0_SCATTER: __rt::OpName = __rt::OpName::new("scatter");
        let d_values = ctx.cotangent(0)?;
        let indices = ctx.output(1)?;
        let n = ctx.dim("n");
        let mut gradients: __rt::Vec<__rt::Option<__rt::Tensor>> = __rt::vec![
            __rt::None; 1
        ];
        if ctx.needs(0) {
            gradients[0] = __rt::Some(
                __OP0_SCATTER
                    .call(
                        &[
                            __rt::value(&d_values),
                            __rt::value(&-1),
                            __rt::value(&indices),
                            __rt::value(&n),
                        ],
                        &[],
                    )?,
            );
        }
        __rt::Ok(gradients)
    }
    static __DEF: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("topk"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed(
            "The `k` largest elements of every row, and where they stood.",
        ),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("x"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("k"),
                    kind: __rt::AttrKind::Size,
                    optional: false,
                    default: __rt::None,
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("values"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Slice,
                },
                __rt::Output {
                    name: __rt::Cow::Borrowed("indices"),
                    dtype: __rt::DTypeRule::Fixed(__rt::DType::I64),
                    role: __rt::Role::Returned,
                    core: __rt::Core::Slice,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(
            &[
                __rt::Generic {
                    name: __rt::Cow::Borrowed("T"),
                    dtypes: __rt::DTypeSet::REAL,
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
                ],
            ),
            outputs: __rt::Cow::Borrowed(
                &[
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(&[__rt::Dim::Attr(0)]),
                    },
                    __rt::Dims {
                        batch: true,
                        core: __rt::Cow::Borrowed(&[__rt::Dim::Attr(0)]),
                    },
                ],
            ),
            text: __rt::Cow::Borrowed(
                "(x: [.., n]) -> (values: [.., k], indices: [.., k])",
            ),
        }),
        predicates: __rt::Cow::Borrowed(
            &[
                __rt::Predicate {
                    left: __rt::Dim::Attr(0),
                    relation: __rt::Relation::LessEqual,
                    right: __rt::Dim::Name(__rt::Cow::Borrowed("n")),
                    text: __rt::Cow::Borrowed("k <= n"),
                },
            ],
        ),
        axis: __rt::None,
        body: __rt::Body::Cell(__rt::None),
        backward: __rt::Backward::Formula(__rt::Formula {
            run: __rt::BackwardBody::Static(__topk_backward),
            saved_inputs: __rt::Cow::Borrowed(&[]),
            saved_outputs: __rt::Cow::Borrowed(&[1]),
            without: __rt::Cow::Borrowed(&[]),
        }),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl topk {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__rt::Tensor,
            k: usize,
        ) -> __rt::Result<(__rt::Tensor, __rt::Tensor)> {
            let outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[<__rt::Arg<'_> as __rt::From<_>>::from(x)],
                &[<__rt::Attr as __rt::From<_>>::from(k)],
            )?;
            __rt::Ok(outputs.tuple2())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(topk, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "topk", device : "cpu", kernels : ||
        __rt::Kernels::Cells(__topk_kernel) }
    }
};
