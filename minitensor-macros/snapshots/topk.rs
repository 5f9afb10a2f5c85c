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
#[derive(Clone, Copy, Debug, Default)]
pub struct topk {}
const _: () = {
    use ::minitensor::__rt as rt;
    unsafe fn topk_cell<T: rt::Real + rt::Machine + ::core::cmp::PartialOrd>(
        attrs: &[rt::Attr],
        args: &[rt::CellArg<'_>],
        cells: usize,
    ) -> rt::Result<()> {
        struct Cell<'a, T> {
            attrs: &'a [rt::Attr],
            args: &'a [rt::CellArg<'a>],
            cells: usize,
            _dtypes: ::core::marker::PhantomData<(T,)>,
        }
        impl<T: rt::Real + rt::Machine + ::core::cmp::PartialOrd> rt::AtLevel
        for Cell<'_, T> {
            type Output = rt::Result<()>;
            const VECTORIZE: bool = false || <T as rt::Machine>::VECTORIZE;
            #[inline(always)]
            fn run(self) -> rt::Result<()> {
                let Cell { attrs: attrs, args, cells, .. } = self;
                for cell in 0..cells {
                    let (x, values, indices) = unsafe {
                        (
                            rt::slice::<T>(&args[0], cell),
                            rt::slice_mut::<T>(&args[1], cell),
                            rt::slice_mut::<i64>(&args[2], cell),
                        )
                    };
                    rt::CellResult::into_result(
                        topk::<T>(x, rt::attr::<usize>(attrs, 0)?, values, indices),
                    )?;
                }
                Ok(())
            }
        }
        rt::at_level(Cell::<T> {
            attrs,
            args,
            cells,
            _dtypes: ::core::marker::PhantomData,
        })
    }
    fn topk_kernel(dtypes: &[rt::DType]) -> Option<rt::CellKernel> {
        match dtypes[0] {
            rt::DType::I8 => Some(topk_cell::<i8>),
            rt::DType::I16 => Some(topk_cell::<i16>),
            rt::DType::I32 => Some(topk_cell::<i32>),
            rt::DType::I64 => Some(topk_cell::<i64>),
            rt::DType::U8 => Some(topk_cell::<u8>),
            rt::DType::U16 => Some(topk_cell::<u16>),
            rt::DType::U32 => Some(topk_cell::<u32>),
            rt::DType::U64 => Some(topk_cell::<u64>),
            rt::DType::F32 => Some(topk_cell::<f32>),
            rt::DType::F64 => Some(topk_cell::<f64>),
            _ => None,
        }
    }
    fn topk_backward(ctx: &rt::BackwardCall<'_>) -> rt::Result<Vec<Option<rt::Tensor>>> {
        static SCATTER: rt::OpName = rt::OpName::new("scatter");
        let d_values = ctx.cotangent(0)?;
        let indices = ctx.output(1)?;
        let n = ctx.dim("n");
        let mut gradients: Vec<Option<rt::Tensor>> = vec![None; 1];
        if ctx.needs(0) {
            gradients[0] = Some(
                SCATTER
                    .call(
                        &[
                            rt::value(&d_values),
                            rt::value(&-1),
                            rt::value(&indices),
                            rt::value(&n),
                        ],
                        &[],
                    )?,
            );
        }
        Ok(gradients)
    }
    static DEF: rt::OpDef = rt::OpDef {
        name: rt::Cow::Borrowed("topk"),
        aliases: rt::Cow::Borrowed(&[]),
        doc: rt::Cow::Borrowed(
            "The `k` largest elements of every row, and where they stood.",
        ),
        inputs: rt::Cow::Borrowed(
            &[
                rt::Input {
                    name: rt::Cow::Borrowed("x"),
                    arity: rt::Arity::One,
                    dtype: rt::DTypeRule::Generic(0),
                    mutated: false,
                    core: rt::Core::Slice,
                },
            ],
        ),
        attrs: rt::Cow::Borrowed(
            &[
                rt::Attribute {
                    name: rt::Cow::Borrowed("k"),
                    kind: rt::AttrKind::Size,
                    optional: false,
                    default: None,
                },
            ],
        ),
        outputs: rt::Cow::Borrowed(
            &[
                rt::Output {
                    name: rt::Cow::Borrowed("values"),
                    dtype: rt::DTypeRule::Generic(0),
                    role: rt::Role::Returned,
                    core: rt::Core::Slice,
                },
                rt::Output {
                    name: rt::Cow::Borrowed("indices"),
                    dtype: rt::DTypeRule::Fixed(rt::DType::I64),
                    role: rt::Role::Returned,
                    core: rt::Core::Slice,
                },
            ],
        ),
        generics: rt::Cow::Borrowed(
            &[
                rt::Generic {
                    name: rt::Cow::Borrowed("T"),
                    dtypes: rt::DTypeSet::REAL,
                },
            ],
        ),
        shape: rt::ShapeRule::Core(rt::CoreShapes {
            inputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Name(rt::Cow::Borrowed("n"))]),
                    },
                ],
            ),
            outputs: rt::Cow::Borrowed(
                &[
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Attr(0)]),
                    },
                    rt::Dims {
                        batch: true,
                        core: rt::Cow::Borrowed(&[rt::Dim::Attr(0)]),
                    },
                ],
            ),
            text: rt::Cow::Borrowed(
                "(x: [.., n]) -> (values: [.., k], indices: [.., k])",
            ),
        }),
        predicates: rt::Cow::Borrowed(
            &[
                rt::Predicate {
                    left: rt::Dim::Attr(0),
                    relation: rt::Relation::LessEqual,
                    right: rt::Dim::Name(rt::Cow::Borrowed("n")),
                    text: rt::Cow::Borrowed("k <= n"),
                },
            ],
        ),
        axis: None,
        body: rt::Body::Cell(rt::CellBody {
            kernels: rt::Kernels::Compiled(topk_kernel),
            program: None,
        }),
        backward: rt::Backward::Formula(rt::Formula {
            run: rt::BackwardBody::Static(topk_backward),
            saved_inputs: rt::Cow::Borrowed(&[]),
            saved_outputs: rt::Cow::Borrowed(&[1]),
            without: rt::Cow::Borrowed(&[]),
        }),
        since: 1,
        location: rt::Location {
            file: rt::Cow::Borrowed(file!()),
            line: line!(),
        },
    };
    impl topk {
        ///Calls the op on tensors.
        #[allow(clippy::too_many_arguments)]
        pub fn call(x: &rt::Tensor, k: usize) -> rt::Result<(rt::Tensor, rt::Tensor)> {
            let outputs = rt::dispatch(
                &rt::OpRef::Static(&DEF),
                &[rt::Arg::from(x)],
                &[rt::Attr::from(k)],
            )?;
            Ok(outputs.tuple2())
        }
        /// The op itself.
        pub fn op() -> rt::OpRef {
            rt::OpRef::Static(&DEF)
        }
    }
    rt::impl_custom_op!(topk, DEF);
    rt::inventory::submit! {
        rt::OpEntry(& DEF)
    }
};
