"""Draws the picture of the page "What random features are": ``python docs/random_features_plot.py > docs/_static/random-features.svg``.

Independent frequencies of the Gaussian kernel in one dimension, by numpy, so that the picture needs no build.
"""

import numpy as np

SIZES = (8, 64, 512)
WIDTH, HEIGHT, PANEL, GAP, TOP = 760, 210, 232, 22, 34
DISTANCES = np.linspace(0, 5, 61)
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.q{fill:#59636e;font-size:12px}path{fill:none}"
    ".a{stroke:#d1d9e0}.k{stroke:#1f2328;stroke-dasharray:5 4;stroke-width:1.6}.e{stroke:#3b6ea5;stroke-opacity:.75;stroke-width:1.4}"
)


def path(kind: str, values: np.ndarray, left: int) -> str:
    points = zip(left + PANEL * DISTANCES / DISTANCES[-1], TOP + 140 * (1.1 - values) / 1.95, strict=True)
    return f'<path class="{kind}" d="M{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def plot() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Random features follow the Gaussian kernel more closely the more there are</title>",
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff" rx="6"/>',
    ]
    for panel, size in enumerate(SIZES):
        left = 10 + panel * (PANEL + GAP)
        parts.append(f'<text x="{left}" y="20">{size} features</text>')
        parts.append(path("a", np.zeros_like(DISTANCES), left))
        for seed in range(5):
            frequencies = np.random.default_rng(seed).normal(size=size // 2)
            parts.append(path("e", np.cos(DISTANCES[:, np.newaxis] * frequencies).mean(axis=1), left))
        parts.append(path("k", np.exp(-(DISTANCES**2) / 2), left))
    parts.append(f'<text class="q" x="10" y="{HEIGHT - 12}">Kernel against distance. Dashed: the Gaussian kernel. Lines: five draws.</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    print(plot(), end="")
