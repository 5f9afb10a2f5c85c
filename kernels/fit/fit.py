"""Computes the polynomials in `kernels/src/math`: minimax fits by the Remez exchange algorithm, with 60 digits.

    pip install mpmath && python fit.py [NAME …] && cargo fmt

It writes the tables, the lowest coefficient first, into the files, and prints the worst weighted error of each.
"""

import pathlib
import re
import struct
import sys

from mpmath import asin, atan, cos, erf, erfc, exp, log, loggamma, mp, mpf, pi, sin, sqrt

mp.dps = 60


def exchange(grid, columns, target, weight, rounds):
    """The coefficients of the columns whose weighted error at the grid has the smallest maximum, and this maximum."""
    n = len(columns) + 1
    chosen = [round((1 - cos(pi * (2 * k + 1) / (2 * n))) / 2 * (len(grid) - 1)) for k in range(n)]
    best = None
    for _ in range(rounds):
        rows = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for i, k in enumerate(chosen):
            for j, column in enumerate(columns):
                rows[i, j] = column[k]
            rows[i, n - 1] = (-1) ** i / weight[k]
            right[i] = target[k]
        solution = mp.lu_solve(rows, right)
        c = [solution[j] for j in range(n - 1)]
        error = [
            w * (sum(a * b for a, b in zip(c, row, strict=True)) - v)
            for row, v, w in zip(zip(*columns, strict=True), target, weight, strict=True)
        ]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[1]:
            best = c, worst
        # The largest error of each interval in which the sign is constant.
        peaks = []
        for k, e in enumerate(error):
            if peaks and (error[peaks[-1]] > 0) == (e > 0):
                if abs(e) > abs(error[peaks[-1]]):
                    peaks[-1] = k
            else:
                peaks.append(k)
        while len(peaks) > n:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n:
            break
        chosen = peaks
    return best


def remez(f, a, b, degree, weight):
    """The polynomial whose weighted error |weight(x) (p(x) − f(x))| over [a, b] has the smallest maximum."""
    a, b = mpf(a), mpf(b)
    steps = 16 * (degree + 2)
    grid = [(a + b) / 2 - (b - a) / 2 * cos(pi * k / steps) for k in range(steps + 1)]
    columns = [[t**k for t in grid] for k in range(degree + 1)]
    return exchange(grid, columns, [f(t) for t in grid], [weight(t) for t in grid], 6)


def quotient(f, b, degree, weight, rounded):
    """Two polynomials of this degree whose quotient approximates f over [0, b], with rounded coefficients. The second
    begins with 1. It is rounded first; then the coefficients of the first, from the highest, are fitted and rounded."""
    steps = 40 * degree
    # More dense near 0, where f changes most.
    grid = [2 / (1 - b / (b + 2) * (1 - cos(pi * k / steps)) / 2) - 2 for k in range(steps + 1)]
    target, weights = [f(t) for t in grid], [weight(t) for t in grid]
    powers = [[t**k for t in grid] for k in range(degree + 1)]
    below = [mpf(1)] * len(grid)
    for _ in range(4):
        columns = powers + [[-v * t for v, t in zip(target, power, strict=True)] for power in powers[1:]]
        c, _ = exchange(grid, columns, target, [w / q for w, q in zip(weights, below, strict=True)], 12)
        under = [mpf(1), *c[degree + 1 :]]
        below = [horner(under, t) for t in grid]
    under = [mpf(rounded(k)) for k in under]
    below = [horner(under, t) for t in grid]
    target = [v * q for v, q in zip(target, below, strict=True)]
    weights = [w / q for w, q in zip(weights, below, strict=True)]
    over = []
    for k in reversed(range(degree + 1)):
        rest = [v - horner([mpf(0)] * (k + 1) + over, t) for v, t in zip(target, grid, strict=True)]
        c, _ = exchange(grid, powers[: k + 1], rest, weights, 12)
        over.insert(0, mpf(rounded(c[k])))
    error = max(abs(w * (horner(over, t) - v)) for t, v, w in zip(grid, target, weights, strict=True))
    return over, under, error


def horner(c, x):
    total = mpf(0)
    for k in reversed(c):
        total = total * x + k
    return total


def relative(f):
    return lambda x: 1 / f(x)


def absolute(_x):
    return mpf(1)


ln2 = log(2)


def exp2m1_q(x):
    return ln2 if x == 0 else mp.expm1(x * ln2) / x


def exp_r(r):
    """(eʳ − 1 − r − r²/2) / r³"""
    if abs(r) < mpf(10) ** -12:
        return mpf(1) / 6 + r / 24
    with mp.workdps(100):
        return (mp.expm1(r) - r - r * r / 2) / r**3


