"""Pickling of results, dtypes, ops and other values of the package."""

import copy
import os
import pickle
import subprocess
import sys

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


def test_a_fresh_process_finds_the_ops_of_an_installed_plugin(tmp_path):
    (tmp_path / "pickled_plugin.py").write_text(
        "import minitensor as mt\n"
        "from minitensor import plugins\n"
        'info = plugins.PluginInfo("pickled_plugin", plugins.VersionInfo(1, 2, 0))\n'
        "plugin = plugins.CustomPlugin(info)\n"
        "def triple(x):\n"
        "    return x * 3\n"
        "plugin.set_custom_operations_fn(\n"
        '    lambda: [mt.CustomOpBuilder("pickled_plugin::triple", 1).forward(triple).build()]\n'
        ")\n"
    )
    installed = tmp_path / "pickled_plugin-1.2.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pickled_plugin\nVersion: 1.2.0\n")
    (installed / "entry_points.txt").write_text("[minitensor.plugins]\npickled_plugin = pickled_plugin:plugin\n")

    def run(code: str, path: str) -> str:
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        return (done.stdout or done.stderr).strip().splitlines()[-1]

    dump = "import pickle, minitensor as mt; print(pickle.dumps(mt.ops.pickled_plugin.triple, 4).hex())"
    load = f"import pickle; print(pickle.loads(bytes.fromhex('{run(dump, str(tmp_path))}'))(2.0))"
    assert run(load, str(tmp_path)) == "tensor(6.)"
    assert run("import minitensor.ops.pickled_plugin as p; print(p.triple(1.0))", str(tmp_path)) == "tensor(3.)"
    assert "No module named 'minitensor.ops.pickled_plugin'" in run(load, "")
