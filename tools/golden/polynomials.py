"""Coefficients of the polynomials in crates/bochner/src/random/normal.rs, and how far each is from its function.

Interpolation at Chebyshev nodes with 60 digits (mpmath), rounded to double. Run: python tools/golden/polynomials.py
"""

from mpmath import cos, factorial, fsum, linspace, lu_solve, matrix, mp, mpf, nstr, pi, polyval, sqrt

mp.dps = 60


def interpolate(function, count, end):
    """`count` coefficients, lowest first, on `[0, end]`."""
    nodes = [end / 2 * (1 + cos(pi * (2 * k + 1) / (2 * count))) for k in range(count)]
    powers = matrix(count, count)
    for i, x in enumerate(nodes):
        for j in range(count):
            powers[i, j] = x**j
    return [float(c) for c in lu_solve(powers, matrix([function(x) for x in nodes]))]


def report(name, function, count, end):
    coefficients = interpolate(function, count, end)
    exact = [mpf(c) for c in reversed(coefficients)]
    error = max(abs(polyval(exact, x) - function(x)) for x in linspace(0, end, 2001))
    print(f"{name}: error {nstr(error, 2)}")
    for c in coefficients:
        print(f"    {c!r}")


def log_rest(z):
    """`(2 artanh s - 2s)/s^3` as a function of `z = s^2`."""
    return fsum(2 * z**k / (2 * k + 3) for k in range(60))


def sin_rest(z):
    """`(sin(pi y/4)/y - pi/4)/y^2` as a function of `z = y^2`."""
    return fsum((-1) ** k * (pi / 4) ** (2 * k + 1) * z ** (k - 1) / factorial(2 * k + 1) for k in range(1, 30))


def cos_rest(z):
    """`(cos(pi y/4) - 1)/y^2` as a function of `z = y^2`."""
    return fsum((-1) ** k * (pi / 4) ** (2 * k) * z ** (k - 1) / factorial(2 * k) for k in range(1, 30))


if __name__ == "__main__":
    largest = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * mpf("1.0001")
    report("logarithm", log_rest, 7, largest)
    report("sine", sin_rest, 6, mpf(1))
    report("cosine", cos_rest, 7, mpf(1))