def log_s(z):
    """(2 atanh s) / s at z = s²"""
    s = sqrt(z)
    return mpf(2) if s == 0 else 2 * mp.atanh(s) / s


def log_r(z):
    """(2 atanh s − 2 s) / s³"""
    s = sqrt(z)
    if s < mpf(10) ** -10:
        return mpf(2) / 3 + 2 * z / 5
    with mp.workdps(100):
        return (2 * mp.atanh(s) - 2 * s) / s**3


def sin_fifth(z):
    """(sin x − x + x³/6) / x⁵ at z = x²"""
    x = sqrt(z)
    if x < mpf(10) ** -10:
        return mpf(1) / 120
    with mp.workdps(100):
        return (sin(x) - x + x**3 / 6) / x**5


def cos_fourth(z):
    """(cos x − 1 + x²/2) / x⁴ at z = x²"""
    if z < mpf(10) ** -20:
        return mpf(1) / 24
    with mp.workdps(100):
        return (cos(sqrt(z)) - 1 + z / 2) / z**2


def log_rest(z):
    """(2 atanh s − 2 s − ⅔ s³) / s⁵"""
    s = sqrt(z)
    if s < mpf(10) ** -10:
        return mpf(2) / 5 + 2 * z / 7
    with mp.workdps(100):
        return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


def over_x(f, first):
    def g(z):
        x = sqrt(z)
        return first if x < mpf(10) ** -20 else f(x) / x

    return g


def cubic(f, third):
    """(f(x) − x) / x³ at z = x²"""

    def g(z):
        x = sqrt(z)
        if x < mpf(10) ** -10:
            return third
        with mp.workdps(100):
            return (f(x) - x) / x**3

    return g


def bent(scale, slope):
    """(1 / (eʸ² erfc y) − 1) / x − slope at x = scale · y, and the weight of its error in eʸ² erfc y"""

    def inverse(x):
        with mp.workdps(90):
            y = x / scale
            return exp(-y * y) / erfc(y)

    def f(x):
        return 2 / sqrt(pi) / scale - slope if x == 0 else (inverse(x) - 1) / x - slope

    return f, lambda x: x / inverse(x) + mpf(10) ** -2


def erf_less_one(z):
    """erf(x) / x − 1 at z = x²"""
    x = sqrt(z)
    return 2 / sqrt(pi) - 1 if x < mpf(10) ** -20 else erf(x) / x - 1


def erfc_slope(u):
    """−ln(erfc x) / x − 2 at u = x − 1"""
    return -log(erfc(1 + u)) / (1 + u) - 2


def stirling(z):
    """(ln Γ(x) − (x − ½) ln x + x − ½ ln 2π) x at z = 1/x²"""
    if z < mpf(10) ** -12:
        return mpf(1) / 12 - z / 360
    x = 1 / sqrt(z)
    with mp.workdps(90):
        return (loggamma(x) - (x - mpf(1) / 2) * log(x) + x - log(2 * pi) / 2) * x


def gamma_middle(u):
    """ln Γ(x) / ((x − 1) (x − 2)) at u = x − 3/2"""
    x = u + mpf(3) / 2
    for zero, slope in ((1, -1), (2, 1)):
        if abs(x - zero) < mpf(10) ** -25:
            return mp.digamma(zero) * slope
    with mp.workdps(90):
        return loggamma(x) / ((x - 1) * (x - 2))


half_pi = pi / 2
turn_sin = over_x(lambda x: sin(x * half_pi), half_pi)
sin_pi = over_x(lambda x: sin(x * pi), pi)


def sin_pi_rest(z):
    """(sin πx − πx) / x³ at z = x²"""
    with mp.workdps(100):
        return -(pi**3) / 6 + z * pi**5 / 120 if z < mpf(10) ** -20 else (sin_pi(z) - pi) / z


def turn_cos(z):
    return cos(sqrt(z) * half_pi)


def exp_square(r):
    """(eʳ − 1 − r) / r²"""
    if abs(r) < mpf(10) ** -12:
        return mpf(1) / 2 + r / 6
    with mp.workdps(100):
        return (mp.expm1(r) - r) / r**2


def log_cube(f):
    """(ln(1 + f) − f + f²/2) / f³"""
    if abs(f) < mpf(10) ** -12:
        return mpf(1) / 3 - f / 4
    with mp.workdps(100):
        return (mp.log1p(f) - f + f * f / 2) / f**3


def square(x):
    """The weight of a term that is multiplied by x² more than the result; not 0, for the exchange."""
    return x * x + mpf(10) ** -4


