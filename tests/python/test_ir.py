"""Graphs of calls as data: the rules that they meet, and their JSON."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from minitensor.ir import IR, Constant, Input, IRError, OpNode, Sym, TensorMeta
from minitensor.ir.symbols import evaluate

import minitensor as mt
from minitensor import ir


def meta(name, *shape, dtype="float32"):
    return TensorMeta(name, shape, dtype)


def example():
    """An IR with everything that one can have."""
    x, w, c = meta("x", "n", 3), meta("w", 3), meta("c", 2, 3)
    y, z, u = meta("y", "n", 3), meta("z", "2 * n", 3), meta("u", 3)
    nodes = [
        OpNode("y", "minitensor.multiply", [x, w], [y]),
        OpNode("z", "minitensor.concat", [y, x], [z], {"tensors": [Input(0), Input(1)], "axis": 0}),
        OpNode(
            "u",
            "example.all::kinds",
            [w],
            [u],
            {
                "a": None,
                "b": True,
                "c": 3,
                "d": 3.0,
                "e": "text\n\u2028",
                "f": [1, [2.5, Sym("n*4")]],
                "g": math.inf,
                "h": 1 + 2j,
                "i": complex(0, -math.inf),
                "j": -0.0,
            },
        ),
    ]
    data = np.arange(6, dtype="<f4").tobytes()
    return IR("example", [x], [w], nodes, [z, u], [Constant(c, data)], {"n": (1, 64)}, {"w": "u"})


def test_json_is_canonical():
    graph = example()
    text = graph.to_json()
    read = IR.from_json(text)
    assert read == graph
    assert read.to_json() == text
    # The order of fields, white space and spelling of sizes do not matter.
    shuffled = json.loads(text)
    shuffled = dict(reversed(shuffled.items()))
    other = json.dumps(shuffled, indent=3).replace('"2 * n"', '"n+n*1"')
    assert IR.from_json(other.replace('"n+n*1"', '"(2*n)"')).to_json() == text


def test_numbers_keep_their_kinds():
    attrs = IR.from_json(example().to_json()).nodes[2].attrs
    assert [type(attrs[name]) for name in "abcdegh"] == [type(None), bool, int, float, str, float, complex]
    assert math.copysign(1, attrs["j"]) == -1


def test_nan_is_an_attribute():
    graph = example()
    graph.nodes[2].attrs = {"a": math.nan}
    assert math.isnan(IR.from_json(graph.to_json()).nodes[2].attrs["a"])


def test_json_meets_its_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(ir.__file__).parent / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(example().to_json()), schema)


def replaced(**fields):
    return json.dumps(json.loads(example().to_json()) | fields)


def node(**fields):
    return {"name": "v", "op_type": "a.b", "inputs": [], "outputs": [], "attrs": {}} | fields


def tensor(name="v", dtype="float32", shape=()):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


HOSTILE = {
    "nothing": ("", "not JSON"),
    "truncated": (example().to_json()[:-40], "not JSON.*truncated"),
    "no object": ("[]", "expected an object"),
    "no IR": ('{"format": "else"}', "not an IR"),
    "another version": (replaced(version=2), "version 2"),
    "a version that is a bool": (replaced(version=True), "version True"),
    "an unknown field": (replaced(more=1), "unknown field 'more'"),
    "a missing field": ('{"format": "minitensor.ir", "version": 1}', "field 'name' is missing"),
    "two fields of one name": ('{"format": "minitensor.ir", "format": "minitensor.ir"}', "two fields 'format'"),
    "deep lists": ("[" * 100_000, "nested more than"),
    "deep objects": ('{"a":' * 100_000, "nested more than"),
    "deep lists after a text with brackets": ('["[\\"", ' + "[" * 50, "nested more than"),
    "deep attributes": (replaced(nodes=[node(attrs={"a": [[[[[[[[[[1]]]]]]]]]]})]), "nested more than"),
    "not a number": (replaced(nodes=[node(attrs={"a": math.nan})]), "NaN is not JSON"),
    "infinity": (replaced(nodes=[node(attrs={"a": -math.inf})]), "-Infinity is not JSON"),
    "a float that is too large": (replaced().replace("3.0", "1e999"), "too large"),
    "an integer of many digits": (replaced().replace("3.0", "9" * 5000), "too long"),
    "an integer of 65 bits": (replaced(nodes=[node(attrs={"a": 2**64})]), "more than 64 bits"),
    "an unknown kind of attribute": (replaced(nodes=[node(attrs={"a": {"code": "x"}})]), "expected null, a number"),
    "an attribute with two kinds": (replaced(nodes=[node(attrs={"a": {"sym": "n", "input": 0}})]), "expected null"),
    "an attribute that is no identifier": (replaced(nodes=[node(attrs={"a b": 1})]), "not an identifier"),
    "a reference to no input": (replaced(nodes=[node(attrs={"a": {"input": 0}})]), "refers to input 0"),
    "a reference that is a bool": (replaced(nodes=[node(attrs={"a": {"input": True}})]), "expected null"),
    "an op that is no name": (replaced(nodes=[node(op_type="a; b")]), "op_type must be a name"),
    "a size that is a bool": (replaced(inputs=[tensor(shape=[True])]), "expected an integer, got True"),
    "a size that is a float": (replaced(inputs=[tensor(shape=[2.0])]), "expected an integer, got 2.0"),
    "a negative size": (replaced(inputs=[tensor(shape=[-1])]), "has the size -1"),
    "a size that calls": (replaced(inputs=[tensor(shape=["__import__('os')"])]), "not an expression"),
    "a size with an attribute": (replaced(inputs=[tensor(shape=["n.__class__"])]), "it contains Attribute"),
    "a size with a large power": (replaced(inputs=[tensor(shape=["9**9**9"])]), "exponents"),
    "a size with many brackets": (replaced(inputs=[tensor(shape=["(" * 400 + "n" + ")" * 400])]), "not an expression"),
    "a long size": (replaced(inputs=[tensor(shape=["n+" * 600 + "n"])]), "1201 characters"),
    "an unknown symbol": (replaced(inputs=[tensor(shape=["m"])]), "unknown symbols: m"),
    "too many elements": (replaced(inputs=[tensor(shape=[2**40, 2**40])]), "too many elements"),
    "too many dimensions": (replaced(inputs=[tensor(shape=[1] * 65)]), "at most 64 dimensions"),
    "an unknown dtype": (replaced(inputs=[tensor(dtype="float31")]), "unknown dtype 'float31'"),
    "a name with a line": (replaced(inputs=[tensor("a\nb")]), "white space"),
    "a name that is empty": (replaced(inputs=[tensor("")]), "1 to 1024 characters"),
    "a name that is too long": (replaced(inputs=[tensor("a" * 1025)]), "1 to 1024 characters"),
    "two tensors of one name": (replaced(inputs=[tensor("w")]), "two tensors have the name 'w'"),
    "two nodes of one name": (replaced(nodes=[node(), node()]), "two nodes have this name"),
    "a dangling reference": (replaced(nodes=[node(inputs=["nowhere"])]), "input 'nowhere' is not"),
    "a dangling output": (replaced(outputs=["nowhere"]), "output 'nowhere' is not"),
    "an update of nothing": (replaced(updates={"v": "u"}), "no such input or weight"),
    "a cycle": (
        replaced(
            nodes=[
                node(name="a", inputs=["b"], outputs=[tensor("a")]),
                node(name="b", inputs=["a"], outputs=[tensor("b")]),
            ]
        ),
        "node 'a': input 'b' is a result of node 'b'.*cycle",
    ),
    "a node that reads itself": (replaced(nodes=[node(inputs=["v"], outputs=[tensor()])]), "cycle"),
    "no base64": (replaced(constants=[tensor(shape=[1]) | {"data": "?"}]), "not base64"),
    "other base64": (replaced(constants=[tensor(dtype="bool", shape=[1]) | {"data": "AR=="}]), "not canonical"),
    "too few bytes": (replaced(constants=[tensor(shape=[2]) | {"data": "AAAAAA=="}]), "expected 8 bytes, got 4"),
    "limits in the wrong order": (replaced(symbols={"n": [5, 4]}), "least and the greatest"),
    "limits that are bools": (replaced(symbols={"n": [True, None]}), r"expected \[least"),
    "a lone surrogate": (replaced(name="a").replace('"a"', '"\\ud800"'), "white space or control|not UTF-8"),
    "no UTF-8": (b"\xff\xfe{}", "not UTF-8"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_an_error(name):
    text, message = HOSTILE[name]
    with pytest.raises(IRError, match=f"(?s){message}"):
        IR.from_json(text)


def test_large_json_is_an_error():
    with pytest.raises(IRError, match="at most 10 are allowed"):
        IR.from_json(example().to_json(), max_bytes=10)


def test_damaged_json_is_an_error_or_another_ir():
    text, generator = example().to_json(), random.Random(0)
    for _ in range(3000):
        at = generator.randrange(len(text))
        damage = generator.choice(["", "[", "}", '"', "0", "-", "x", "\\", ",", "null", "é"])
        damaged = text[:at] + damage + text[at + generator.randrange(4) :]
        try:
            read = IR.from_json(damaged)
        except IRError:
            continue
        assert IR.from_json(read.to_json()) == read


def test_all_defects_are_reported():
    x = meta("x", 2)
    graph = IR("bad", [x, x], [], [OpNode("n", "", [meta("y", 2)], [])], [])
    with pytest.raises(IRError) as error:
        graph.check()
    assert len(str(error.value).splitlines()) == 4


def test_an_attribute_of_another_type_is_an_error():
    graph = example()
    graph.nodes[0].attrs = {"dtype": object()}
    with pytest.raises(IRError, match="node 'y': attribute 'dtype' is a object"):
        graph.to_json()


def test_a_reference_with_another_shape_is_an_error():
    graph = example()
    graph.nodes[0].inputs[0] = meta("x", 4)
    with pytest.raises(IRError, match="differs from its definition x: float32"):
        graph.check()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("n", 7), ("n*2+1", 15), ("(n+1)//2", 4), ("Mod(n, 4)", 3), ("Max(n, 3, 9)", 9), ("min(n, 3)", 3), ("-n + 10", 3)]
    + [("n**2", 49), ("FloorDiv(n, 2)", 3), ("PythonMod(n, 5)", 2)],
)
def test_expressions_have_values(text, expected):
    assert evaluate(Sym(text).text, {"n": 7}) == expected
    assert Sym(Sym(text).text) == Sym(text)


@pytest.mark.parametrize(
    ("text", "symbols", "message"), [("n // m", {"n": 1, "m": 0}, "divides by zero"), ("n", {}, "no value; pass n=")]
)
def test_expressions_without_a_value_are_an_error(text, symbols, message):
    with pytest.raises(IRError, match=message):
        evaluate(text, symbols)


def runnable():
    x, w, y, z = meta("x", "n", 3), meta("w", 3), meta("y", "n", 3), meta("z", "n", 3)
    nodes = [
        OpNode("y", "minitensor.swish", [x], [y]),
        OpNode("z", "minitensor.multiply", [y, w], [z]),
    ]
    return IR("run", [x], [w], nodes, [z], symbols={"n": (1, 4)})


@pytest.mark.parametrize("compiled", [False, True])
def test_a_graph_of_our_ops_runs(compiled):
    graph, x, w = runnable(), mt.randn(2, 3), mt.randn(3)
    (z,) = graph.compile({"w": w})((x,)) if compiled else graph.run((x,), {"w": w})
    assert (z == mt.ops.swish(x) * w).all()
    (z,) = graph.run({"x": x.numpy()}, {"w": w.numpy()})
    assert isinstance(z, np.ndarray)
    assert graph.coverage().share == 1.0


@pytest.mark.parametrize(
    ("inputs", "weights", "message"),
    [
        ((), {"w": mt.ones(3)}, "1 inputs.*got 0"),
        ((mt.ones(2, 3),), {}, r"weight w: float32 \(3,\) is missing"),
        ((mt.ones(2, 3),), {"w": mt.ones(4)}, r"weight w: float32 \(3,\): got float32 \(4,\)"),
        ((mt.ones(2, 3),), {"w": mt.ones(3, dtype="float64")}, "got float64"),
        ((mt.ones(3),), {"w": mt.ones(3)}, r"input x: float32 \(n, 3\): got float32 \(3,\)"),
        ((mt.ones(5, 3),), {"w": mt.ones(3)}, "size 'n' is 5; expected 1 to 4"),
        ({"a": mt.ones(2, 3)}, {"w": mt.ones(3)}, "no input 'a'"),
    ],
)
def test_inputs_and_weights_that_do_not_match_are_an_error(inputs, weights, message):
    with pytest.raises(IRError, match=f"(?s){message}"):
        runnable().run(inputs, weights)


def test_a_result_that_contradicts_the_ir_is_an_error():
    graph = runnable()
    for changed in (graph.nodes[0].outputs, graph.nodes[1].inputs):
        changed[0] = meta("y", "n", 4)
    with pytest.raises(
        IRError, match=r"node 'y' \(minitensor.swish\): the result is float32 \(2, 3\), but the IR has y"
    ):
        graph.run((mt.ones(2, 3),), {"w": mt.ones(3)})


def test_an_attribute_that_an_op_does_not_have_is_an_error():
    graph = runnable()
    graph.nodes[0].attrs = {"beta": 1.0}
    with pytest.raises(IRError, match="node 'y'.*beta"):
        graph.run((mt.ones(2, 3),), {"w": mt.ones(3)})


@pytest.mark.parametrize("name", ["nowhere", "describe", "__class__", "row::nowhere", "Tensor"])
def test_an_op_that_is_not_known_is_an_error(name):
    graph = runnable()
    graph.nodes[0].op_type = f"minitensor.{name}"
    with pytest.raises(IRError, match=f"node 'y'.*minitensor.{name}"):
        graph.run((mt.ones(2, 3),), {"w": mt.ones(3)})


def test_constants_have_their_elements():
    for dtype in ("float32", "float16", "int64", "bool", "complex64", "uint8", "bfloat16"):
        tensor = mt.Tensor([1, 0, 3]).astype(dtype)
        word = tensor.astype("float32").numpy().view(np.uint32) >> 16 if dtype == "bfloat16" else tensor.numpy()
        data = (word.astype(np.uint16) if dtype == "bfloat16" else word).tobytes()
        c = meta("c", 3, dtype=dtype)
        (found,) = IR("constant", [], [], [], [c], [Constant(c, data)]).run(())
        assert found.dtype.name == dtype
        assert (found.astype("complex64") == tensor.astype("complex64")).all()


def test_the_diff_names_what_differs():
    a, b = example(), example()
    assert a.diff(b) == []
    b.nodes[1].attrs["axis"] = 1
    b.nodes[2].attrs["c"] = True
    b.weights[0] = meta("w", 4)
    b.nodes.append(OpNode("new", "a.b", [], []))
    assert a.diff(b) == [
        "~ weight w: float32 (3,) -> w: float32 (4,)",
        "+ node %new = a.b()",
        "~ node z: axis 0 -> 1",
        "~ node u: c 3 -> True",
    ]


def test_the_statistics_are_those_of_the_calls():
    x, w, y, z = meta("x", "n", 4), meta("w", 8, 4), meta("y", "n", 8), meta("z", 8, "n")
    nodes = [
        OpNode("y", "aten.linear.default", [x, w], [y], {"bias": None}),
        OpNode("z", "aten.t.default", [y], [z]),
    ]
    statistics = IR("s", [x], [w], nodes, [z], symbols={"n": (1, None)}).statistics(n=3)
    assert statistics.parameters == 32
    assert statistics.weight_bytes == 128
    assert [call.flops for call in statistics.calls] == [2 * 3 * 4 * 8, 0]
    assert [call.bytes_moved for call in statistics.calls] == [4 * (12 + 32 + 24), 0]
    assert (statistics.flops, statistics.bytes_moved) == (192, 272)
    assert str(statistics).endswith("32 parameters (128 bytes), 192 FLOPs, 272 bytes moved, 2 calls")


def test_the_text_and_the_graph_show_every_call():
    graph = example()
    shown, dot = str(graph), graph.to_dot()
    for call in graph.nodes:
        assert call.op_type in shown
        assert call.op_type in dot
    assert "%z: float32 (2 * n, 3) = minitensor.concat(y, x, axis=0, tensors=[y, x])" in str(
        IR.from_json(graph.to_json())
    )
    assert dot.count("->") == 3 + 2


def test_the_package_needs_neither_numpy_nor_pytorch():
    code = "import sys; from minitensor import ir; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
