"""The cases of convolution and pooling that `test_reference` compares with loops and with PyTorch."""

import numpy as np
import windows


def rows(functional):
    """A case: its name, inputs, NumPy function, function of PyTorch's module `functional`, and attributes."""

    def one(name, inputs, numpy, **attrs):
        yield name, inputs, numpy, None, attrs

    def window(name, numpy, *shapes, torch=True, rank=None, **attrs):
        """Returns a case of an op with the same name and arguments as in PyTorch."""
        given = attrs if rank is None else dict(attrs, rank=rank)
        theirs = (lambda *tensors: getattr(functional, name)(*tensors, **attrs)) if torch else None
        yield name, [("real", shape) for shape in shapes], lambda *a: numpy(*a, **given), theirs, attrs

    yield from convolutions(window, one)
    yield from pools(window)
    yield from parts(one)


def convolutions(window, one):
    conv, back = windows.conv, windows.conv_transpose
    yield from window("conv1d", conv, (2, 3, 5), (4, 3, 2), (4,), stride=[2], padding=[1])
    yield from window("conv1d", conv, (3, 40), (8, 3, 5), padding=[4], dilation=[2])
    yield from window("conv1d", conv, (2, 1, 33), (1, 1, 9), (1,), stride=[3])
    yield from window("conv1d", conv, (2, 2, 3, 9), (4, 3, 2), torch=False)
    yield from window("conv2d", conv, (1, 2, 4, 3), (2, 1, 2, 2), (2,), groups=2)
    yield from window("conv2d", conv, (0, 4, 5, 5), (6, 4, 3, 3), (6,))
    yield from window("conv2d", conv, (2, 0, 5, 5), (6, 0, 3, 3), (6,), torch=False)
    yield from window("conv2d", conv, (2, 8, 6, 7), (5, 8, 1, 1), (5,))
    yield from window("conv2d", conv, (3, 6, 9, 8), (6, 1, 3, 3), (6,), groups=6, padding=[1])
    yield from window("conv2d", conv, (3, 6, 9, 8), (12, 1, 3, 3), groups=6, stride=[2], padding=[1])
    for stride, padding, dilation, groups in [(1, 1, 1, 1), (2, 0, 1, 2), (3, 2, 2, 1), ([2, 1], [0, 2], [1, 3], 2)]:
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        yield from window("conv2d", conv, (2, 8, 11, 9), (10, 8 // groups, 3, 2), (10,), **attrs)
        attrs["output_padding"] = 0 if stride == 1 else [1, 0]
        yield from window("conv_transpose2d", back, (2, 8, 5, 4), (8, 5, 3, 2), (5 * groups,), **attrs)
    yield from window("conv2d", conv, (3, 16, 40, 40), (20, 16, 3, 3), (20,), padding=[1])
    yield from window("conv2d", conv, (3, 16, 41, 39), (20, 16, 3, 3), stride=[2])
    yield from window("conv3d", conv, (1, 2, 3, 2, 3), (2, 2, 2, 2, 1), (2,), padding=[1, 0, 0])
    yield from window("conv3d", conv, (2, 4, 5, 6, 7), (6, 2, 2, 3, 3), stride=[1, 2, 2], padding=[0, 1, 2], groups=2)
    yield from window("conv_transpose1d", back, (2, 3, 4), (3, 2, 2), (2,), stride=[2])
    yield from window("conv_transpose1d", back, (3, 20), (3, 2, 5), stride=[3], padding=[2], output_padding=[2])
    yield from window("conv_transpose2d", back, (1, 2, 3, 2), (2, 1, 2, 2), (2,), groups=2)
    yield from window("conv_transpose2d", back, (0, 2, 3, 2), (2, 1, 2, 2), torch=False)
    yield from window("conv_transpose2d", back, (2, 6, 5, 7), (6, 1, 4, 4), groups=6, stride=[2], padding=[1])
    yield from window("conv_transpose3d", back, (1, 2, 2, 2, 1), (2, 1, 2, 1, 2), (1,))
    yield from window("conv_transpose3d", back, (2, 4, 3, 2, 4), (4, 5, 2, 3, 3), stride=[1, 2, 2], padding=[0, 1, 1])
    steps = {"stride": [1, 2, 3], "padding": [0, 1, 2], "dilation": [1, 2, 1], "groups": 2}
    x, weight, y = ("real", (2, 4, 42)), ("real", (6, 2, 6)), ("real", (2, 6, 9))
    attrs = {"windows": described((1, 7, 6), (1, 3, 3), (1, 3, 2), steps), "groups": 2}

    def forward(x, weight):
        return conv(x.reshape(2, 4, 1, 7, 6), weight.reshape(6, 2, 1, 3, 2), **steps).reshape(2, 6, 9)

    def back_to(y, weight):
        y, weight = y.reshape(2, 6, 1, 3, 3), weight.reshape(6, 2, 1, 3, 2)
        return back(y, weight, output_padding=[0, 0, 2], **steps).reshape(2, 4, 42)

    def to_weight(x, y):
        x, y = x.reshape(2, 4, 1, 7, 6), y.reshape(2, 6, 1, 3, 3)
        return windows.conv_weight(x, y, (1, 3, 2), **steps).reshape(6, 2, 6)

    yield from one("convolution::forward", [x, weight], forward, count=9, **attrs)
    yield from one("convolution::input", [y, weight], back_to, volume=42, **attrs)
    yield from one("convolution::weight", [x, y], to_weight, taps=6, **attrs)


def described(sizes, counts, kernel, steps):
    """Returns the attribute `windows`: six numbers for each axis."""
    lists = (sizes, counts, kernel, steps["stride"], steps["dilation"], steps["padding"])
    return [int(number) for axis in zip(*lists, strict=True) for number in axis]


def pools(window):
    for rank in (1, 2, 3):
        for case in [
            {},
            {"stride": 1, "padding": 1},
            {"ceil_mode": True},
            {"stride": 3, "padding": 1, "ceil_mode": True},
        ]:
            shape = [(2, 3, 5), (2, 2, 5, 4), (2, 1, 5, 4, 7)][rank - 1]
            attrs = {"kernel_size": 2, **case}
            yield from window(f"max_pool{rank}d", windows.max_pool, shape, rank=rank, **attrs)
            yield from window(f"avg_pool{rank}d", windows.avg_pool, shape, rank=rank, **attrs)
            attrs["count_include_pad"] = False
            yield from window(f"avg_pool{rank}d", windows.avg_pool, shape, rank=rank, **attrs)
            yield from window(
                f"max_pool{rank}d", windows.max_pool, shape, rank=rank, **{"dilation": 2, **case, "kernel_size": 2}
            )
        for size in (1, 3, 8):
            yield from window(
                f"adaptive_avg_pool{rank}d", windows.adaptive_avg_pool, shape, rank=rank, output_size=size
            )
    yield from window("max_pool2d", windows.max_pool, (0, 3, 8, 8), rank=2, kernel_size=[3, 2])
    yield from window("avg_pool2d", windows.avg_pool, (3, 70, 45), rank=2, kernel_size=[3, 2], stride=[2, 1])
    yield from window("adaptive_avg_pool2d", windows.adaptive_avg_pool, (2, 3, 50, 7), rank=2, output_size=[2, 7])
    yield from window("unfold", windows.unfold, (1, 2, 3, 4), kernel_size=[2, 2], padding=[1, 0])
    yield from window(
        "unfold", windows.unfold, (2, 3, 9, 8), kernel_size=[2, 3], padding=[1, 2], dilation=[2, 1], stride=[1, 3]
    )
    yield from window("fold", windows.fold, (1, 8, 6), output_size=[3, 4], kernel_size=[2, 2])
    yield from window(
        "fold", windows.fold, (2, 18, 15), output_size=[9, 8], kernel_size=[2, 3], padding=[1, 0], stride=[2, 2]
    )


def parts(one):
    """Returns the cases of the ops that pooling and unfold call."""
    steps = {"stride": [1, 1, 2], "padding": [0, 1, 1], "dilation": [1, 1, 2]}
    attrs = {"taps": 4, "windows": described((1, 5, 5), (1, 6, 3), (1, 2, 2), steps)}

    def planes(x, f, **attrs):
        given = {name: list[1:] for name, list in steps.items()}
        return f(x.reshape(*x.shape[:-1], 5, 5), kernel_size=(2, 2), **given, **attrs)

    largest = lambda x: planes(x, windows.max_pool, rank=2).reshape(2, 18)  # noqa: E731
    yield from one("window::max", [("real", (2, 25))], largest, count=18, **attrs)
    yield from one("window::unfold", [("real", (2, 1, 25))], lambda x: planes(x, windows.unfold), count=18, **attrs)

    def folded(x):
        return windows.fold(x, (5, 5), (2, 2), (1, 2), (1, 1), (1, 2)).reshape(1, 25)

    yield from one("window::fold", [("real", (4, 18))], folded, volume=25, **attrs)
    means = {"bounds": [0, 3, 2, 5], "counts": [3, 4]}
    rows = lambda x: np.stack([x[:, :3].sum(1) / 3, x[:, 2:].sum(1) / 4], 1)  # noqa: E731
    yield from one("window::mean", [("real", (2, 5, 3))], rows, size=2, **means)
    yield from one("window::spread", [("real", (2, 2, 3))], lambda y: windows.spread(y, 5, **means), n=5, **means)
