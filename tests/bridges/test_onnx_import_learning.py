"""Operators of `ai.onnx.ml` against ONNX Runtime, with random models."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import minitensor as mt

ort = pytest.importorskip("onnxruntime")

DOMAIN = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def model_of(op, inputs, attributes, outputs=("y",), types=None, version=3):
    given = {f"x{k}": np.asarray(value) for k, value in enumerate(inputs)}
    infos = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if value.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(value.dtype),
            [None] * value.ndim,
        )
        for name, value in given.items()
    ]
    node = helper.make_node(op, list(given), list(outputs), domain=DOMAIN, **attributes)
    types = types or [TensorProto.FLOAT] * len(outputs)
    results = [helper.make_tensor_value_info(n, t, None) for n, t in zip(outputs, types, strict=True)]
    for info in results:
        info.type.tensor_type.shape.SetInParent()
    graph = helper.make_graph([node], "sample", infos, results)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), given


def expect_same(op, inputs, attributes, **options):
    """Both compute the same; returns the results."""
    model, given = model_of(op, inputs, attributes, **options)
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, given)
    for info, value in zip(model.graph.output, wanted, strict=True):
        shape = helper.make_tensor_type_proto(TensorProto.FLOAT, value.shape).tensor_type.shape
        info.type.tensor_type.shape.CopyFrom(shape)
    results = mt.onnx.load(model)(**given)
    results = results if isinstance(results, tuple) else (results,)
    for found, expected in zip(results, wanted, strict=True):
        found = np.asarray(found)
        assert found.shape == expected.shape
        if expected.dtype.kind in "OU":
            assert found.tolist() == expected.tolist()
        else:
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    return wanted


def forest(rng, trees, features, depth, modes=MODES[:1]):
    """Random trees: the attributes of the nodes, and the leaves as pairs of a tree and a node."""
    found = {
        name: [] for name in ("treeids", "nodeids", "truenodeids", "falsenodeids", "featureids", "modes", "values")
    }
    leaves = []
    for tree in range(trees):
        # The numbers of nodes are in no order.
        numbers = iter([0, *(1 + rng.permutation(2 ** (depth + 1))).tolist()])

        def grow(number, level, tree=tree, numbers=numbers):
            is_leaf = level == depth or (level and rng.random() < 0.2)
            children = (0, 0) if is_leaf else (next(numbers), next(numbers))
            row = (tree, number, *children, 0 if is_leaf else int(rng.integers(features)))
            row += ("LEAF" if is_leaf else modes[rng.integers(len(modes))], float(np.round(rng.standard_normal(), 1)))
            for name, value in zip(found, row, strict=True):
                found[name].append(value)
            if is_leaf:
                leaves.append((tree, number))
            else:
                for child in children:
                    grow(child, level + 1)

        grow(next(numbers), 0)
    return {f"nodes_{name}": values for name, values in found.items()}, leaves


def rows(rng, count, features):
    """Numbers of which some equal thresholds, and some are NaN."""
    x = np.round(rng.standard_normal((count, features)), 1).astype("float32")
    x[rng.random(x.shape) < 0.05] = np.nan
    return x


def weighted(rng, kind, leaves, ids, low=-1.0):
    """Weights of the leaves for each of the targets."""
    every = [(tree, node, k) for tree, node in leaves for k in ids]
    trees, nodes, targets = (list(column) for column in zip(*every, strict=True))
    weights = rng.uniform(low, 1.0, len(every)).astype("float32").tolist()
    names = ("treeids", "nodeids", "ids", "weights")
    return {f"{kind}_{name}": values for name, values in zip(names, (trees, nodes, targets, weights), strict=True)}


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressors_of_trees(how, targets):
    rng = np.random.default_rng(targets)
    for modes in (MODES[:1], MODES):
        nodes, leaves = forest(rng, 5, 4, 4, modes)
        nodes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(nodes["nodes_modes"])).tolist()
        weights = weighted(rng, "target", leaves, range(targets))
        base = {"base_values": [0.5, -0.25, 1.5][:targets]}
        attributes = nodes | weights | base | {"n_targets": targets, "aggregate_function": how}
        expect_same("TreeEnsembleRegressor", [rows(rng, 40, 4)], attributes)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", ["integers", "strings"])
def test_classifiers_of_trees(transform, labels):
    rng = np.random.default_rng(0)
    names = {"classlabels_int64s": [4, 7, 9]} if labels == "integers" else {"classlabels_strings": ["a", "b", "c"]}
    types = [TensorProto.INT64 if labels == "integers" else TensorProto.STRING, TensorProto.FLOAT]
    nodes, leaves = forest(rng, 6, 4, 3, MODES)
    attributes = nodes | weighted(rng, "class", leaves, range(3)) | names | {"post_transform": transform}
    for base in ({}, {"base_values": [0.5, -0.5, 0.25]}):
        expect_same("TreeEnsembleClassifier", [rows(rng, 40, 4)], attributes | base, outputs=("y", "z"), types=types)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("ids", [[0], [1]])
def test_classifiers_of_trees_with_two_classes(transform, low, ids):
    rng = np.random.default_rng(1)
    nodes, leaves = forest(rng, 3, 3, 3)
    weights = weighted(rng, "class", leaves, ids, low)
    weights["class_weights"] = [w / 3 for w in weights["class_weights"]]
    attributes = nodes | weights | {"classlabels_int64s": [10, 20], "post_transform": transform}
    types = [TensorProto.INT64, TensorProto.FLOAT]
    expect_same("TreeEnsembleClassifier", [rows(rng, 40, 3)], attributes, outputs=("y", "z"), types=types)


def test_trees_of_float64_and_integers():
    rng = np.random.default_rng(2)
    nodes, leaves = forest(rng, 3, 3, 3)
    attributes = nodes | weighted(rng, "target", leaves, [0]) | {"n_targets": 1}
    expect_same("TreeEnsembleRegressor", [rows(rng, 20, 3).astype("float64")], attributes)
    # ONNX Runtime takes no integers here.
    whole = rng.integers(-2, 3, (20, 3))
    expected = expect_same("TreeEnsembleRegressor", [whole.astype("float32")], attributes)[0]
    model, given = model_of("TreeEnsembleRegressor", [whole], attributes)

    np.testing.assert_allclose(np.asarray(mt.onnx.load(model)(**given)), expected, rtol=1e-5)


def test_trees_are_part_of_a_graph():
    rng = np.random.default_rng(3)
    nodes, leaves = forest(rng, 3, 3, 3)
    attributes = nodes | weighted(rng, "target", leaves, [0, 1]) | {"n_targets": 2}
    x = rows(rng, 20, 3)
    model, given = model_of("TreeEnsembleRegressor", [x], attributes)
    model.graph.output[0].type.tensor_type.shape.dim.add()
    model.graph.output[0].type.tensor_type.shape.dim.add()
    loaded = mt.onnx.load(model)
    recorded = mt.jit(lambda x: loaded(x))
    assert recorded(mt.Tensor(x)).tolist() == loaded(**given).tolist()
    assert recorded(mt.Tensor(x[::-1].copy())).tolist() == loaded(x[::-1].copy()).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": [0, 0, 0]}, "a node of a tree follows two nodes, or the tree has a cycle"),
        ({"nodes_truenodeids": [7, 0, 0]}, "the tree 0 has no node 7"),
        ({"nodes_modes": ["BRANCH_NE", "LEAF", "LEAF"]}, "the mode 'BRANCH_NE' is unknown; expected BRANCH_LEQ"),
        ({"target_nodeids": [1, 9]}, "the tree 0 has no node 9"),
        ({"target_ids": [0, 3]}, "a weight is of the leaf or target 3; expected at most 0"),
    ],
)
def test_trees_that_are_no_trees_are_errors(change, message):
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.5, 0.0, 0.0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    model, given = model_of("TreeEnsembleRegressor", [np.ones((2, 1), "float32")], attributes | change)
    with pytest.raises(mt.onnx.OnnxError, match=message):
        mt.onnx.load(model)(**given)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [1, 3])
def test_linear_classifiers(classes, transform):
    rng = np.random.default_rng(classes)
    x = rng.standard_normal((30, 4)).astype("float32")
    coefficients = rng.standard_normal(4 * classes).astype("float32").tolist()
    labels = [3, 5, 8] if classes == 3 else [3, 5]
    attributes = {"coefficients": coefficients, "post_transform": transform}
    attributes["intercepts"] = rng.standard_normal(classes).astype("float32").tolist()
    for names, kind in (
        ({"classlabels_ints": labels}, TensorProto.INT64),
        ({"classlabels_strings": [str(k) for k in labels]}, TensorProto.STRING),
    ):
        expect_same("LinearClassifier", [x], attributes | names, outputs=("y", "z"), types=[kind, TensorProto.FLOAT])


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_regressors(transform):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 4)).astype("float32")
    attributes = {"coefficients": rng.standard_normal(8).astype("float32").tolist(), "targets": 2}
    attributes |= {"intercepts": [0.5, -1.0], "post_transform": transform}
    expect_same("LinearRegressor", [x], attributes)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressors_of_support_vectors(kernel, one_class):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 3)).astype("float32")
    attributes = {
        "coefficients": rng.standard_normal(5).astype("float32").tolist(),
        "support_vectors": rng.standard_normal(15).astype("float32").tolist(),
        "kernel_params": [0.5, 0.25, 2.0],
        "kernel_type": kernel,
        "n_supports": 5,
        "one_class": one_class,
        "rho": [0.3],
    }
    expect_same("SVMRegressor", [x], attributes)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("has_probabilities", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_classifiers_of_support_vectors(classes, has_probabilities, transform, kernel):
    rng = np.random.default_rng(classes)
    x = rng.standard_normal((20, 3)).astype("float32")
    counts, pairs = [3, 2, 4, 2][:classes], classes * (classes - 1) // 2
    attributes = {
        "coefficients": rng.standard_normal((classes - 1) * sum(counts)).astype("float32").tolist(),
        "support_vectors": rng.standard_normal(3 * sum(counts)).astype("float32").tolist(),
        "vectors_per_class": counts,
        "kernel_params": [0.5, 0.0, 3.0],
        "kernel_type": kernel,
        "post_transform": transform,
        "rho": rng.standard_normal(pairs).astype("float32").tolist(),
    }
    if has_probabilities:
        attributes["prob_a"] = rng.uniform(-2.0, -0.5, pairs).astype("float32").tolist()
        attributes["prob_b"] = rng.uniform(-0.5, 0.5, pairs).astype("float32").tolist()
    for names, kind in (
        ({"classlabels_ints": [3, 5, 8, 9][:classes]}, TensorProto.INT64),
        ({"classlabels_strings": list("abcd")[:classes]}, TensorProto.STRING),
    ):
        expect_same("SVMClassifier", [x], attributes | names, outputs=("y", "z"), types=[kind, TensorProto.FLOAT])


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifiers_of_support_vectors(classes):
    rng = np.random.default_rng(0)
    attributes = {
        "coefficients": rng.standard_normal(3 * classes).astype("float32").tolist(),
        "classlabels_ints": [3, 5, 8][:classes],
        "kernel_params": [0.0, 0.0, 0.0],
        "rho": [0.25],
    }
    x = rng.standard_normal((20, 3)).astype("float32")
    types = [TensorProto.INT64, TensorProto.FLOAT]
    expect_same("SVMClassifier", [x], attributes, outputs=("y", "z"), types=types)


def test_a_linear_regressor_of_support_vectors():
    x = np.random.default_rng(0).standard_normal((20, 3)).astype("float32")
    expect_same("SVMRegressor", [x], {"coefficients": [0.5, -1.0, 2.0], "kernel_params": [0.0] * 3, "rho": [0.25]})


def test_features():
    x = np.array([[1.0, np.nan, 3.0], [np.nan, 0.0, -1.0]], "float32")
    expect_same("Imputer", [x], {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")})
    expect_same("Imputer", [x], {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": 0.0})
    whole = np.array([[1, 2], [2, 3]], "int64")
    expect_same(
        "Imputer", [whole], {"imputed_value_int64s": [5, 6], "replaced_value_int64": 2}, types=[TensorProto.INT64]
    )
    expect_same("FeatureVectorizer", [x[:, :2], x], {"inputdimensions": [2, 3]})
    expect_same("FeatureVectorizer", [x, x], {"inputdimensions": [2, 5]})
    expect_same("Binarizer", [np.nan_to_num(x)], {"threshold": 0.5})
    expect_same("Scaler", [x], {"offset": [0.5], "scale": [2.0]})
    expect_same("Scaler", [x], {"offset": [0.5, 1.0, 2.0], "scale": [2.0, 3.0, 4.0]})
    for norm in ("MAX", "L1", "L2"):
        expect_same(
            "Normalizer", [np.array([[1.0, -2.0, 4.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]], "float32")], {"norm": norm}
        )


def test_labels():
    texts = np.array([["a", "c"], ["b", "x"]], dtype=object)
    numbers = np.array([[1, 3], [2, 9]], "int64")
    categories = {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"]}
    expect_same("CategoryMapper", [texts], categories | {"default_int64": -5}, types=[TensorProto.INT64])
    expect_same("CategoryMapper", [numbers], categories | {"default_string": "?"}, types=[TensorProto.STRING])
    expect_same("LabelEncoder", [texts], {"classes_strings": ["a", "b", "c"]}, types=[TensorProto.INT64], version=1)
    expect_same("LabelEncoder", [numbers], {"classes_strings": ["a", "b", "c"]}, types=[TensorProto.STRING], version=1)
    keyed = {"keys_strings": ["a", "b"], "values_floats": [0.5, 1.5], "default_float": -1.0}
    expect_same("LabelEncoder", [texts], keyed, version=2)
    expect_same("OneHotEncoder", [texts], {"cats_strings": ["a", "b", "c"]})
    expect_same("OneHotEncoder", [numbers], {"cats_int64s": [3, 1, 2]})
    expect_same("OneHotEncoder", [numbers.astype("float32")], {"cats_int64s": [3, 1, 2]})
    model, given = model_of("OneHotEncoder", [texts], {"cats_strings": ["a", "b", "c"], "zeros": 0})
    with pytest.raises(mt.onnx.OnnxError, match="an element is no category, which zeros=0 forbids"):
        mt.onnx.load(model)(**given)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [4, 7]}, {"classlabels_strings": ["a", "b"]}])
def test_probabilities_by_label(labels):
    x = np.array([[0.25, 0.75], [0.5, 0.5]], "float32")
    model, given = model_of("ZipMap", [x], labels)
    key = TensorProto.INT64 if "classlabels_int64s" in labels else TensorProto.STRING
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_map_type_proto(key, value)))
    [expected] = ort.InferenceSession(model.SerializeToString()).run(None, given)
    assert mt.onnx.load(model)(**given) == expected