small = mpf("0.1716") ** 2  # (√2 − 1) / (√2 + 1), squared
half_ln2 = ln2 / 2 * mpf("1.0001")
eighth = mpf("0.41422") ** 2  # tan π/8, squared
quarter = mpf("0.7854") ** 2  # π/4, squared

# (file, table): function, interval, degree, weight
FITS = {
    ("single/exp", "EXP"): (exp_square, -half_ln2, half_ln2, 4, lambda r: square(r) / exp(r)),
    ("single/exp", "EXPM1"): (exp_r, -half_ln2, half_ln2, 4, square),
    ("single/exp", "EXP2"): (exp2m1_q, -0.5, 0.5, 5, relative(exp2m1_q)),
    ("single/log", "LOG"): (log_cube, mpf("-0.2929"), mpf("0.4143"), 8, square),
    ("single/error", "ERF"): (erf_less_one, 0, mpf("0.81"), 6, lambda z: 1 / (1 + erf_less_one(z))),
    ("single/error", "ERF_TAIL"): (erfc_slope, mpf("-0.1"), 3, 5, lambda u: (1 + u) * erfc(1 + u)),
    ("widened/exp", "EXP2"): (exp2m1_q, -0.5, 0.5, 6, relative(exp2m1_q)),
    ("widened/log", "LOG"): (log_s, 0, small, 3, relative(log_s)),
    ("widened/log", "EXACT_LOG"): (log_s, 0, small, 7, relative(log_s)),
    ("widened/trig", "SIN"): (turn_sin, 0, 0.2501, 4, relative(turn_sin)),
    ("widened/trig", "COS"): (turn_cos, 0, 0.2501, 4, relative(turn_cos)),
    ("widened/arc", "ATAN"): (over_x(atan, mpf(1)), 0, eighth, 5, relative(over_x(atan, mpf(1)))),
    ("widened/arc", "ASIN"): (over_x(asin, mpf(1)), 0, 0.25, 6, relative(over_x(asin, mpf(1)))),
    ("widened/gamma", "STIRLING"): (stirling, 0, mpf(1) / 16, 9, absolute),
    ("widened/gamma", "SIN_PI"): (sin_pi, 0, 0.2501, 8, relative(sin_pi)),
    ("widened/gamma", "MIDDLE"): (gamma_middle, -0.75, 0.75, 15, relative(gamma_middle)),
    ("double/exp", "EXP"): (exp_r, -half_ln2, half_ln2, 9, absolute),
    ("double/log", "LOG"): (log_r, 0, small, 6, lambda z: z),
    ("double/power", "LOG"): (log_rest, 0, small, 7, lambda z: z * z),
    ("double/trig", "SIN"): (sin_fifth, 0, quarter, 4, lambda z: z * z),
    ("double/trig", "COS"): (cos_fourth, 0, quarter, 5, lambda z: z * z),
    ("double/arc", "ATAN"): (cubic(atan, -mpf(1) / 3), 0, eighth, 11, lambda z: z),
    ("double/arc", "ASIN"): (cubic(asin, mpf(1) / 6), 0, 0.25, 12, lambda z: z),
    ("double/error", "ERF"): (erf_less_one, 0, mpf("1.01"), 12, lambda z: 1 / (1 + erf_less_one(z))),
    ("double/error", "ERF_TAIL"): (erfc_slope, mpf("-0.01"), 5, 19, lambda u: (1 + u) * erfc(1 + u)),
    ("double/gamma", "STIRLING"): (stirling, 0, mpf(1) / 16, 11, absolute),
    ("double/gamma", "SIN_PI"): (sin_pi_rest, 0, 0.2501, 7, absolute),
    ("double/hyperbolic", "SINH"): (cubic(mp.sinh, mpf(1) / 6), 0, 1, 6, lambda z: z),
}


# (file, table): function, interval, degree, and the relative position of its middle. The table starts with the middle,
# followed by the polynomial in the difference from it. Its first two coefficients have two parts.
CENTRED = {
    ("double/gamma", "MIDDLE"): (lambda x: gamma_middle(x - mpf("1.5")), mpf("0.75"), mpf("2.25"), 28, 0.5),
}

erfc_bent = bent(mpf(1), mpf("1.5"))
normal_bent = bent(sqrt(mpf(2)), mpf("1.109375"))

# (file, tables of the numerator and of the denominator): function and weight, end of the interval, degree.
QUOTIENTS = {
    ("single/error", "ERFC_OVER", "ERFC_UNDER"): (erfc_bent, mpf("10.2"), 5),
    ("single/error", "NORMAL_OVER", "NORMAL_UNDER"): (normal_bent, mpf("14.5"), 5),
    ("double/error", "ERFC_OVER", "ERFC_UNDER"): (erfc_bent, mpf("27.5"), 10),
    ("double/error", "NORMAL_OVER", "NORMAL_UNDER"): (normal_bent, mpf("38.8"), 10),
}


