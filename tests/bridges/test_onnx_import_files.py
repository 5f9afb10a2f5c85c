"""Files that `mt.onnx.load` must refuse, and those with tensors in other files."""

from __future__ import annotations

import random
import re

import numpy as np
import onnx
import pytest
from minitensor.onnx import OnnxError
from onnx import TensorProto, external_data_helper, helper, numpy_helper, parser

import minitensor as mt

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
f (float[2, 3] x) => (float[2, 4] y) <float[3, 4] w> {
    t = MatMul (x, w)
    y = Relu (t)
}
"""


def model_of(text=TEXT):
    model = parser.parse_model(text)
    del model.graph.initializer[:]
    weight = np.arange(12, dtype="float32").reshape(3, 4)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def refused(source, *messages):
    """Returns the error of loading, which must have these parts."""
    with pytest.raises(OnnxError) as caught:
        mt.onnx.load(source)
    for message in messages:
        assert message in str(caught.value), str(caught.value)


def test_a_model_is_read_from_a_path_from_bytes_and_from_a_message(tmp_path):
    model = model_of()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    x = mt.ones(2, 3)
    results = [mt.onnx.load(source)(x).tolist() for source in (path, str(path), path.read_bytes(), model)]
    assert results == [[[12.0, 15.0, 18.0, 21.0]] * 2] * 4


def test_what_is_no_path_and_no_model_is_a_type_error():
    with pytest.raises(TypeError, match="takes a path, bytes or a ModelProto, got int"):
        mt.onnx.load(3)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file '.*absent.onnx'"):
        mt.onnx.load(tmp_path / "absent.onnx")
    refused(tmp_path, "is not a file; pass the path of the .onnx file")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04 and more", "a ZIP archive, such as a checkpoint of PyTorch"),
        (b'{"a": 1}', "JSON text"),
        (b"<!DOCTYPE html>", "download the model again"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"\x1f\x8b\x08", "unpack it"),
        (b"", "it has no graph"),
        (b"\xff" * 100, "is not an ONNX model, or it is truncated"),
    ],
)
def test_files_of_other_formats_are_named(data, message):
    refused(data, message)


def test_a_truncated_file_is_refused_at_every_length():
    data = model_of().SerializeToString()
    loaded = 0
    for size in range(len(data)):
        try:
            mt.onnx.load(data[:size])
            loaded += 1
        except OnnxError:
            pass
    # The last field may be left out: it is the opset import, without which the model is not valid.
    assert loaded == 0


def test_a_file_with_changed_bytes_is_refused_or_loaded():
    data = model_of().SerializeToString()
    rng = random.Random(0)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            model = mt.onnx.load(bytes(changed))
            model(mt.ones(2, 3))
        except OnnxError:
            pass


def test_a_model_that_breaks_the_rules_is_refused():
    model = model_of()
    model.graph.node[0].op_type = "Relu"
    refused(model, "the model is not valid ONNX", "Relu")
    model = model_of()
    model.graph.node[0].input[0] = "nowhere"
    refused(model, "the model is not valid ONNX", "nowhere")
    model = model_of()
    del model.graph.initializer[:]
    refused(model, "w")


def test_all_unknown_operators_are_listed():
    model = model_of()
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    model.graph.node[0].domain, model.graph.node[0].op_type = "com.example", "Fancy"
    model.graph.node[0].name = "first"
    model.graph.node[1].domain, model.graph.node[1].op_type = "com.example", "Fancier"
    refused(
        model,
        "the model cannot be loaded:\n  - node 'first' (com.example.Fancy): domain 'com.example' has no such operator",
        "\n  - node with the outputs 'y' (com.example.Fancier)",
        "export the model to standard operators",
    )


def test_an_operator_that_is_too_old_says_how_to_convert_the_model():
    model = parser.parse_model(
        '<ir_version: 4, opset_import: ["" : 6]> f (float[2] x, float[2] z) => (float[2] y) {y = Add (x, z)}'
    )
    refused(model, "(Add): opset 6 is older", "onnx.version_converter.convert_version(model, 13)")


def test_an_opset_of_the_future_says_to_update_onnx():
    model = model_of()
    model.opset_import[0].version = 999
    refused(model, "the model uses opset 999", "pip install -U onnx")


@pytest.mark.parametrize(
    ("dims", "size", "message"),
    [
        ([3, 4], 47, "has 47 bytes, but its shape (3, 4) and type FLOAT need 48; the file is damaged"),
        ([2**40, 2**20], 48, "the file is damaged"),
        ([2**62, 2**62], 48, "the file is damaged"),
        ([-3, 4], 48, "negative"),
    ],
)
def test_a_tensor_whose_shape_does_not_fit_its_elements_is_refused(dims, size, message):
    model = model_of()
    # Large, so that it is not left to the checker of the package.
    tensor = model.graph.initializer[0]
    tensor.raw_data = b"\0" * size
    del tensor.dims[:]
    tensor.dims.extend(dims)
    refused(model, "w")
    with pytest.raises(OnnxError, match=re.escape(message)):
        from minitensor.onnx.loading.elements import array_of

        array_of(tensor, None)


def test_a_constant_whose_shape_does_not_fit_its_elements_is_refused():
    value = helper.make_tensor("v", TensorProto.FLOAT, [2], [1.0, 2.0])
    value.dims[0] = 2**50
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], value=value)],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    refused(helper.make_model(graph, ir_version=8), "")


def sparse_model(dims, indices):
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    places = helper.make_tensor("w_indices", TensorProto.INT64, np.shape(indices), np.ravel(indices).tolist())
    model = model_of()
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
    return model


def test_sparse_weights_become_dense():
    expected = np.zeros((3, 4), dtype="float32")
    expected[0, 1], expected[2, 3] = 1, 2
    for indices in ([1, 11], [[0, 1], [2, 3]]):
        model = mt.onnx.load(sparse_model([3, 4], indices))
        np.testing.assert_array_equal(model.w.detach().numpy(), expected)


def test_sparse_weights_that_are_too_large_are_refused():
    refused(sparse_model([2**30, 2**30], [1, 11]), "sparse tensor 'w'", "not supported")


def nested(depth):
    """Returns a model with branches in branches."""
    info = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
    node = helper.make_node("Identity", ["x"], ["y0"])
    for k in range(depth):
        out = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, [1])]
        graph = helper.make_graph([node], f"g{k}", [], out)
        node = helper.make_node("If", ["c"], [f"y{k + 1}"], then_branch=graph, else_branch=graph)
    node.output[0] = "y"
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    return helper.make_model(helper.make_graph([node], "g", inputs, info), ir_version=8)


def test_subgraphs_that_are_nested_too_deeply_are_refused():
    # Each branch is written twice, so the depth is limited by the size of the message.
    x = mt.ones(1)
    assert mt.onnx.load(nested(5))(x, mt.Tensor(True)).item() == 1
    node = helper.make_node("Identity", ["x"], ["y"])
    for _ in range(28):
        out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
        empty = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "e", [], out)
        graph = helper.make_graph([node], "g", [], out)
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=empty)
    inputs = nested(1).graph.input
    model = helper.make_model(helper.make_graph([node], "g", inputs, out), ir_version=8)
    refused(model, "nested deeper than 24")
    refused(model.SerializeToString(), "")


def test_functions_that_call_themselves_are_refused():
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        f (float[2] x) => (float[2] y) {y = local.first (x)}
        <domain: "local", opset_import: ["local" : 1]> first (x) => (y) {y = local.second (x)}
        <domain: "local", opset_import: ["local" : 1]> second (x) => (y) {y = local.first (x)}
    """)
    refused(model, "recursive")


