/// Moves the largest element of every row to its end. Returns the number of swaps.
#[allow(clippy::multiple_bound_locations)]
#[inline(always)]
pub fn bubble<
    T: Real + ::minitensor::__private::Machine + ::core::cmp::PartialOrd
        + ::minitensor::__private::RealOperand,
>(x: &mut [T], swaps: &mut i64)
where
    for<'reference> &'reference T: ::minitensor::__private::NumReference<T>,
{
    todo!()
}
///The op [`bubble()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct bubble {}
const _: () = {
    use ::minitensor::__private as __private;
    unsafe fn __bubble_cell<
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
                let __Cell { attrs: _attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    {
                        let (core1, core2) = unsafe {
                            (
                                __private::slice_mut::<T>(&args[1], cell),
                                __private::scalar_mut::<__private::i64>(&args[2], cell),
                            )
                        };
                        let () = bubble::<T>(core1, core2);
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
    fn __bubble_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::I8] => __private::Some(__bubble_cell::<__private::i8>),
            [__private::DType::I16] => __private::Some(__bubble_cell::<__private::i16>),
            [__private::DType::I32] => __private::Some(__bubble_cell::<__private::i32>),
            [__private::DType::I64] => __private::Some(__bubble_cell::<__private::i64>),
            [__private::DType::U8] => __private::Some(__bubble_cell::<__private::u8>),
            [__private::DType::U16] => __private::Some(__bubble_cell::<__private::u16>),
            [__private::DType::U32] => __private::Some(__bubble_cell::<__private::u32>),
            [__private::DType::U64] => __private::Some(__bubble_cell::<__private::u64>),
            [__private::DType::F32] => __private::Some(__bubble_cell::<__private::f32>),
            [__private::DType::F64] => __private::Some(__bubble_cell::<__private::f64>),
            _ => __private::None,
        }
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("bubble"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed(
            "Moves the largest element of every row to its end. Returns the number of swaps.",
        ),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("x"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: true,
                    core: __private::Core::Slice,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(&[]),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("x"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Mutates(0),
                    core: __private::Core::Slice,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("swaps"),
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
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(&[]),
                    },
                ],
            ),
            text: __private::Cow::Borrowed("(x: [.., n]) -> (swaps: [..])"),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::None(
            __private::Cow::Borrowed("'bubble' changes its arguments in place"),
        ),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl bubble {
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
    __private::impl_custom_op!(bubble, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Cells(__bubble_kernel)) }
    }
};