def centred(f, a, b, degree, near, rounded):
    middle = mpf(rounded(a + near * (b - a)))
    c, error = remez(lambda t: f(middle + t), a - middle, b - middle, degree, lambda t: 1 / f(middle + t))
    parts = [part for k in c[:2] for part in (rounded(k), k - rounded(k))]
    return [middle, *parts, *c[2:]], error


def chunks(x, bits, count):
    """x as a sum of numbers with these numbers of bits, and the rest."""
    parts = []
    unit = mpf(1)
    for _ in range(count):
        unit /= mpf(2) ** bits
        parts.append(mp.floor(x / unit) * unit)
        x -= parts[-1]
    return parts + [x]


def two_over_pi():
    """2/π · 2²⁷ᵏ without multiples of 4, in chunks, times 2⁻²⁷ᵏ."""
    rows = []
    for k in range(4):
        scale = mpf(2) ** (27 * k)
        x = 2 / pi * scale
        x -= 4 * mp.nint(x / 4)
        # The leading 28 bits of a number below 2.
        first, second, rest = (c * 2 for c in chunks(x / 2, 28, 2))
        rows.append([c / scale for c in (first, second, rest)])
    return rows


def words_of_two_over_pi():
    """The bits of 2/π in words of 64, after 55 zeros."""
    with mp.workprec(1500):
        return [int(mp.floor(2 / pi * mpf(2) ** (64 * k - 55 + 64))) % 2**64 for k in range(20)]


# The leading bits, and the rest.
CONSTANTS = {
    ("double/trig", "TWO_OVER_PI"): words_of_two_over_pi(),
    ("single/exp", "LN_2"): chunks(ln2, 16, 1),
    ("single/log", "LOG10_2"): chunks(log(2, 10), 16, 1),
    ("widened/trig", "TWO_OVER_PI"): two_over_pi(),
    ("double/exp", "LN_2"): chunks(ln2, 42, 1),
    ("double/log", "LOG10_2"): chunks(log(2, 10), 42, 1),
}


def rust(c, kind):
    if isinstance(c, int):
        return f"0x{c:016X}"
    if isinstance(c, list):
        return "[" + ", ".join(rust(k, kind) for k in c) + "]"
    if kind == "f64":
        return repr(float(c))
    # The fewest digits that distinguish it from adjacent numbers.
    return next(digits for n in range(1, 10) if single(digits := repr(float(f"{single(c):.{n}g}"))) == single(c))


def single(x):
    """The nearest single."""
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def write(file, table, c):
    """Replaces the table of the constant with this name."""
    path = HERE.parent / "src" / "math" / f"{file}.rs"
    old = path.read_text()
    number = "f32" if file.startswith("single/") else "f64"
    number = "u64" if isinstance(c[0], int) else number
    kind = f"[[{number}; {len(c[0])}]; {len(c)}]" if isinstance(c[0], list) else f"[{number}; {len(c)}]"
    table_of = f"const {table}: {kind} = {rust(c, number)};"
    new, count = re.subn(rf"const {table}: [^=]+=\s[^;]+(; \d+\][^;]*)*;", table_of, old)
    assert count == 1, (file, table, count)
    path.write_text(new)


def main(names):
    for (file, table), (f, a, b, degree, weight) in FITS.items():
        if names and not any(n in f"{file}/{table}" for n in names):
            continue
        c, error = remez(f, a, b, degree, weight)
        print(f"{file:<18} {table:<10} 2^{mp.nstr(log(error, 2), 4)}")
        write(file, table, c)
    for (file, table), fit in CENTRED.items():
        if names and not any(n in f"{file}/{table}" for n in names):
            continue
        c, error = centred(*fit, single if file.startswith("single/") else float)
        print(f"{file:<18} {table:<10} 2^{mp.nstr(log(error, 2), 4)}")
        write(file, table, c)
    for (file, *tables), ((f, weight), end, degree) in QUOTIENTS.items():
        if names and not any(n in f"{file}/{table}" for n in names for table in tables):
            continue
        *polynomials, error = quotient(f, end, degree, weight, single if file.startswith("single/") else float)
        print(f"{file:<18} {tables[0]:<10} 2^{mp.nstr(log(error, 2), 4)}")
        for table, c in zip(tables, polynomials, strict=True):
            write(file, table, c)
    for (file, table), c in CONSTANTS.items():
        if not names or any(n in f"{file}/{table}" for n in names):
            write(file, table, c)


HERE = pathlib.Path(__file__).parent
main(sys.argv[1:])
