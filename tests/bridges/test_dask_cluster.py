"""Ops on Dask arrays that several processes compute."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from minitensor.arrays.block import BlockFunction  # noqa: E402

import minitensor as mt  # noqa: E402


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def test_several_processes_compute_the_blocks(client, rng):
    a = rng.normal(size=(8, 16)).astype("f4")
    x = da.from_array(a, chunks=(1, 16))
    weight = rng.normal(size=16).astype("f4")
    np.testing.assert_allclose(
        mt.map_blocks("layer_norm", x, weight).compute(), mt.ops.layer_norm(a, weight), rtol=1e-6
    )
    values, indices = mt.map_blocks("sort", x)
    np.testing.assert_array_equal(values.compute(), np.sort(a))
    np.testing.assert_array_equal(indices.compute(), np.argsort(a))
    assert client.submit(mt.as_ufunc("add").reduce, a, 0).result(60).shape == (16,)
    assert isinstance(client.submit(mt.ops.exp, a).result(60), np.ndarray)


def test_a_worker_without_the_op_raises_what_to_do(client, registered):
    mt.CustomOpBuilder("cluster_test::local", 1).forward(lambda x: x * 2).build().register()
    local = BlockFunction("cluster_test::local", None, {})
    assert local(np.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(
        RuntimeError, match="op 'cluster_test::local' is not registered in the process .* import the module"
    ):
        client.submit(local, np.ones(2)).result(60)


def load(data: bytes, prepare: str = "") -> str:
    """Unpickles a function in another process, and returns the last line of its output."""
    code = f"import pickle, minitensor as mt\n{prepare}\nprint(pickle.loads({data!r})(2.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


def plugin(version: str) -> str:
    return f"""
from minitensor import plugins
info = plugins.PluginInfo("cluster_plugin", plugins.VersionInfo({version}))
plugin = plugins.CustomPlugin(info)
plugin.set_custom_operations_fn(lambda: [mt.CustomOpBuilder("cluster_plugin::triple", 1).forward(lambda x: x *
3).build()])
plugins.load_plugin(plugin)
"""


@pytest.mark.usefixtures("no_plugins_stay")
def test_an_op_of_a_plugin_is_pickled_with_its_plugin_and_version():
    exec(plugin("1, 2, 0"), {"mt": mt})
    data = pickle.dumps(BlockFunction("cluster_plugin::triple", None, {}))
    assert pickle.loads(data)(np.ones(2)).tolist() == [3.0, 3.0]
    assert load(data, plugin("1, 3, 0")) == "tensor(6.)"
    assert "install the plugin 'cluster_plugin' 1.2.0 for this process" in load(data)
    for other in ("1, 1, 0", "2, 0, 0"):
        message = load(data, plugin(other))
        assert "was pickled with the plugin 'cluster_plugin' 1.2.0, but this process has the plugin" in message
    own = 'mt.CustomOpBuilder("cluster_plugin::triple", 1).forward(lambda x: x).build().register()'
    assert "but this process has minitensor" in load(data, own)
