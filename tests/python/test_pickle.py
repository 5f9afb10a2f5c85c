"""Pickling of results, dtypes, ops and other values of the package."""

import copy
import pickle

import pytest

import minitensor as mt

RESULTS = [lambda: mt.ops.sort(mt.Tensor([3.0, 1.0])), lambda: mt.ops.topk(mt.Tensor([3.0, 1.0]), 1)]


@pytest.mark.parametrize("make", RESULTS, ids=["sort", "topk"])
def test_results_of_several_tensors_are_pickled(make):
    result = make()
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert again._fields == result._fields
        assert [t.tolist() for t in again] == [t.tolist() for t in result]


def test_results_are_pickled_by_the_name_of_their_op(registered):
    @mt.custom_op(name="pickled::halves", outputs=["low", "high"])
    def halves(x):
        return x[:1], x[1:]

    data = pickle.dumps(mt.ops.pickled.halves(mt.Tensor([1.0, 2.0])))
    assert pickle.loads(data).high.tolist() == [2.0]
    mt.unregister_custom_op_py("pickled::halves")
    with pytest.raises(ValueError, match="pickled::halves"):
        pickle.loads(data)


VERSION = mt.plugins.VersionInfo(1, 2, 3)
PICKLED = [mt.float32, mt.ops.exp, VERSION, mt.plugins.PluginInfo("p", VERSION)]


@pytest.mark.parametrize("given", PICKLED, ids=map(str, PICKLED))
def test_values_of_the_package_are_pickled(given):
    assert pickle.loads(pickle.dumps(given)) == given
