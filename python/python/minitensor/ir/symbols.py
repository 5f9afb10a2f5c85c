"""Sizes that are known only when an IR runs: expressions of symbols, such as `s0 * 4`."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .error import IRError

__all__ = ["Size", "Sym", "bind", "canonical", "evaluate", "names"]

#: A size: a number, or the text of an expression.
Size = int | str

#: The most characters of an expression.
LONGEST = 1000
#: The largest size, and the largest number in an expression.
LARGEST = 2**63 - 1

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"max": max, "min": min}
#: Spellings of SymPy and PyTorch: functions, and operators as functions.
_SPELLINGS = {"Max": "max", "Min": "min"}
_OPERATOR_SPELLINGS: dict[str, type[ast.operator]] = {
    "FloorDiv": ast.FloorDiv,
    "CleanDiv": ast.FloorDiv,
    "Mod": ast.Mod,
    "PythonMod": ast.Mod,
}


@dataclass(frozen=True)
class Sym:
    """An attribute of a call that is an expression of symbols: `Sym("s0 * 4")`.

    >>> from minitensor import ir
    >>> ir.Sym("4*s0").text
    '4 * s0'
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", canonical(self.text))


class _Canonical(ast.NodeTransformer):
    """Rewrites an expression, and rejects what is not part of the language."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Expression() | ast.Load():
                pass
            case ast.Name(id=name) if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                pass
            case ast.Constant(value=int(value)) if not isinstance(value, bool) and value <= LARGEST:
                pass
            case ast.UnaryOp(op=ast.USub()):
                return ast.UnaryOp(ast.USub(), self.visit(node.operand))
            case ast.BinOp(op=op) if type(op) in _OPERATORS:
                is_power = isinstance(op, ast.Pow)
                if is_power and not (isinstance(node.right, ast.Constant) and node.right.value in range(9)):
                    raise ValueError("exponents must be numbers from 0 to 8")
                return ast.BinOp(self.visit(node.left), op, self.visit(node.right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if len(args) >= 2:
                return self._call(name, [self.visit(arg) for arg in args])
            case _:
                raise ValueError(f"it contains {type(node).__name__}")
        return super().generic_visit(node)

    def _call(self, name: str, args: list[ast.expr]) -> ast.expr:
        if name in _OPERATOR_SPELLINGS and len(args) == 2:
            return ast.BinOp(args[0], _OPERATOR_SPELLINGS[name](), args[1])
        name = _SPELLINGS.get(name, name)
        if name not in _FUNCTIONS:
            raise ValueError(f"it calls '{name}'")
        return ast.Call(ast.Name(name, ast.Load()), args, [])


@functools.lru_cache(4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise IRError(f"a size is an expression of {len(text)} characters; at most {LONGEST} are allowed")
    try:
        tree: ast.Expression = _Canonical().visit(ast.parse(text.strip(), mode="eval"))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise IRError(
            f"the size {text!r} is not an expression of symbols: {error}; expected numbers, symbols, + - * // % **, "
            "max and min"
        ) from None
    return tree.body


@functools.lru_cache(4096)
def canonical(text: str) -> str:
    """Returns the one spelling of an expression. Raises IRError if it is none."""
    return ast.unparse(_parsed(text))


def names(text: str) -> set[str]:
    """Returns the symbols of an expression."""
    functions = {id(node.func) for node in ast.walk(_parsed(text)) if isinstance(node, ast.Call)}
    return {n.id for n in ast.walk(_parsed(text)) if isinstance(n, ast.Name) and id(n) not in functions}


def evaluate(size: Size, symbols: Mapping[str, int]) -> int:
    """Returns the value of a size. Raises IRError for a symbol without a value.

    >>> from minitensor.ir.symbols import evaluate
    >>> evaluate("s0 // 2 + 1", {"s0": 9})
    5
    """
    return size if isinstance(size, int) else _value(_parsed(size), symbols, size)


def _value(node: ast.expr, symbols: Mapping[str, int], text: str) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            if name not in symbols:
                raise IRError(f"the symbol '{name}' of the size '{text}' has no value; pass {name}=…")
            return symbols[name]
        case ast.UnaryOp(operand=operand):
            return -_value(operand, symbols, text)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, symbols, text), _value(right, symbols, text)
            if b == 0 and isinstance(op, (ast.FloorDiv, ast.Mod)):
                raise IRError(f"the size '{text}' divides by zero for {dict(symbols)}")
            return _OPERATORS[type(op)](a, b)
        case ast.Call(func=ast.Name(id=name), args=args):
            return functools.reduce(_FUNCTIONS[name], [_value(arg, symbols, text) for arg in args])
    raise AssertionError(ast.dump(node))


def bind(shape: Sequence[Size], actual: Sequence[int], symbols: dict[str, int]) -> bool:
    """Whether an actual shape matches; gives values to symbols that have none."""
    if len(shape) != len(actual):
        return False
    for size, value in zip(shape, actual, strict=True):
        if isinstance(size, str) and size.isidentifier():
            if symbols.setdefault(size, value) != value:
                return False
        elif isinstance(size, int) and size != value:
            return False
    compound = [(s, v) for s, v in zip(shape, actual, strict=True) if isinstance(s, str) and not s.isidentifier()]
    return all(evaluate(s, symbols) == v for s, v in compound if names(s) <= symbols.keys())


def walk(value: Any) -> Iterator[Any]:
    """Yields the items of nested lists."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from walk(item)
    else:
        yield value
