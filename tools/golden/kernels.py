"""Reference values of kernels at fixed pairs of rows, by mpmath with 40 digits; prints Rust tables.

Run with any Python that has mpmath; paste into crates/bochner/src/kernel/tests.rs.
"""

import mpmath as mp

mp.mp.dps = 40

X = [1.0, 2.0, -0.5, 0.3]
PAIRS = {
    "oblique": [0.7, -0.2, 1.1, 0.4],
    "orthogonal": [2.0, -1.0, 0.0, 0.0],
    "parallel": [2.0, 4.0, -1.0, 0.6],
    "opposite": [-0.5, -1.0, 0.25, -0.15],
    "nearly parallel": [1.0, 2.0 + 1e-7, -0.5, 0.3],
    "nearly orthogonal": [2.0, -1.0, 0.0, 1e-9],
    "zero": [0.0, 0.0, 0.0, 0.0],
}


def dot(x, y):
    return mp.fsum(mp.mpf(a) * mp.mpf(b) for a, b in zip(x, y))


def optical(m, bias, x, y):
    m, t = mp.mpf(m), dot(x, y) + bias
    nx, ny = dot(x, x) + bias, dot(y, y) + bias
    if nx * ny == 0:
        return mp.mpf(0)
    z = min(t**2 / (nx * ny), mp.mpf(1))
    return (nx * ny) ** (m / 2) * mp.gamma(m / 2 + 1) ** 2 * mp.hyp2f1(-m / 2, -m / 2, 1, z)


def distance(x, y):
    return mp.sqrt(mp.fsum((mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(x, y)))


def matern(nu, length_scale, x, y):
    nu = mp.mpf(nu)
    z = mp.sqrt(2 * nu) * distance(x, y) / length_scale
    return mp.power(2, 1 - nu) / mp.gamma(nu) * z**nu * mp.besselk(nu, z)


print("// exponent, bias, second row, value")
print("const OPTICAL: &[(f64, f64, [f64; 4], f64)] = &[")
for m in [0.5, 1.0, 1.7, 2.0, 3.0, 4.0, 6.0]:
    for bias in [0.0, 0.75]:
        for y in PAIRS.values():
            print(f"    ({m}, {bias}, {y}, {float(optical(m, bias, X, y))!r}),")
print("];")

print("// nu, length scale, second row, value")
print("const MATERN: &[(f64, f64, [f64; 4], f64)] = &[")
for nu in [0.5, 1.5, 2.5, 0.3, 1.0, 4.2, 60.0]:
    for name in ["oblique", "opposite", "nearly parallel"]:
        print(f"    ({nu}, 1.3, {PAIRS[name]}, {float(matern(nu, mp.mpf(1.3), X, PAIRS[name]))!r}),")
print("];")
