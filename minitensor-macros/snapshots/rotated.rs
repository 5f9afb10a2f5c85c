/// `z · e^(iφ)`, scaled.
#[inline(always)]
pub fn rotated<T: Float>(z: Complex<T>, phi: T, by: T) -> Complex<T> {
    ::minitensor::__private::multiplied(
        ::minitensor::__private::multiplied(
            ::minitensor::__private::lit::<T>(2.0) * by,
            z,
        ),
        Complex::from_polar(::minitensor::__private::lit::<T>(1.0), phi),
    )
}
/// `z · e^(iφ)`, scaled.
#[inline(always)]
pub fn __rotated_parts<T: Float>(z_real: T, z_imag: T, phi: T, by: T) -> (T, T) {
    let result0 = rotated(
        ::minitensor::__private::Complex::new(z_real, z_imag),
        phi,
        by,
    );
    (result0.re(), result0.im())
}
///The op [`__rotated_parts()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct __rotated_given {}
const _: () = {
    use ::minitensor::__private as __private;
    #[allow(unused_variables, unused_mut)]
    fn __rotated_parts_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        type T = __private::Symbol;
        __private::program(
            &["z_real", "z_imag", "phi"],
            &["by"],
            |inputs, uniforms| {
                let input0 = inputs[0usize];
                let input1 = inputs[1usize];
                let input2 = inputs[2usize];
                let attr0 = uniforms[0usize];
                let (output0, output1) = {
                    __rotated_parts::<T>(input0, input1, input2, attr0)
                };
                __private::vec![
                    __private::named("out0", output0), __private::named("out1", output1)
                ]
            },
        )
    }
    fn __rotated_parts_vjp_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        __private::vjp_program(
            &__rotated_parts_program(attrs)?,
            &[0, 1],
            &[0, 1, 2],
            false,
        )
    }
    static __VJP: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("given::rotated.vjp"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed(
            "The vector-Jacobian product of `given::rotated`.",
        ),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("d_out0"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("d_out1"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("z_real"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("z_imag"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("phi"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("by"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1.0)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("d_z_real"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_z_imag"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("d_phi"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
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
        shape: __private::ShapeRule::Broadcast,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Element(
            __private::Some(__private::ProgramFn::Compiled(__rotated_parts_vjp_program)),
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
        name: __private::Cow::Borrowed("given::rotated"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("`z · e^(iφ)`, scaled."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("z_real"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("z_imag"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("phi"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("by"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1.0)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out0"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("out1"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
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
        shape: __private::ShapeRule::Broadcast,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Element(
            __private::Some(__private::ProgramFn::Compiled(__rotated_parts_program)),
        ),
        backward: __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&__VJP),
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
    impl __rotated_given {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            z_real: &__private::Tensor,
            z_imag: &__private::Tensor,
            phi: &__private::Tensor,
            by: f64,
        ) -> __private::Result<(__private::Tensor, __private::Tensor)> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(z_real),
                    <__private::Arg<'_> as __private::From<_>>::from(z_imag),
                    <__private::Arg<'_> as __private::From<_>>::from(phi),
                ],
                &[<__private::Attr as __private::From<_>>::from(by)],
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
    __private::impl_custom_op!(__rotated_given, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
    __private::inventory::submit! {
        __private::OpEntry { op : & __VJP, kernels : __private::None }
    }
};
/// `z · e^(iφ)`, scaled.
#[allow(clippy::too_many_arguments, clippy::needless_question_mark, non_snake_case)]
pub fn __rotated_op(
    z: &::minitensor::__private::Tensor,
    phi: &::minitensor::__private::Tensor,
    by: f64,
) -> ::minitensor::__private::Result<::minitensor::__private::Tensor> {
    let (__z_real, __z_imag) = ::minitensor::__private::parts(z)?;
    let (__result0, __other0) = __rotated_given::call(&__z_real, &__z_imag, phi, by)?;
    ::core::result::Result::Ok(::minitensor::__private::joined(&__result0, &__other0)?)
}
///The op [`__rotated_op()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct rotated {}
const _: () = {
    use ::minitensor::__private as __private;
    fn __rotated_op_body(
        call: &__private::Call<'_>,
    ) -> __private::Result<__private::Vec<__private::Tensor>> {
        __private::IntoOutputs::into_outputs(
            __rotated_op(
                call.tensor(0),
                call.tensor(1),
                __private::attr::<f64>(call.attrs(), 0)?,
            ),
        )
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("rotated"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("`z · e^(iφ)`, scaled."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("z"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("phi"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(1),
                    mutated: false,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        attrs: __private::Cow::Borrowed(
            &[
                __private::Attribute {
                    name: __private::Cow::Borrowed("by"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(1.0)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("out"),
                    dtype: __private::DTypeRule::Any,
                    role: __private::Role::Returned,
                    core: __private::Core::Scalar,
                },
            ],
        ),
        generics: __private::Cow::Borrowed(
            &[
                __private::Generic {
                    name: __private::Cow::Borrowed("C"),
                    dtypes: __private::DTypeSet::of(
                        &[
                            __private::DType::F32,
                            __private::DType::F64,
                            __private::DType::C64,
                            __private::DType::C128,
                        ],
                    ),
                },
                __private::Generic {
                    name: __private::Cow::Borrowed("T"),
                    dtypes: __private::DTypeSet::of(
                        &[__private::DType::F32, __private::DType::F64],
                    ),
                },
            ],
        ),
        shape: __private::ShapeRule::Inferred,
        predicates: __private::Cow::Borrowed(&[]),
        axis: __private::None,
        combine: __private::None,
        properties: __private::Cow::Borrowed(&[]),
        body: __private::Body::Tensor(__rotated_op_body),
        backward: __private::Backward::Composite,
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl rotated {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            z: &__private::Tensor,
            phi: &__private::Tensor,
            by: f64,
        ) -> __private::Result<__private::Tensor> {
            let outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(z),
                    <__private::Arg<'_> as __private::From<_>>::from(phi),
                ],
                &[<__private::Attr as __private::From<_>>::from(by)],
            )?;
            __private::Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(rotated, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels : __private::None }
    }
};
