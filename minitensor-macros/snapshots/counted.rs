/// The number of elements that are not 0.
#[inline(always)]
pub fn counted<T: Element + ::minitensor::__private::Machine>(
    x: Columns<T>,
    out: &mut [i64],
) {
    columns::count_nonzero(x, out);
}
///The op [`counted()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct counted {}
const _: () = {
    use ::minitensor::__private as __private;
    unsafe fn __counted_cell<T: __private::Element + __private::Machine>(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()> {
        struct __Cell<'a, T> {
            attrs: &'a [__private::Attr],
            args: &'a [__private::CellArg<'a>],
            cells: __private::usize,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Element + __private::Machine> __private::AtLevel
        for __Cell<'_, T> {
            type Output = __private::Result<()>;
            const VECTORIZE: __private::bool = false
                || <T as __private::Machine>::VECTORIZE;
            #[inline(always)]
            fn run(self) -> __private::Result<()> {
                let __Cell { attrs: _attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    {
                        let (core0, core1) = unsafe {
                            (
                                __private::columns::<T>(&args[0], cell),
                                __private::slice_mut::<__private::i64>(&args[1], cell),
                            )
                        };
                        let () = counted::<T>(core0, core1);
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
    fn __counted_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::Bool] => {
                __private::Some(__counted_cell::<__private::scalars::Bool>)
            }
            [__private::DType::I8] => __private::Some(__counted_cell::<__private::i8>),
            [__private::DType::I16] => __private::Some(__counted_cell::<__private::i16>),
            [__private::DType::I32] => __private::Some(__counted_cell::<__private::i32>),
            [__private::DType::I64] => __private::Some(__counted_cell::<__private::i64>),
            [__private::DType::U8] => __private::Some(__counted_cell::<__private::u8>),
            [__private::DType::U16] => __private::Some(__counted_cell::<__private::u16>),
            [__private::DType::U32] => __private::Some(__counted_cell::<__private::u32>),
            [__private::DType::U64] => __private::Some(__counted_cell::<__private::u64>),
            [__private::DType::F32] => __private::Some(__counted_cell::<__private::f32>),
            [__private::DType::F64] => __private::Some(__counted_cell::<__private::f64>),
            [__private::DType::C64] => {
                __private::Some(__counted_cell::<__private::scalars::C64>)
            }
            [__private::DType::C128] => {
                __private::Some(__counted_cell::<__private::scalars::C128>)
            }
            _ => __private::None,
        }
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("counted"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The number of elements that are not 0."),
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
                    name: __private::Cow::Borrowed("axis"),
                    kind: __private::AttrKind::Ints,
                    optional: true,
                    default: __private::Some(__private::Attr::None),
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("keepdims"),
                    kind: __private::AttrKind::Bool,
                    optional: false,
                    default: __private::Some(__private::Attr::Bool(false)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Fixed(__private::DType::I64),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
                    dtypes: __private::DTypeSet::ELEMENT,
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
        axis: __private::Some(__private::Axis {
            attr: 0,
            keepdims: __private::Some(1),
            many: true,
        }),
        combine: __private::Some(__private::Combine::Add),
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::None(
            __private::Cow::Borrowed(
                "'counted' is defined without a gradient (backward = none)",
            ),
        ),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl counted {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &__private::Tensor,
            axis: __private::Option<&[i64]>,
            keepdims: bool,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[<__private::Arg<'_> as __private::From<_>>::from(x)],
                &[
                    <__private::Attr as __private::From<_>>::from(axis),
                    <__private::Attr as __private::From<_>>::from(keepdims),
                ],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(counted, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Columns(__counted_kernel)) }
    }
};
