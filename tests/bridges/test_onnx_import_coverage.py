"""Each operator of ONNX since opset 13 has a rule, or a function that defines it."""

from __future__ import annotations

import pytest
from minitensor.onnx.loading import rule
from onnx import defs

FIRST, LAST = 13, defs.onnx_opset_version()
NOT_SUPPORTED = {"ImageDecoder"}
#: Attributes without an effect on results.
IGNORED = {"seed", "chunk_size", "locale"}


def operators(opset):
    """Returns the schemas of an opset that are not deprecated."""
    found = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= opset:
            known = found.get(schema.name)
            if known is None or known.since_version < schema.since_version:
                found[schema.name] = schema
    return {name: schema for name, schema in found.items() if not schema.deprecated}


@pytest.mark.parametrize("opset", range(FIRST, LAST + 1))
def test_each_operator_has_a_rule_or_a_function(opset):
    missing = {
        name
        for name, schema in operators(opset).items()
        if rule.find("", name, opset) is None and not schema.has_function and not schema.has_context_dependent_function
    }
    assert missing <= NOT_SUPPORTED


@pytest.mark.parametrize("opset", range(FIRST, LAST + 1))
def test_each_rule_takes_the_inputs_and_attributes_of_its_operator(opset):
    for name, schema in operators(opset).items():
        found = rule.find("", name, opset)
        if found is None:
            continue
        unknown = schema.attributes.keys() - found.attributes.keys() - IGNORED
        assert not unknown, f"{name}-{schema.since_version}: {unknown}"
        is_variadic = any(i.option == defs.OpSchema.FormalParameterOption.Variadic for i in schema.inputs)
        assert is_variadic == (found.rest is not None), name
        assert len(schema.inputs) <= len(found.inputs) + is_variadic, name
        for parameter, (_, _, is_required) in zip(schema.inputs, found.inputs, strict=False):
            if parameter.option == defs.OpSchema.FormalParameterOption.Optional:
                assert not is_required, f"{name}: {parameter.name}"


@pytest.mark.parametrize("opset", [FIRST, LAST])
def test_each_default_of_a_rule_is_that_of_its_operator(opset):
    from onnx import helper

    for name, schema in operators(opset).items():
        found = rule.find("", name, opset)
        for attribute in schema.attributes.values() if found else ():
            default = attribute.default_value
            if not default.type or attribute.name in IGNORED:
                continue
            expected = helper.get_attribute_value(default)
            expected = expected.decode() if isinstance(expected, bytes) else expected
            given = found.attributes[attribute.name]
            if isinstance(expected, float):
                assert given == pytest.approx(expected, rel=1e-6), f"{name}: {attribute.name}"
            elif isinstance(expected, list):
                assert [item.decode() if isinstance(item, bytes) else item for item in expected] == list(
                    given or ["Tanh", "Tanh"]
                ), f"{name}: {attribute.name}"
            else:
                assert given == expected, f"{name}: {attribute.name}"
