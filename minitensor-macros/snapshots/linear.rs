/// `x @ w + b`
pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
    todo!()
}
///The op [`linear()`] as a value: what everything but the computation itself asks.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
pub struct linear {}
const _: () = {
    use ::minitensor::__rt as rt;
    fn linear_body(call: &rt::Call<'_>) -> rt::Result<Vec<rt::Tensor>> {
        rt::IntoOutputs::into_outputs(
            linear(call.tensor(0), call.tensor(1), call.optional(2)),
        )
    }
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("nn::linear"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed("`x @ w + b`"),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Any,
                    mutated: false,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("w"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Any,
                    mutated: false,
                    core: rt::Core::Scalar,
                },
                rt::Input {
                    name: rt::Cow::Borrowed("b"),
                    arity: rt::Arity::Optional,
                    dtype: rt::DTypeRule::Any,
                    mutated: false,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(&[]),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("out"),
                    dtype: rt::DTypeRule::Any,
                    role: rt::Role::Returned,
                    core: rt::Core::Scalar,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(&[]),
        shape: rt::ShapeRule::Traced,
        predicates: rt::Cow::Borrowed(&[]),
        axis: None,
        body: rt::Body::Tensor(linear_body),
        backward: rt::Backward::Traced,
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl linear {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(
            x: &rt::Tensor,
            w: &rt::Tensor,
            b: Option<&rt::Tensor>,
        ) -> rt::Result<rt::Tensor> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x), rt::Arg::from(w), rt::Arg::from(b)],
                &[],
            )?;
            Ok(outputs.single())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(linear, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
};
