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
    use ::minitensor::__rt as __rt;
    #[allow(unused_variables, unused_mut)]
    fn __sgd_step_program(attrs: &[__rt::Attr]) -> __rt::Result<__rt::Program> {
        type T = __rt::Symbol;
        __rt::Ok(
            __rt::Program::write(
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
                    __rt::vec![__rt::named("p", output0), __rt::named("v", output1)]
                },
            ),
        )
    }
    unsafe fn __sgd_step_loop<T: __rt::Float + __rt::Machine>(
        attrs: &[__rt::Attr],
        n: __rt::usize,
        inputs: &[*const __rt::u8],
        outputs: &[*mut __rt::u8],
    ) -> __rt::Result<()> {
        struct __Loop<T> {
            attr0: T,
            attr1: T,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: __rt::Float + __rt::Machine> __rt::Map for __Loop<T> {
            type In = (T, T, T);
            type Out = (T, T);
            #[inline(always)]
            fn eval(&self, (mut input0, mut input1, input2): Self::In) -> Self::Out {
                sgd_step::<T>(&mut input0, &mut input1, input2, self.attr0, self.attr1);
                (input0, input1)
            }
        }
        let body = __Loop::<T> {
            attr0: __rt::uniform::<T>(attrs, 0, "lr")?,
            attr1: __rt::uniform::<T>(attrs, 1, "momentum")?,
            _dtypes: ::core::marker::PhantomData,
        };
        unsafe { __rt::map(&body, n, inputs, outputs) };
        __rt::Ok(())
    }
    fn __sgd_step_kernel(dtypes: &[__rt::DType]) -> __rt::Option<__rt::ElementKernel> {
        match dtypes[0] {
            __rt::DType::F32 => __rt::Some(__sgd_step_loop::<__rt::f32>),
            __rt::DType::F64 => __rt::Some(__sgd_step_loop::<__rt::f64>),
            _ => __rt::None,
        }
    }
    static __DEF: __rt::OpDef = __rt::OpDef {
        name: __rt::Cow::Borrowed("sgd_step"),
        aliases: __rt::Cow::Borrowed(&[]),
        doc: __rt::Cow::Borrowed("One SGD step."),
        inputs: __rt::Cow::Borrowed(
            &[
                __rt::Input {
                    name: __rt::Cow::Borrowed("p"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("v"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: true,
                    core: __rt::Core::Scalar,
                },
                __rt::Input {
                    name: __rt::Cow::Borrowed("g"),
                    arity: __rt::Arity::One,
                    dtype: __rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        attrs: __rt::Cow::Borrowed(
            &[
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("lr"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::None,
                },
                __rt::Attribute {
                    name: __rt::Cow::Borrowed("momentum"),
                    kind: __rt::AttrKind::Float,
                    optional: false,
                    default: __rt::Some(__rt::Attr::Float(0.9)),
                },
            ],
        ),
        outputs: __rt::Cow::Borrowed(
            &[
                __rt::Output {
                    name: __rt::Cow::Borrowed("p"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Mutates(0),
                    core: __rt::Core::Scalar,
                },
                __rt::Output {
                    name: __rt::Cow::Borrowed("v"),
                    dtype: __rt::DTypeRule::Generic(0),
                    role: __rt::Role::Mutates(1),
                    core: __rt::Core::Scalar,
                },
            ],
        ),
        generics: __rt::Cow::Borrowed(
            &[
                __rt::Generic {
                    name: __rt::Cow::Borrowed("T"),
                    dtypes: __rt::DTypeSet::FLOAT,
                },
            ],
        ),
        shape: __rt::ShapeRule::Broadcast,
        predicates: __rt::Cow::Borrowed(&[]),
        axis: __rt::None,
        body: __rt::Body::Element(
            __rt::Some(__rt::ProgramFn::Compiled(__sgd_step_program)),
        ),
        backward: __rt::Backward::None(
            __rt::Cow::Borrowed("'sgd_step' changes its arguments in place"),
        ),
        kernels: __rt::KernelTable::new(),
        since: 1,
        location: __rt::Location {
            file: __rt::Cow::Borrowed(::core::file!()),
            line: ::core::line!(),
        },
    };
    impl sgd_step {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            p: &__rt::Tensor,
            v: &__rt::Tensor,
            g: &__rt::Tensor,
            lr: f64,
            momentum: f64,
        ) -> __rt::Result<()> {
            let _outputs = __rt::dispatch(
                &__rt::OpRef::Static(&__DEF),
                &[
                    <__rt::Arg<'_> as __rt::From<_>>::from(p),
                    <__rt::Arg<'_> as __rt::From<_>>::from(v),
                    <__rt::Arg<'_> as __rt::From<_>>::from(g),
                ],
                &[
                    <__rt::Attr as __rt::From<_>>::from(lr),
                    <__rt::Attr as __rt::From<_>>::from(momentum),
                ],
            )?;
            __rt::Ok(())
        }
        /// The op itself.
        pub fn op() -> __rt::OpRef {
            __rt::OpRef::Static(&__DEF)
        }
    }
    __rt::impl_custom_op!(sgd_step, __DEF);
    __rt::inventory::submit! {
        __rt::OpEntry(& __DEF)
    }
    __rt::inventory::submit! {
        __rt::KernelEntry { op : "sgd_step", device : "cpu", kernels : ||
        __rt::Kernels::Elements(__sgd_step_kernel) }
    }
};
