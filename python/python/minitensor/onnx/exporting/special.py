"""Functions of numbers that ONNX lacks, as formulas in float64."""

from __future__ import annotations

import math

from .builder import Value

__all__ = ["digamma", "erf", "erfc", "lgamma", "polygamma"]

#: ln(eᶻ² erfc(z) / t) for t = 2 / (2 + z) as a polynomial in 2t − 1: a Chebyshev approximation of degree 25, whose
#: error is less than 1e-16.
_ERFC = (
    -0.6717940840566922,
    0.672643223977656,
    0.047343306841863525,
    -0.046895610231083025,
    -0.009872689364099222,
    0.008824938553738764,
    0.0017589335074028032,
    -0.002345812444802156,
    -0.00014624628742128406,
    0.0006736782697069831,
    -9.373894767667295e-05,
    -0.00017429984933155644,
    7.141810433422301e-05,
    3.173310599377061e-05,
    -3.023784054007137e-05,
    1.699233231227702e-07,
    8.662535397475538e-06,
    -3.007645434410669e-06,
    -1.409445991433531e-06,
    1.3267813608518889e-06,
    -4.146853754663641e-08,
    -3.168341367694147e-07,
    7.745572408758512e-08,
    3.972203547273795e-08,
    -1.2776086554968677e-08,
    -1.5867042924138042e-09,
)
#: The Bernoulli numbers B₂, B₄, … of asymptotic series.
_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
#: The highest derivative of digamma.
_MAX_ORDER = 12


def _polynomial(x: Value, coefficients: tuple[float, ...]) -> Value | float:
    found: Value | float = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        found = x * found + coefficient
    return found


def erfc(x: Value) -> Value:
    """`1 − erf(x)`, accurate for large `x`."""
    z = abs(x)
    t = 2.0 / (z + 2.0)
    tail = t * (_polynomial(t * 2.0 - 1.0, _ERFC) - z * z).apply("Exp")
    return x.builder.where(x < 0.0, 2.0 - tail, tail)


def erf(x: Value) -> Value:
    """The error function: near 0 by its Taylor series, elsewhere by `erfc`."""
    square = x * x
    series = tuple((-1) ** n / (math.factorial(n) * (2 * n + 1)) * 2 / math.sqrt(math.pi) for n in range(14))
    near = x * _polynomial(square, series)
    far = 1.0 - x.builder.call("erfc", erfc, x)
    return x.builder.where(abs(x) < 0.5, near, far)


def _stirling(x: Value) -> Value:
    """ln Γ(x) for large `x`."""
    inverse = 1.0 / x
    series = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))
    rest = inverse * _polynomial(inverse * inverse, series)
    return (x - 0.5) * x.apply("Log") - x + 0.5 * math.log(2 * math.pi) + rest


def lgamma(x: Value) -> Value:
    """`ln |Γ(x)|`: by Stirling's series, after steps to larger arguments, and by the reflection formula."""
    where, steps = x.builder.where, 10
    is_left = x < 0.5
    positive = where(is_left, 1.0 - x, x)
    is_near = positive < steps
    product = positive
    for k in range(1, steps):
        product = product * (positive + float(k))
    right = _stirling(where(is_near, positive + float(steps), positive)) - where(is_near, product, 1.0).apply("Log")
    sine = abs((math.pi * (x - x.apply("Round"))).apply("Sin"))
    left = math.log(math.pi) - sine.apply("Log") - right
    return where(x.isinf(), abs(x), where(is_left, left, right))


def _cotangent(x: Value) -> Value:
    """cot πx. The period is subtracted first, while that is exact."""
    angle = math.pi * (x - x.apply("Round"))
    return angle.apply("Cos") / angle.apply("Sin")


def digamma(x: Value) -> Value:
    """The derivative of `ln Γ(x)`: by its asymptotic series, after steps to larger arguments, and by reflection."""
    where, steps = x.builder.where, 10
    is_left = x < 0.0
    positive = where(is_left, 1.0 - x, x)
    is_near = positive < steps
    near = 1.0 / positive
    for k in range(1, steps):
        near = near + 1.0 / (positive + float(k))
    y = where(is_near, positive + float(steps), positive)
    inverse = 1.0 / y
    square = inverse * inverse
    series = square * _polynomial(square, tuple(b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)))
    right = y.apply("Log") - 0.5 * inverse - series - where(is_near, near, 0.0)
    left = right - math.pi * _cotangent(x)
    is_pole = x.equal(x.apply("Floor")) & is_left
    return where(is_pole | (x.isinf() & is_left), math.nan, where(is_left, left, right))


def polygamma(x: Value, order: int) -> Value:
    """The derivative of `digamma` of an order: by the Euler–Maclaurin formula and by reflection.

    NaN for orders above 12, as in minitensor.
    """
    if order == 0:
        return digamma(x)
    where = x.builder.where
    if order > _MAX_ORDER:
        return where(x.equal(x), math.nan, x)
    steps = 10 + order
    is_left = x < 0.0
    positive = where(is_left, 1.0 - x, x)
    is_near = positive < steps

    def power(v: Value) -> Value:
        return v.apply("Pow", -(order + 1.0))

    near = power(positive)
    for k in range(1, steps):
        near = near + power(positive + float(k))
    y = where(is_near, positive + float(steps), positive)
    # ζ(n + 1, y): the first terms, and the series of the others.
    inverse = 1.0 / y
    coefficients, factor = [], 1.0 / 2.0
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        factor *= (order + 1) if k == 1 else (order + 2 * k - 2) * (order + 2 * k - 1) / ((2 * k - 1) * (2 * k))
        coefficients.append(bernoulli * factor)
    square = inverse * inverse
    series = 1.0 / order + 0.5 * inverse + square * _polynomial(square, tuple(coefficients))
    zeta = inverse.apply("Pow", float(order)) * series + where(is_near, near, 0.0)
    right = math.factorial(order) * (1.0 if order % 2 else -1.0) * zeta
    right = where(x.isinf(), 0.0, right)
    slope = _polynomial(_cotangent(x), _cotangent_derivative(order))
    left = (right * -1.0 if order % 2 else right) - math.pi * slope
    is_pole = x.equal(x.apply("Floor")) & (x <= 0.0)
    found = where(is_pole, math.inf if order % 2 else math.nan, where(is_left, left, right))
    return where(x.isinf() & is_left, math.nan, found)


def _cotangent_derivative(order: int) -> tuple[float, ...]:
    """dⁿ/dxⁿ cot πx as a polynomial in c = cot πx, since dc/dx = −π (1 + c²)."""
    polynomial = [0.0, 1.0]
    for _ in range(order):
        slopes = [0.0] * (len(polynomial) + 1)
        for k, coefficient in enumerate(polynomial[1:], 1):
            slopes[k - 1] -= math.pi * k * coefficient
            slopes[k + 1] -= math.pi * k * coefficient
        polynomial = slopes
    return tuple(polynomial)
