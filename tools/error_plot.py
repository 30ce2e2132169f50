"""The picture of README.md and the guide's front page: errors of a kernel matrix, as predicted and as measured.

    python tools/error_plot.py PROGRAM > docs/_static/kernel-error.svg

`bochner compare` measures them on handwritten digits; some of its maps are shown.
"""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DIGITS = Path(__file__).parents[1] / "crates" / "bochner-cli" / "data" / "digits-images-idx3-ubyte.gz"
SIZES = (128, 256, 512, 1024, 2048)
MAPS = {"Fourier, dense": ("independent frequencies", "#3b6ea5"), "Fourier, orthogonal": ("orthogonal frequencies", "#c4622d")}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 330, 70, 190, 40, 44
TICKS = (0.01, 0.02, 0.05, 0.1)
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.q{fill:#59636e;font-size:12px}.g{stroke:#d1d9e0}"
    ".p{fill:none;stroke-dasharray:6 4;stroke-width:1.6}.r{stroke-width:1.6}"
)


def measured(program: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        sizes = ",".join(map(str, SIZES))
        line = [program, "compare", DIGITS, "--rows", "500", "--features", sizes, "--draws", "10", "--out", folder, "--quiet"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        found = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
        return found["maps"] if isinstance(found, dict) else found


def x(size: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(size / 100) / math.log(2400 / 100), 1)


def y(error: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * math.log(0.12 / error) / math.log(0.12 / 0.007), 1)


def plot(entries: list[dict[str, Any]]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Error of the kernel matrix against the number of features</title>",
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff" rx="6"/>',
        '<text x="12" y="22" font-weight="600">Relative error of the kernel matrix</text>',
    ]
    for tick in TICKS:
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text class="q" x="{LEFT - 8}" y="{y(tick) + 4}" text-anchor="end">{100 * tick:g} %</text>')
    for size in SIZES:
        parts.append(f'<text class="q" x="{x(size)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text class="q" x="{x(512)}" y="{HEIGHT - 8}" text-anchor="middle">number of features</text>')
    for name, (label, color) in MAPS.items():
        rows = [entry for entry in entries if entry["map"] == name]
        line = " ".join(f"{x(row['features'])},{y(row['predicted'])}" for row in rows)
        parts.append(f'<path class="p" stroke="{color}" d="M{line}"/>')
        for row in rows:
            at, low, high = x(row["features"]), row["error"] - row["deviation"], row["error"] + row["deviation"]
            parts.append(f'<line class="r" stroke="{color}" x1="{at}" x2="{at}" y1="{y(low)}" y2="{y(high)}"/>')
            parts.append(f'<circle fill="{color}" cx="{at}" cy="{y(row["error"])}" r="4.5"/>')
        end = rows[-1]
        parts.append(f'<text x="{x(end["features"]) + 14}" y="{y(end["predicted"]) + 4}">{label}</text>')
    left = WIDTH - RIGHT - 150
    parts.append(f'<path class="p" stroke="#59636e" d="M{left},22 {left + 36},22"/><text class="q" x="{left + 44}" y="26">predicted</text>')
    parts.append(f'<circle fill="#59636e" cx="{left + 130}" cy="22" r="4.5"/><text class="q" x="{left + 142}" y="26">measured</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    print(plot(measured(sys.argv[1])), end="")
