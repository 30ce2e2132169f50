"""Golden draws for crates/bochner/tests/suite/draws.rs: ChaCha8 in plain Python, Box-Muller and logarithms with mpmath.

Run: python tools/golden/draws.py > crates/bochner/tests/suite/golden/draws.json
Numbers are correctly rounded to double from 50 digits.
"""

import json

from mpmath import cospi, log, mp, mpf, sinpi, sqrt

mp.dps = 50
MASK = 0xFFFFFFFF


def rotate(value, by):
    return ((value << by) | (value >> (32 - by))) & MASK


def quarter_round(x, a, b, c, d):
    for add, mix, by in ((b, d, 16), (d, b, 12), (b, d, 8), (d, b, 7)):
        target = a if mix == d else c
        x[target] = (x[target] + x[add]) & MASK
        x[mix] = rotate(x[mix] ^ x[target], by)


def block(seed, role, index, counter, rounds=8):
    """The sixteen words of one block; key = (seed, role), both 64 bits, little-endian, then zeros."""
    halves = [half for word in (seed, role, 0, 0, counter, index) for half in (word & MASK, word >> 32)]
    start = [int.from_bytes(b"expand 32-byte k"[4 * i : 4 * i + 4], "little") for i in range(4)] + halves
    x = list(start)
    for _ in range(rounds // 2):
        for i in range(4):
            quarter_round(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) & MASK for a, b in zip(x, start)]


def words(seed, role, index, first, count):
    """64-bit words number first, first + 1, ..."""
    out = []
    for number in range(first, first + count):
        b = block(seed, role, index, number // 8)
        out.append(b[2 * (number % 8)] | b[2 * (number % 8) + 1] << 32)
    return out


def minus_log(word):
    return -log(mpf((word >> 11) + 1) / 2**53)


def half_turns(word):
    return mpf(word >> 11) / 2**52


def normal(seed, role, index, number):
    i = number % 8
    w = words(seed, role, index, number - i, 8)
    trigonometric = cospi if i < 4 else sinpi
    return sqrt(2 * minus_log(w[i % 4])) * trigonometric(half_turns(w[4 + i % 4]))


def rounded(value):
    """Shortest text that reads as the nearest double; text, because not every JSON reader rounds correctly."""
    return repr(float(value))


def self_check():
    """ChaCha8 with an all-zero key, the first words of the published test vector (draft-strombergson, TC1, 256-bit key)."""
    expected = "3e00ef2f895f40d67f5bb8e81f09a5a1"
    found = b"".join(w.to_bytes(4, "little") for w in block(0, 0, 0, 0)[:4]).hex()
    assert found == expected, found


ADDRESSES = [
    # (seed, role, index, first)
    (0, 1, 0, 0),
    (7, 1, 3, 0),
    (7, 2, 3, 61),
    (0xFEDCBA9876543210, 6, 0x0123456789ABCDEF, 5),
    (1, 9, 1 << 32, (1 << 36) - 3),
]

EDGES = [0, 0x7FF, 0x800, 2**64 - 1, 2**64 - 0x800]
EDGES += [(q << 61) + (s << 11) for q in range(8) for s in (-1, 0, 1) if (q << 61) + (s << 11) >= 0]
EDGES += [2**63 + 2**62 - 2**40, 0xB504F333F9DE6484, 0xB504F333F9DE6000, 0xB504F333F9DE7000]


if __name__ == "__main__":
    self_check()
    draws = []
    for seed, role, index, first in ADDRESSES:
        draws.append(
            {
                "seed": seed,
                "role": role,
                "index": index,
                "first": first,
                "words": words(seed, role, index, first, 12),
                "normals": [rounded(normal(seed, role, index, first + j)) for j in range(20)],
            }
        )
    functions = [
        {
            "word": w,
            "minus_log": rounded(minus_log(w)),
            "cos": rounded(cospi(half_turns(w))),
            "sin": rounded(sinpi(half_turns(w))),
        }
        for w in EDGES + words(5, 3, 1, 0, 200)
    ]
    print(json.dumps({"draws": draws, "functions": functions}, indent=1))
