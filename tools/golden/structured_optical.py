"""Bias of optical features whose matrix is a complex Hadamard chain, by simulation in numpy: the table of docs/mathematics/optical.md.

Entries are the relative bias times the padded dimension and its standard error, after the correction of the directions' length.
"""

import math

import numpy as np
from scipy.special import gamma, gammaln, hyp2f1

EXPONENTS = [0.5, 1, 1.7, 2, 3, 4]
draw = np.random.default_rng(0)


def hadamard(n):
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (matrix / math.sqrt(n)).astype(np.float32)


def pairs(d):
    normals = np.random.default_rng(5)
    a, b = normals.normal(size=(2, d))
    a /= np.linalg.norm(a)
    across = b - (a @ b) * a
    across /= np.linalg.norm(across)
    first, last = np.eye(d)[[0, d - 1]]
    return {
        "dense, parallel": (a, a),
        "dense, 45°": (a, (a + across) / math.sqrt(2)),
        "dense, orthogonal": (a, across),
        "sparse, parallel": (first, first),
        "sparse, orthogonal": (first, last),
    }


def table(d, blocks):
    padded = 1 << (d - 1).bit_length()
    transform = hadamard(padded)
    averages = {(kind, m): [] for kind in pairs(d) for m in EXPONENTS}
    step = max(1, (1 << 20) // padded)
    for _ in range(0, blocks, step):
        third, second, first = draw.choice(np.float32([-1, 1]), (3, step, padded))
        turned = draw.choice(np.float32([0, 1]), (step, padded))

        def light(row):
            x = np.zeros(padded, np.float32)
            x[:d] = row
            middle = ((x * third) @ transform * second) @ transform * first * np.float32(math.sqrt(padded))
            return ((middle * (1 - turned)) @ transform) ** 2 + ((middle * turned) @ transform) ** 2

        for kind, (x, y) in pairs(d).items():
            product = light(x).astype(float) * light(y)
            for m in EXPONENTS:
                averages[kind, m].append((product ** (m / 2)).mean(axis=1))
    for kind, (x, y) in pairs(d).items():
        cells = []
        for m in EXPONENTS:
            values = np.concatenate(averages[kind, m])
            exact = gamma(m / 2 + 1) ** 2 * hyp2f1(-m / 2, -m / 2, 1, min(1.0, (x @ y) ** 2))
            values *= math.exp(gammaln(padded + m) - gammaln(padded) - m * math.log(padded)) / exact
            bias, error = values.mean() - 1, values.std() / math.sqrt(len(values))
            cells.append(f"{bias * padded:.2f} ± {error * padded:.2f}")
        print("|", d, "|", kind, "|", " | ".join(cells), "|")


for d, blocks in [(4, 1 << 19), (13, 1 << 18), (16, 1 << 18), (64, 1 << 17)]:
    table(d, blocks)