def test_functions_that_call_each_other_twice_do_not_grow_without_limit():
    # 2 ** 15 calls are prepared as 16 graphs.
    x = mt.ones(2)
    assert mt.onnx.load(calling_twice(15))(x, mt.Tensor(True)).tolist() == [1.0, 1.0]
    assert mt.onnx.load(calling_twice(15, "<alpha: float = @alpha>"))(x, mt.Tensor(False)).tolist() == [1.0, 1.0]


def test_a_model_whose_functions_run_too_many_nodes_is_refused():
    for attribute in ("", "<alpha: float = @alpha>"):
        words = (
            "a run of the model has 33554434 nodes, because its functions call functions; expected at most 1000000; "
        )
        refused(calling_twice(25, attribute), words + "call each function once")


def calling_twice(depth, attribute=""):
    """Returns a model with a function that calls another one twice, and so on, in a branch."""
    declared = "<alpha>" if attribute else ""
    given = "<alpha = 0.5>" if attribute else ""
    functions = "".join(
        f'<domain: "local", opset_import: ["local" : 1]> f{k} {declared} (x) => (y) {{\n'
        f"    t = local.f{k + 1} {attribute} (x) y = local.f{k + 1} {attribute} (t)\n}}\n"
        for k in range(depth)
    )
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        f (float[2] x, bool c) => (float[2] y) {{
            y = If (c) <
                then_branch = a () => (float[2] p) {{p = local.f0 {given} (x)}},
                else_branch = b () => (float[2] q) {{q = Identity (x)}}
            >
        }}
        {functions}
        <domain: "local", opset_import: ["" : 18]> f{depth} {declared} (x) => (y) {{y = Neg (x)}}
    """)


def external(tmp_path, location="weights.bin", **more):
    """Writes a model with its weight in another file, and returns its path."""
    model = model_of()
    tensor = model.graph.initializer[0]
    data = tensor.raw_data
    external_data_helper.set_external_data(tensor, location=location, **more)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    path = tmp_path / "models" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(model.SerializeToString())
    return path, data


def test_weights_in_another_file_are_read(tmp_path):
    path, data = external(tmp_path, offset=5, length=48)
    (path.parent / "weights.bin").write_bytes(b"12345" + data + b"rest")
    assert mt.onnx.load(path)(mt.ones(2, 3)).tolist() == [[12.0, 15.0, 18.0, 21.0]] * 2
    refused(path.read_bytes(), "tensor 'w' is in the file 'weights.bin'; load the model from its path")


def test_missing_and_short_files_of_weights_are_named(tmp_path):
    path, data = external(tmp_path)
    refused(path, "tensor 'w': there is no file 'weights.bin' next to the model; copy it there")
    (path.parent / "weights.bin").write_bytes(data[:-1])
    refused(path, "tensor 'w'", "weights.bin", "copy the whole file")


@pytest.mark.parametrize("location", ["../secret", "../models/../secret", "/etc/passwd", "", ".", "sub/../../secret"])
def test_weights_outside_of_the_folder_are_not_read(tmp_path, location):
    (tmp_path / "secret").write_bytes(b"\0" * 48)
    path, _ = external(tmp_path, location)
    (path.parent / "sub").mkdir()
    refused(path, "which is not in the folder of the model")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"\0" * 48)
    path, _ = external(tmp_path)
    (path.parent / "weights.bin").symlink_to(tmp_path / "secret")
    refused(path, "which is not in the folder of the model")


@pytest.mark.parametrize("fields", [{"offset": -1}, {"offset": 2**62, "length": 48}, {"length": 2**40}])
def test_places_out_of_the_file_of_weights_are_refused(tmp_path, fields):
    path, data = external(tmp_path, **fields)
    (path.parent / "weights.bin").write_bytes(data)
    refused(path, "tensor 'w'")


def test_an_error_of_a_run_names_the_node():
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        f (float[n] x, int64[k] shape) => (float y) {
            [shaping] t = Reshape (x, shape)
            y = ReduceSum <keepdims = 0> (t)
        }
    """)
    loaded = mt.onnx.load(model)
    assert loaded(mt.ones(6), mt.Tensor([2, 3])).item() == 6
    with pytest.raises(OnnxError, match=r"node 'shaping' \(Reshape\): .*6"):
        loaded(mt.ones(6), mt.Tensor([4, 2]))
    with pytest.raises(OnnxError, match=r"node 'shaping' \(Reshape\).*reads the elements of a tensor"):
        mt.jit(loaded)(mt.ones(6), mt.Tensor([2, 3]))


def test_too_large_results_are_a_memory_error_that_names_the_node():
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        f (int64[k] shape) => (float[n, m] y) {[huge] y = ConstantOfShape (shape)}
    """)
    with pytest.raises(MemoryError, match=r"node 'huge' \(ConstantOfShape\)"):
        mt.onnx.load(model)(mt.Tensor([2**30, 2**30]))
