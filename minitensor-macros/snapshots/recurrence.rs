/// `hᵢ = aᵢ · hᵢ₋₁ + bᵢ`.
#[allow(clippy::multiple_bound_locations)]
#[inline(always)]
pub fn recurrence<
    T: Float + ::minitensor::__private::Machine + ::core::cmp::PartialOrd
        + ::minitensor::__private::FloatOperand,
>(a: &[T], b: &[T], out: &mut [T])
where
    for<'reference> &'reference T: ::minitensor::__private::FieldReference<T>,
{
    let mut h = T::zero();
    for i in 0..a.len() {
        h = a[i] * h + b[i];
        out[i] = h;
    }
}
///The op [`recurrence()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct recurrence {}
const _: () = {
    use ::minitensor::__private as __private;
    unsafe fn __recurrence_cell<
        T: __private::Float + __private::Machine + ::core::cmp::PartialOrd
            + __private::FloatOperand,
    >(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()>
    where
        for<'reference> &'reference T: __private::FieldReference<T>,
    {
        struct __Cell<'a, T> {
            attrs: &'a [__private::Attr],
            args: &'a [__private::CellArg<'a>],
            cells: __private::usize,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<
            T: __private::Float + __private::Machine + ::core::cmp::PartialOrd
                + __private::FloatOperand,
        > __private::AtLevel for __Cell<'_, T>
        where
            for<'reference> &'reference T: __private::FieldReference<T>,
        {
            type Output = __private::Result<()>;
            const VECTORIZE: __private::bool = false
                || <T as __private::Machine>::VECTORIZE;
            #[inline(always)]
            fn run(self) -> __private::Result<()> {
                let __Cell { attrs: _attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    {
                        let (core0, core1, core2) = unsafe {
                            (
                                __private::slice::<T>(&args[0], cell),
                                __private::slice::<T>(&args[1], cell),
                                __private::slice_mut::<T>(&args[2], cell),
                            )
                        };
                        let () = recurrence::<T>(core0, core1, core2);
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
    unsafe fn __recurrence_cells<
        T: __private::Float + __private::Machine + ::core::cmp::PartialOrd
            + __private::FloatOperand + __private::Differentiable,
    >(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()>
    where
        for<'reference> &'reference T: __private::FieldReference<T>,
    {
        let body = |args: &[__private::CellArg<'_>]| -> __private::Result<()> {
            let cell = 0;
            {
                let (core0, core1, core2) = unsafe {
                    (
                        __private::slice::<__private::Traced<T>>(&args[0], cell),
                        __private::slice::<__private::Traced<T>>(&args[1], cell),
                        __private::slice_mut::<__private::Traced<T>>(&args[2], cell),
                    )
                };
                let () = recurrence::<__private::Traced<T>>(core0, core1, core2);
            }
            __private::Ok(())
        };
        unsafe {
            match __private::cell_results::<
                T,
            >(&__DEF, &__PROGRAMS, attrs, args, cells, body)? {
                true => __private::Ok(()),
                false => __recurrence_cell::<T>(attrs, args, cells),
            }
        }
    }
    fn __recurrence_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        fn __recurrence_kernel(
            dtypes: &[__private::DType],
        ) -> __private::Option<__private::CellKernel> {
            match dtypes {
                [__private::DType::F32] => {
                    __private::Some(__recurrence_cell::<__private::f32>)
                }
                [__private::DType::F64] => {
                    __private::Some(__recurrence_cell::<__private::f64>)
                }
                _ => __private::None,
            }
        }
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__recurrence_cells::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__recurrence_cells::<__private::f64>)
            }
            _ => __recurrence_kernel(dtypes),
        }
    }
    unsafe fn __recurrence_vjp_vjp_cell<
        T: __private::Float + __private::Machine + ::core::cmp::PartialOrd
            + __private::FloatOperand + __private::Differentiable,
    >(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()>
    where
        for<'reference> &'reference T: __private::FieldReference<T>,
        __private::Dual<T>: __private::Differentiable,
    {
        let body = |args: &[__private::CellArg<'_>]| -> __private::Result<()> {
            let cell = 0;
            {
                let (core0, core1, core2) = unsafe {
                    (
                        __private::slice::<
                            __private::Traced<__private::Dual<T>>,
                        >(&args[0], cell),
                        __private::slice::<
                            __private::Traced<__private::Dual<T>>,
                        >(&args[1], cell),
                        __private::slice_mut::<
                            __private::Traced<__private::Dual<T>>,
                        >(&args[2], cell),
                    )
                };
                let () = recurrence::<
                    __private::Traced<__private::Dual<T>>,
                >(core0, core1, core2);
            }
            __private::Ok(())
        };
        unsafe {
            __private::cell_gradient::<
                T,
                __private::Dual<T>,
            >(&__DEF, &__PROGRAMS, attrs, args, cells, body)
        }
    }
    fn __recurrence_vjp_vjp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__recurrence_vjp_vjp_cell::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__recurrence_vjp_vjp_cell::<__private::f64>)
            }
            _ => __private::None,
        }
    }
    static __DEF_VJP_VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("recurrence.vjp.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed(
            "The vector-Jacobian product of `recurrence.vjp`.",
        ),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("d_d_a"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("d_d_b"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("d_out"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("a"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("b"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(&[]),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("d_d_out"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::View,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_a"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::View,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_b"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::View,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
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
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
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
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __private::Cow::Borrowed(
                "(d_d_a: [.., n], d_d_b: [.., n], d_out: [.., n], a: [.., n], b: [.., n]) -> (d_d_out: [.., n], d_a: [.., n], d_b: [.., n])",
            ),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::None(
            __private::Cow::Borrowed(
                "derivatives of the cell op 'recurrence' exist up to the second; a formula has all of them",
            ),
        ),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    static __PROGRAMS: __private::Programs = __private::Programs::new();
    unsafe fn __recurrence_vjp_cell<
        T: __private::Float + __private::Machine + ::core::cmp::PartialOrd
            + __private::FloatOperand + __private::Differentiable,
    >(
        attrs: &[__private::Attr],
        args: &[__private::CellArg<'_>],
        cells: __private::usize,
    ) -> __private::Result<()>
    where
        for<'reference> &'reference T: __private::FieldReference<T>,
        __private::Dual<T>: __private::Differentiable,
    {
        let body = |args: &[__private::CellArg<'_>]| -> __private::Result<()> {
            let cell = 0;
            {
                let (core0, core1, core2) = unsafe {
                    (
                        __private::slice::<__private::Traced<T>>(&args[0], cell),
                        __private::slice::<__private::Traced<T>>(&args[1], cell),
                        __private::slice_mut::<__private::Traced<T>>(&args[2], cell),
                    )
                };
                let () = recurrence::<__private::Traced<T>>(core0, core1, core2);
            }
            __private::Ok(())
        };
        unsafe {
            __private::cell_gradient::<
                T,
                T,
            >(&__DEF, &__PROGRAMS, attrs, args, cells, body)
        }
    }
    fn __recurrence_vjp_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::CellKernel> {
        match dtypes {
            [__private::DType::F32] => {
                __private::Some(__recurrence_vjp_cell::<__private::f32>)
            }
            [__private::DType::F64] => {
                __private::Some(__recurrence_vjp_cell::<__private::f64>)
            }
            _ => __private::None,
        }
    }
    static __DEF_VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("recurrence.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("The vector-Jacobian product of `recurrence`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("d_out"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("a"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("b"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::View,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(&[]),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("d_a"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::View,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_b"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::View,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
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
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
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
                    __private::Dims {
                        batch: true,
                        core: __private::Cow::Borrowed(
                            &[__private::Dim::Name(__private::Cow::Borrowed("n"))],
                        ),
                    },
                ],
            ),
            text: __private::Cow::Borrowed(
                "(d_out: [.., n], a: [.., n], b: [.., n]) -> (d_a: [.., n], d_b: [.., n])",
            ),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__DEF_VJP_VJP),
            wrt: __private::Cow::Borrowed(&[0, 1, 2]),
            gradients: __private::Gradients::new(),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("recurrence"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("`hᵢ = aᵢ · hᵢ₋₁ + bᵢ`."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("a"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Slice,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("b"),
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
                    core: __private::Core::Slice,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
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
            text: __private::Cow::Borrowed("(a: [.., n], b: [.., n]) -> [.., n]"),
        }),
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Cell(__private::None),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__DEF_VJP),
            wrt: __private::Cow::Borrowed(&[0, 1]),
            gradients: __private::Gradients::new(),
        }),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl recurrence {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            a: &__private::Tensor,
            b: &__private::Tensor,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(a),
                    <__private::Arg<'_> as __private::From<_>>::from(b),
                ],
                &[],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(recurrence, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Cells(__recurrence_kernel)) }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF_VJP_VJP, kernels :
        __private::Some(__private::Kernels::Cells(__recurrence_vjp_vjp_kernel)) }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF_VJP, kernels :
        __private::Some(__private::Kernels::Cells(__recurrence_vjp_kernel)) }
    }
};
