/// One SGD step.
#[inline(always)]
pub fn sgd_step<T: Float>(p: &mut T, v: &mut T, g: T, lr: T, momentum: T) {
    *v = *v * momentum + g;
    *p = *p - *v * lr;
}
///The op [`sgd_step()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(
    ::core::clone::Clone,
    ::core::marker::Copy,
    ::core::fmt::Debug,
    ::core::default::Default
)]
pub struct sgd_step {}
const _: () = {
    use ::minitensor::__private as __private;
    #[allow(unused_variables, unused_mut)]
    fn __sgd_step_program(
        attrs: &[__private::Attr],
    ) -> __private::Result<__private::Program> {
        type T = __private::Symbol;
        __private::program(
            &["p", "v", "g"],
            &["lr", "momentum"],
            |inputs, uniforms| {
                let mut input0 = inputs[0usize];
                let mut input1 = inputs[1usize];
                let input2 = inputs[2usize];
                let attr0 = uniforms[0usize];
                let attr1 = uniforms[1usize];
                let (output0, output1) = {
                    sgd_step::<T>(&mut input0, &mut input1, input2, attr0, attr1);
                    (input0, input1)
                };
                __private::vec![
                    __private::named("p", output0), __private::named("v", output1)
                ]
            },
        )
    }
    unsafe fn __sgd_step_loop<T: __private::Float + __private::Machine>(
        attrs: &[__private::Attr],
        n: __private::usize,
        inputs: &[*const __private::u8],
        outputs: &[*mut __private::u8],
    ) -> __private::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __private::Float + __private::Machine> __private::Map for __Loop<T> {
            type In = (T, T, T);
            type Out = (T, T);
            #[inline(always)]
            fn eval(&self, (mut input0, mut input1, input2): Self::In) -> Self::Out {
                sgd_step::<T>(&mut input0, &mut input1, input2, self.attr0, self.attr1);
                (input0, input1)
            }
        }
        let body = __Loop::<T> {
            attr0: __private::uniform::<T>(attrs, 0, "lr")?,
            attr1: __private::uniform::<T>(attrs, 1, "momentum")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __private::map(&body, n, inputs, outputs) };
        __private::Ok(())
    }
    fn __sgd_step_kernel(
        dtypes: &[__private::DType],
    ) -> __private::Option<__private::ElementKernel> {
        match dtypes {
            [__private::DType::F32] => __private::Some(__sgd_step_loop::<__private::f32>),
            [__private::DType::F64] => __private::Some(__sgd_step_loop::<__private::f64>),
            _ => __private::None,
        }
    }
    static __DEF: __private::OpDef = __private::OpDef {
        name: __private::Cow::Borrowed("sgd_step"),
        aliases: __private::Cow::Borrowed(&[]),
        doc: __private::Cow::Borrowed("One SGD step."),
        inputs: __private::Cow::Borrowed(
            &[
                __private::Input {
                    name: __private::Cow::Borrowed("p"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: true,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("v"),
                    arity: __private::Arity::One,
                    dtype: __private::DTypeRule::Generic(0),
                    mutated: true,
                    core: __private::Core::Scalar,
                },
                __private::Input {
                    name: __private::Cow::Borrowed("g"),
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
                    name: __private::Cow::Borrowed("lr"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::None,
                },
                __private::Attribute {
                    name: __private::Cow::Borrowed("momentum"),
                    kind: __private::AttrKind::Float,
                    optional: false,
                    default: __private::Some(__private::Attr::Float(0.9)),
                },
            ],
        ),
        outputs: __private::Cow::Borrowed(
            &[
                __private::Output {
                    name: __private::Cow::Borrowed("p"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Mutates(0),
                    core: __private::Core::Scalar,
                },
                __private::Output {
                    name: __private::Cow::Borrowed("v"),
                    dtype: __private::DTypeRule::Generic(0),
                    role: __private::Role::Mutates(1),
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
            __private::Some(__private::ProgramFn::Compiled(__sgd_step_program)),
        ),
        backward: __private::Backward::None(
            __private::Cow::Borrowed("'sgd_step' changes its arguments in place"),
        ),
        kernels: __private::KernelTable::new(),
        since: 1,
        location: __private::Location {
            file: __private::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl sgd_step {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            p: &__private::Tensor,
            v: &__private::Tensor,
            g: &__private::Tensor,
            lr: f64,
            momentum: f64,
        ) -> __private::Result<()> {
            let _outputs = __private::dispatch(
                &__private::OpRef::Static(&__DEF),
                &[
                    <__private::Arg<'_> as __private::From<_>>::from(p),
                    <__private::Arg<'_> as __private::From<_>>::from(v),
                    <__private::Arg<'_> as __private::From<_>>::from(g),
                ],
                &[
                    <__private::Attr as __private::From<_>>::from(lr),
                    <__private::Attr as __private::From<_>>::from(momentum),
                ],
            )?;
            __private::Ok(())
        }
        /// The op itself.
        pub fn op() -> __private::OpRef {
            __private::OpRef::Static(&__DEF)
        }
    }
    __private::impl_custom_op!(sgd_step, __DEF);
    __private::inventory::submit! {
        __private::OpEntry { op : & __DEF, kernels :
        __private::Some(__private::Kernels::Elements(__sgd_step_kernel)) }
    }
};
