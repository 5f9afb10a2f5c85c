"""Messages that name the argument and the op that a user called, and advice that works."""

import numpy as np
import pytest

import minitensor as mt

TOO_LARGE = {
    "eye: k is 9223372036854775808, which does not fit into int64": lambda: mt.eye(2, k=2**63),
    "eye: n_rows is 18446744073709551616, which does not": lambda: mt.eye(2**64),
    "linspace: num is 9223372036854775808, which": lambda: mt.linspace(0, 1, 2**63),
    "randint: high is 9223372036854775808, which": lambda: mt.randint(0, 2**63, (2,)),
    "randint: low is -9223372036854775809, which": lambda: mt.randint(-(2**63) - 1, 0, (2,)),
    "set_num_threads: n is 9223372036854775808, which": lambda: mt.set_num_threads(2**63),
    "18446744073709551615 does not fit into int64": lambda: mt.ops.roll(mt.ones(2), np.uint64(2**64 - 1)),
}


@pytest.mark.parametrize(("words", "call"), TOO_LARGE.items(), ids=TOO_LARGE)
def test_a_number_that_exceeds_int64_is_named(words, call):
    with pytest.raises(ValueError, match=words):
        call()


def test_advice_about_dtypes_works():
    c = mt.Tensor([1j])
    with pytest.raises(TypeError, match=r"got complex64; take its parts first, with real\(x\) and imag\(x\)"):
        mt.ops.floor(c)
    assert mt.ops.floor(mt.ops.real(c)).tolist() == [0.0] and mt.ops.floor(mt.ops.imag(c)).tolist() == [1.0]
    with pytest.raises(TypeError, match=r"got float32; round it, and convert it with astype\('int64'\)"):
        mt.ops.embedding(mt.ones(2, 2), mt.ones(1))
    with pytest.raises(TypeError, match=r"got float32; compare it first, as in x != 0"):
        mt.ops.where(mt.ones(1), 1.0, 2.0)
    x = mt.ones(1, dtype="int32")
    with pytest.raises(TypeError, match=r"convert it with astype\('float32'\) first, or use the op that returns a new"):
        x += 1.5
    with pytest.raises(ValueError, match=r"\(0\+1j\) does not fit into float32; use a complex dtype"):
        mt.full(1, 1j, dtype="float32")


def test_a_tuple_instead_of_a_tensor_raises_and_shows_the_signature():
    with pytest.raises(TypeError, match=r"'weight' must be a tensor, got tuple; the signature is layer_norm\(x, w"):
        mt.ops.layer_norm(mt.ones(2, 4), (4,))


#: Calls that fail in an op called by the op. The message names the outer op.
PARTS = {
    "op 'index': index 5 is out of range for axis 0": lambda x: x[mt.Tensor([5])],
    "op 'matmul' takes": lambda x: x @ x,
    "op 'sum': axis .* contains an axis twice": lambda x: mt.ops.sum(x, axis=(0, 0)),
    "op 'cross_entropy': 'target' contains position 7": lambda x: mt.ops.cross_entropy(x, mt.Tensor([7, 7])),
}


@pytest.mark.parametrize(("words", "call"), PARTS.items(), ids=PARTS)
def test_an_error_names_the_outer_op(words, call):
    with pytest.raises((ValueError, IndexError), match=words) as raised:
        call(mt.ones(2, 3))
    assert "::" not in str(raised.value)
