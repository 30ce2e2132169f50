"""The plot of speeds in README.md, from the figures of benches/README.md.

    python tools/speed_plot.py > docs/_static/speed.svg
"""

import math
import re
from html import escape
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "benches" / "README.md"
# Rows of its tables by the beginning of their first cell, and what to call the two sides.
ROWS = [
    ("`PolynomialSketch`, degree 3, against", "PolynomialSketch", "scikit-learn's PolynomialCountSketch"),
    ("`FourierFeatures` against", "FourierFeatures", "scikit-learn's RBFSampler"),
    ("`FeatureRidgeClassifier` against", "FeatureRidgeClassifier", "RBFSampler and RidgeClassifier"),
    ("linear SVM", "FeatureSVC", "scikit-learn's LinearSVC"),
    ("compressive features, Hadamard frequencies", "CompressiveFeatures", "scikit-learn, dense frequencies"),
    ("`linear_attention` in Python", "linear_attention, 16,384 tokens", "softmax attention in numpy"),
    ("curl-free features", "OperatorRidge, curl-free", "the exact kernel"),
    ("reading a CSV file", "reading CSV", "pandas.read_csv"),
]
WIDTH, LEFT, RIGHT, TOP, STEP = 760, 330, 80, 46, 30
TICKS = (1, 3, 10, 30, 100)
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.q{fill:#59636e;font-size:12px}.g{stroke:#d1d9e0}"
    ".b{fill:#3b6ea5}.r{stroke:#1f2328;stroke-width:1.5}"
)


def ratios() -> list[tuple[str, str, float, float]]:
    """Our name, theirs, and the lowest and the highest ratio that was measured."""
    lines = FIGURES.read_text(encoding="utf-8").splitlines()
    found = []
    for start, ours, theirs in ROWS:
        cells = next(line for line in lines if line.startswith(f"| {start}")).strip("| ").split(" | ")
        # Of two comparisons the second one is with other software; what stands in parentheses says more than a ratio.
        text = cells[-1].split(" (")[0].split("; ")[start.startswith("compressive")]
        numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text.split(" in ")[0])]
        found.append((ours, theirs, min(numbers), max(numbers)))
    return sorted(found, key=lambda row: -row[3])


def plot() -> str:
    rows = ratios()
    height = TOP + STEP * len(rows) + 12
    most = math.log(1.15 * max(high for *_, high in rows))

    def x(ratio: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio) / most, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Speed of bochner against what people use now</title>",
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{height}" fill="#fff" rx="6"/>',
        '<text x="12" y="20" font-weight="600">How many times as fast</text>',
    ]
    for tick in TICKS:
        parts.append(f'<line class="g" x1="{x(tick)}" x2="{x(tick)}" y1="{TOP - 10}" y2="{height - 10}"/>')
        parts.append(f'<text class="q" x="{x(tick)}" y="{TOP - 16}" text-anchor="middle">{tick}×</text>')
    for i, (ours, theirs, low, high) in enumerate(rows):
        y = TOP + STEP * i
        said = f"{low:g}×" if low == high else f"{low:g}–{high:g}×"
        parts.append(f'<text x="{LEFT - 10}" y="{y + 7}" text-anchor="end">{escape(ours)}</text>')
        parts.append(f'<text class="q" x="{LEFT - 10}" y="{y + 20}" text-anchor="end">against {escape(theirs)}</text>')
        parts.append(f'<rect class="b" x="{LEFT}" y="{y}" width="{round(x(low) - LEFT, 1)}" height="20" rx="2"/>')
        if high > low:
            parts.append(f'<line class="r" x1="{x(low)}" x2="{x(high)}" y1="{y + 10}" y2="{y + 10}"/>')
        parts.append(f'<text x="{x(high) + 6}" y="{y + 15}">{said}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    print(plot(), end="")
