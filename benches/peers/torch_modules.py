"""Times of forward and backward passes of `bochner.torch` on the CPU, beside the same written plainly in torch.

    python benches/peers/torch_modules.py [threads]

What torch is given is what a user would write: products with dense matrices for the sketch; for attention products with features, and
for causal attention the sums over earlier keys by `cumsum`, or chunk by chunk.
"""

import math
import sys
import time

import torch

from bochner.torch import LinearAttention, PolynomialSketch


def seconds(step, repetitions=3):
    """The least of some runs, the first of them not counted."""
    times = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def there_and_back(function, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    weights = torch.randn_like(function(*inputs).detach())

    def step():
        for x in inputs:
            x.grad = None
        (function(*inputs) * weights).sum().backward()

    return step


def plain_sketch(d, components, degree):
    """Products of random projections by dense matrices of signs: real ones, which are half the work of complex ones."""
    factors = [torch.randn(d, components).sign() for _ in range(degree)]

    def features(x):
        product = x @ factors[0] / math.sqrt(components)
        for factor in factors[1:]:
            product = product * (x @ factor)
        return product

    return features


def plain_attention(d, components, causal, chunk=None):
    """Positive features (Choromanski et al. 2021), and sums of products of keys and values."""
    weights = torch.randn(d, components)

    def features(x, axes):
        x = x / d**0.25
        exponents = x @ weights - 0.5 * (x * x).sum(-1, keepdim=True)
        return torch.exp(exponents - exponents.detach().amax(axes, keepdim=True)) / math.sqrt(components)

    def attend(q, k, v):
        q, k = features(q, -1), features(k, (-2, -1))
        if not causal:
            return (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2)[:, None])
        if chunk is None:
            sums = (k[:, :, None] * v[:, None, :]).cumsum(0)
            return (q[:, None, :] @ sums)[:, 0] / (q * k.cumsum(0)).sum(-1, keepdim=True)
        out, sums, total = [], torch.zeros(components, v.shape[-1]), torch.zeros(components)
        for first in range(0, len(q), chunk):
            qc, kc, vc = (x[first : first + chunk] for x in (q, k, v))
            near = (qc @ kc.T).tril()
            out.append((qc @ sums + near @ vc) / ((qc @ total)[:, None] + near.sum(-1, keepdim=True)))
            sums, total = sums + kc.T @ vc, total + kc.sum(0)
        return torch.cat(out)

    return attend


def main():
    torch.manual_seed(0)
    if len(sys.argv) > 1:
        torch.set_num_threads(int(sys.argv[1]))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads of it")

    x = torch.randn(1024, 512)
    plain = seconds(there_and_back(plain_sketch(512, 8192, 3), x))
    print(f"sketch of degree 3, 512 to 8192 columns, batch of 1024, plain torch: {1e3 * plain:8.1f} ms")
    for weights in ("ctr", "real"):
        own = seconds(there_and_back(PolynomialSketch(512, n_components=8192, degree=3, weights=weights, random_state=0), x))
        print(f"  PolynomialSketch(weights={weights!r}): {1e3 * own:8.1f} ms, {plain / own:.1f} times as fast")

    d, m = 64, 256
    q, k, v = torch.randn(3, 16_384, d)
    attend = LinearAttention(d, m, random_state=0)
    for causal in (False, True):
        kinds = {"plain torch": None} if not causal else {"plain torch, chunk by chunk": 128, "plain torch, cumsum": None}
        own = seconds(there_and_back(lambda q, k, v: attend(q, k, v, is_causal=causal), q, k, v))
        print(f"attention, 16384 tokens, 256 features, {'causal' if causal else 'not causal'}: LinearAttention {1e3 * own:8.1f} ms")
        for name, chunk in kinds.items():
            plain = seconds(there_and_back(plain_attention(d, m, causal, chunk), q, k, v), 1 if causal and chunk is None else 3)
            print(f"  {name}: {1e3 * plain:8.1f} ms, LinearAttention {plain / own:.1f} times as fast")


if __name__ == "__main__":
    main()
