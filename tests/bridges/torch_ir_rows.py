"""Calls of ATen ops that the samples of PyTorch do not have: the name of the op, and the arguments of each call."""

from __future__ import annotations

import torch

torch.manual_seed(0)


def f(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype)


def i(*shape, low=0, high=9):
    return torch.randint(low, high, shape)


def b(*shape):
    return torch.rand(shape) < 0.5


IMAGE, VOLUME = f(2, 3, 7, 6), f(2, 2, 5, 4, 6)
POSITIVE = [(i(4, low=1), 2), (i(2, 3, low=1), 3)]
SHIFTS = [(i(4), 2), (i(2, 3), 3)]
DIVISIONS = [(f(3, 4), 0.7), (i(5, low=-9), 3), (i(5, low=-9), -2)]
MASKED = [(b(3, 4), True), (i(3, 4), 5)]

#: For each op, the calls: arguments, with those that have names in a dict at the end.
ROWS = {
    "special_softmax": [(f(2, 5), -1), (f(2, 5), 0, {"dtype": torch.float64})],
    "special_log_softmax": [(f(2, 5), -1), (i(2, 5), 1, {"dtype": torch.float32})],
    "dropout": [(f(3, 4), 0.5, False), (f(3, 4), 0.0, True)],
    "feature_dropout": [(f(3, 4), 0.5, False), (f(2, 3, 4), 0.3, False)],
    "alpha_dropout": [(f(3, 4), 0.5, False), (f(2, 3, 4), 0.3, False)],
    "native_dropout": [(f(3, 4), 0.5, False), (f(3, 4), 1.0, True)],
    "fill.Tensor": [(f(3, 4), torch.tensor(2.5)), (i(3), torch.tensor(7))],
    "randperm": [(7,), (1,), (5, {"dtype": torch.int32})],
    **{f"bitwise_{name}.Scalar": MASKED for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Scalar_Tensor": [(5, i(3, 4)), (True, b(4))] for name in ("and", "or", "xor")},
    **{f"bitwise_{side}_shift.Tensor_Scalar": SHIFTS for side in ("left", "right")},
    **{f"bitwise_{side}_shift.Scalar_Tensor": [(64, i(4, high=5)), (3, i(2, 2))] for side in ("left", "right")},
    "__and__.Tensor": [(b(3, 4), b(4)), (i(3, 4), i(4))],
    "__or__.Tensor": [(b(3, 4), b(4)), (i(3, 4), i(4))],
    "div.Scalar_mode": [(*args, {"rounding_mode": mode}) for args in DIVISIONS for mode in ("floor", "trunc", None)],
    "div.Tensor_mode": [
        (i(3, 4, low=-9), torch.tensor([2, -3, 4, 1]), {"rounding_mode": mode}) for mode in ("floor", "trunc", None)
    ],
    "floor_divide.Scalar": DIVISIONS,
    "remainder.Scalar_Tensor": [(7, i(4, low=1)), (-7.5, f(4).abs() + 0.5)],
    "fmod.Scalar": DIVISIONS,
    "pow.Scalar": [(2.0, f(3, 4)), (3, i(4)), (2, f(3))],
    "where.ScalarSelf": [(b(3, 4), 1.5, f(3, 4)), (b(4), 2, i(4))],
    "where.ScalarOther": [(b(3, 4), f(4), -1.0), (b(4), i(4), 7)],
    "where.Scalar": [(b(3, 4), 1.0, 2.0), (b(4), 1, 0)],
    "clamp_max": [(f(3, 4), 0.5), (i(5), 4)],
    "clamp_min": [(f(3, 4), 0.5), (i(5), 4)],
    "xlogy.Scalar_Other": [(f(3, 4), 2.0), (torch.tensor([0.0, 1.0]), 0.0)],
    "contiguous": [(f(3, 4).t(),), (i(3),)],
    "lift_fresh_copy": [(f(3, 4),), (i(3),)],
    "lift_fresh": [(f(3),), (i(3),)],
    "to.dtype_layout": [(f(3, 4), {"dtype": torch.float64}), (f(3, 4), {"dtype": torch.int64})],
    "to.device": [(f(3), torch.device("cpu"), torch.float64), (i(3), torch.device("cpu"), torch.float32)],
    "type_as": [(f(3, 4), i(2)), (i(3), f(1))],
    "copy": [(f(3, 4), f(4)), (f(2, 2), i(2, 2))],
    "swapaxes": [(f(2, 3, 4), 0, 2), (f(2, 3), -1, 0)],
    "swapdims": [(f(2, 3, 4), 0, 2), (f(2, 3), -1, 0)],
    "numpy_T": [(f(2, 3),), (f(4),)],
    "adjoint": [(f(2, 3),), (f(2, 3, 4),)],
    "mT": [(f(2, 3),), (f(2, 3, 4),)],
    "movedim.int": [(f(2, 3, 4), 0, 2), (f(2, 3, 4), -1, 0)],
    "moveaxis.int": [(f(2, 3, 4), 0, 2), (f(2, 3, 4), -1, 0)],
    "movedim.intlist": [(f(2, 3, 4), [0, 1], [2, 0]), (f(2, 3, 4), [-1], [0])],
    "moveaxis.intlist": [(f(2, 3, 4), [0, 1], [2, 0]), (f(2, 3, 4), [-1], [0])],
    "broadcast_tensors": [([f(3, 1), f(4)],), ([f(2), f(1, 2), f(3, 1, 1)],)],
    "squeeze_copy.dims": [(f(2, 1, 3, 1), [1, 3]), (f(1, 3), [0, 1])],
    "select_copy.int": [(f(2, 3), 1, 2), (f(2, 3), 0, -1)],
    "slice_copy.Tensor": [(f(5, 3), 0, 1, 4), (f(5, 3), -1, -2), (f(9), 0, 1, 8, 3)],
    "split_copy.Tensor": [(f(5, 3), 2), (f(5, 3), 2, 1)],
    "concat": [([f(2, 3), f(1, 3)],), ([f(2, 3), i(2, 2)], 1)],
    "concatenate": [([f(2, 3), f(1, 3)],), ([f(2, 3), i(2, 2)], 1)],
    "meshgrid": [([f(3), f(2)],), ([i(2), i(3), i(2)],)],
    "meshgrid.indexing": [([f(3), f(2)], {"indexing": "xy"}), ([f(3), f(2)], {"indexing": "ij"})],
    "native_channel_shuffle": [(f(2, 6, 4, 3), 3), (f(1, 4, 2, 2), 2)],
    "channel_shuffle": [(f(2, 6, 4, 3), 3), (f(1, 4, 2, 2), 2)],
    "imag": [(f(3, dtype=torch.complex64),), (f(2, 3, dtype=torch.complex128),)],
    "real": [(f(3, dtype=torch.complex64),), (f(2, 3, dtype=torch.complex128),)],
    "view_as_real": [(f(3, dtype=torch.complex64),), (f(2, 3, dtype=torch.complex128),)],
    "view_as_complex": [(f(3, 2),), (f(2, 3, 2, dtype=torch.float64),)],
    "complex": [(f(3), f(3)), (f(2, 3, dtype=torch.float64), f(2, 3, dtype=torch.float64))],
    "conj": [(f(3, dtype=torch.complex64),), (f(2, 3),)],
    "_unsafe_index.Tensor": [(f(5, 4), [i(3, high=5), None]), (f(5, 4), [None, i(2, 2, high=4)])],
    "_unsafe_index_put": [(f(5, 4), [i(3, high=5)], f(3, 4)), (f(5, 4), [i(6, high=5)], f(6, 4), True)],
    "_convolution": [
        (IMAGE, f(4, 3, 3, 2), f(4), [2, 1], [1, 0], [1, 2], False, [0, 0], 1, False, False, True, True),
        (IMAGE, f(3, 4, 3, 2), None, [2, 1], [1, 0], [1, 1], True, [1, 0], 1, False, False, True, True),
    ],
    **{f"max_pool{n}d": [(x, 2), (x, [3] * n, 1, 1, 1, True)] for n, x in ((1, f(2, 3, 9)), (2, IMAGE), (3, VOLUME))},
    "max_pool1d_with_indices": [(f(2, 3, 9), 2), (f(2, 3, 9), 3, 2, 1)],
    **{f"adaptive_max_pool{n}d": [(x, [2] * n), (x, [3] * n)] for n, x in ((1, f(2, 3, 9)), (2, IMAGE), (3, VOLUME))},
    "col2im": [
        (f(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]),
        (f(1, 8, 9), [6, 6], [2, 2], [1, 1], [0, 0], [2, 2]),
    ],
    "convolution_backward": [
        (f(2, 4, 5, 5), f(2, 3, 7, 7), f(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3),
        (f(2, 4, 3), f(2, 2, 7), f(4, 2, 3), [4], [2], [0], [1], False, [0], 1, [False, True, True]),
    ],
    "avg_pool2d_backward": [
        (f(2, 3, 3, 3), IMAGE, [2, 2], [2, 2], [0, 0], False, True, None),
        (f(2, 3, 4, 3), IMAGE, [2, 2], [2, 2], [1, 0], False, False, None),
    ],
    "_adaptive_avg_pool2d_backward": [(f(2, 3, 3, 2), IMAGE), (f(2, 3, 1, 1), IMAGE)],
    "_adaptive_avg_pool3d_backward": [(f(2, 2, 3, 2, 2), VOLUME), (f(2, 2, 1, 1, 1), VOLUME)],
    "embedding_dense_backward": [(f(5, 4), i(5, high=6), 6, -1, False), (f(2, 3, 4), i(2, 3, high=6), 6, 2, False)],
    "native_layer_norm_backward": [
        (f(4, 6), x := f(4, 6), [6], x.mean(-1, True), 1 / x.std(-1, keepdim=True), f(6), f(6), [True, True, True]),
        (f(4, 6), x, [6], x.mean(-1, True), 1 / x.std(-1, keepdim=True), None, None, [True, False, False]),
    ],
    "native_group_norm_backward": [
        (f(2, 4, 5), f(2, 4, 5), f(2, 2), f(2, 2).abs(), f(4), 2, 4, 5, 2, [True, True, True]),
        (f(2, 4, 3, 2), f(2, 4, 3, 2), f(2, 1), f(2, 1).abs(), f(4), 2, 4, 6, 1, [True, False, True]),
    ],
    "_native_batch_norm_legit_no_training": [
        (IMAGE, f(3), f(3), f(3), f(3).abs(), 0.1, 1e-5),
        (f(4, 3), None, None, f(3), f(3).abs(), 0.1, 1e-3),
    ],
    "_native_batch_norm_legit_functional": [
        (IMAGE, f(3), f(3), f(3), f(3).abs(), True, 0.1, 1e-5),
        (f(4, 3), f(3), f(3), f(3), f(3).abs(), True, 0.3, 1e-3),
    ],
    "_native_batch_norm_legit.no_stats": [(IMAGE, f(3), f(3), True, 0.1, 1e-5), (f(4, 3), f(3), f(3), True, 0.1, 1e-3)],
    "batch_norm": [
        (IMAGE, f(3), f(3), f(3), f(3).abs(), False, 0.1, 1e-5, True),
        (f(4, 3), None, None, f(3), f(3).abs(), False, 0.1, 1e-3, True),
    ],
    "instance_norm": [
        (IMAGE, f(3), f(3), None, None, True, 0.1, 1e-5, True),
        (f(2, 3, 5), None, None, None, None, True, 0.1, 1e-3, True),
    ],
    "rms_norm": [(f(4, 6), [6], f(6)), (f(4, 2, 3), [2, 3], f(2, 3), 1e-3)],
    "group_norm": [(f(2, 4, 5), 2, f(4), f(4)), (f(2, 4, 3, 3), 1)],
    "layer_norm": [(f(4, 6), [6], f(6), f(6)), (f(4, 2, 3), [2, 3], f(2, 3)), (f(2, 6), [6])],
    "ger": [(f(3), f(4)), (f(2), f(2))],
    "outer": [(f(3), f(4)), (i(2), i(2))],
    "einsum": [
        ("bij,bjk->bik", [f(2, 3, 4), f(2, 4, 5)]),
        ("ij,kj", [f(3, 4), f(5, 4)]),
        ("ii->i", [f(4, 4)]),
        ("bhqd,bkhd,k->bhqk", [f(2, 3, 4, 5), f(2, 6, 3, 5), f(6)]),
        ("i,i->", [f(4), f(4)]),
    ],
    "norm.ScalarOpt_dim_dtype": [(f(3, 4), 2, [1], False, {"dtype": torch.float64})],
    "linalg_vector_norm": [(f(3, 4), p, [1]) for p in (0, 1, 2, 3, float("inf"), -float("inf"))],
    **{
        f"upsample_{mode}.vec": [(x, None, *align, [s] * n), (x, [5] * n, *align, None)]
        for mode, x, n, align, s in (
            ("nearest1d", f(2, 3, 8), 1, (), 1.7),
            ("nearest2d", IMAGE, 2, (), 2.0),
            ("nearest3d", VOLUME, 3, (), 0.6),
            ("linear1d", f(2, 3, 8), 1, (False,), 1.7),
            ("bilinear2d", IMAGE, 2, (True,), 2.0),
            ("trilinear3d", VOLUME, 3, (False,), 1.5),
            ("bicubic2d", IMAGE, 2, (False,), 1.5),
        )
    },
    **{
        f"_upsample_nearest_exact{n}d.vec": [(x, None, [1.7] * n), (x, [5] * n, None)]
        for n, x in ((1, f(2, 3, 8)), (2, IMAGE), (3, VOLUME))
    },
    **{
        f"_upsample_{mode}2d_aa{overload}": [(IMAGE, [4, 3], False, *more), (IMAGE, [9, 8], True, *more)]
        for mode in ("bilinear", "bicubic")
        for overload, more in ((".vec", (None,)), ("", ()))
    },
    "grid_sampler": [
        (IMAGE, torch.rand(2, 4, 5, 2) * 2.4 - 1.2, mode, padding, align)
        for mode in (0, 1, 2)
        for padding in (0, 1, 2)
        for align in (True, False)
    ],
    "grid_sampler_3d": [
        (torch.randn(2, 2, 3, 4, 5), torch.rand(2, 2, 3, 4, 3) * 2.4 - 1.2, mode, padding, True)
        for mode in (0, 1)
        for padding in (0, 1, 2)
    ],
    "scaled_dot_product_attention": [
        (f(2, 3, 4, 8), f(2, 3, 5, 8), f(2, 3, 5, 6)),
        (f(2, 3, 4, 8), f(2, 3, 4, 8), f(2, 3, 4, 8), None, 0.0, True),
        (f(2, 3, 4, 8), f(2, 3, 5, 8), f(2, 3, 5, 8), torch.tensor([[True] * 3 + [False] * 2] * 4)),
        (f(2, 3, 4, 8), f(2, 3, 5, 8), f(2, 3, 5, 8), f(4, 5), 0.0, False, {"scale": 0.3}),
        (f(2, 4, 4, 8), f(2, 2, 5, 8), f(2, 2, 5, 8), {"enable_gqa": True}),
    ],
    "diff": [(f(3, 5),), (i(6), 2), (b(4),), (f(3, 5), 1, -1, f(3, 2), f(3, 1))],
    "copysign.Scalar": [(f(3, 4), -1.0), (i(3), 2.0)],
    "copysign.Tensor": [(f(3, 4), f(4)), (i(3), f(3))],
    "linear": [(f(2, 3, 4), f(5, 4), f(5)), (f(4), f(5, 4)), (f(3, 4), f(4))],
    "arange": [(5,), (5.5,), (3, {"dtype": torch.float64})],
    "empty_permuted": [([2, 3], [1, 0])],
    "as_strided": [(f(12), [3, 2], [4, 1], 1), (f(3, 4), [2, 2], [4, 2])],
    "prelu": [(f(2, 3, 4), f(3)), (f(4), f(1))],
}
