"""Steps of scans: the part of a trace from the parameters of a step to its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._definitions import needed, operands_of, renumbered
from .elements import Element

if TYPE_CHECKING:
    from ._trace import Trace

#: Constants, which a step contains itself.
_CONSTANTS = {"constant", "bits", "epsilon", "truth"}


def scan(trace: Trace, first: Element, others: tuple[object, ...], step: Callable[[Any, Any], Any]) -> Any:
    """The results `h` of a step from the first element on: `h[i] = step(h[i - 1], x[i])`, and `h[0] = x[0]`."""
    if not callable(step):
        raise TypeError(
            f"op '{trace.op}': 'scan' takes a function of the result before and the next element, got "
            f"{type(step).__name__}; write x.scan(lambda before, x: …)"
        )
    rows = [trace.number("scan", trace.value(x)) for x in (first, *others)]
    count = len(rows)
    parameters = [trace.parameter() for _ in range(2 * count)]
    given = [parameters[:count], parameters[count:]]
    returned = step(*(tuple(part) if count > 1 else part[0] for part in given))
    results = returned if isinstance(returned, tuple) else (returned,)
    if len(results) != count or returned is None:
        got = "nothing" if returned is None else f"{len(results)} elements"
        raise TypeError(f"op '{trace.op}': the step of 'scan' must return {count} elements, got {got}")
    nodes = [trace.number("scan", trace.value(x))._node for x in results]
    program, captured = _recorded(trace, [x._node for x in parameters], nodes)
    operands = [*(x._node for x in rows), *captured]
    found = tuple(trace.add("scan", program, k, *operands) for k in range(count))
    return found if count > 1 else found[0]


def _recorded(trace: Trace, parameters: list[int], results: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The program of a step with these parameters and results. Its last inputs are other nodes, returned too."""
    own = set(parameters)
    for at, node in enumerate(trace.nodes):
        if not own.isdisjoint(operands_of(node)):
            own.add(at)
    moved: dict[int, int] = {}
    nodes: list[Any] = []
    captured: list[int] = []
    for at in needed(trace.nodes, results, own):
        node = trace.nodes[at]
        if at in own and trace.is_of_whole_rows(node):
            raise TypeError(
                f"op '{trace.op}': the step of 'scan' computes single elements, but calls '{node[0]}', which is a "
                "function of rows; call it before 'scan', and use its result in the step"
            )
        if at in parameters:
            nodes.append(("input", parameters.index(at)))
        elif at in own:
            nodes.append(renumbered(node, moved))
        elif node[0] in _CONSTANTS:
            nodes.append(node)
        else:
            nodes.append(("input", len(parameters) + len(captured)))
            value = Element(trace, at)
            if value._is_condition:
                # Operands are numbers.
                nodes.append(("truthy", len(nodes) - 1))
                value = trace.add("select", at, *(trace.value(number)._node for number in (1, 0)))
            captured.append(value._node)
        moved[at] = len(nodes) - 1
    states = len(results)
    names = [*(f"h{k}" for k in range(states)), *(f"x{k}" for k in range(states))]
    names += [f"c{k}" for k in range(len(captured))]
    outputs = [(f"h{k}", moved[at]) for k, at in enumerate(results)]
    return {"inputs": names, "uniforms": [], "nodes": nodes, "outputs": outputs}, captured
