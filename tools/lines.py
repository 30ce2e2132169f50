"""Lines of Rust and Python per area, tests and data apart: what the size of the project is measured by.

Counted are all lines of tracked .rs and .py files outside of tests, fuzz targets, benches, examples, documentation and
tools; in Rust files `#[cfg(test)] mod … { … }` does not count.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

APART = ("tests", "fuzz", "benches", "examples", "docs", "tools")


def without_tests(lines: list[str]) -> int:
    """Lines outside of test modules, which end with a brace in the column they begin in."""
    count, inside = 0, False
    for number, line in enumerate(lines):
        if line.startswith("#[cfg(test)]") and lines[number + 1].startswith("mod ") and lines[number + 1].endswith("{"):
            inside = True
        count += not inside
        if inside and line == "}":
            inside = False
    return count


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    areas: Counter[str] = Counter()
    for name in listed:
        path = Path(name)
        apart = any(part in APART for part in path.parts) or path.name in ("tests.rs", "build.rs")
        if path.suffix not in (".rs", ".py") or apart or not (root / path).exists():
            continue
        lines = (root / path).read_text().splitlines()
        area = "/".join(path.parts[:2])
        areas[area] += without_tests(lines) if path.suffix == ".rs" else len(lines)
    for area, count in sorted(areas.items()):
        print(f"{count:7,}  {area}")
    print(f"{sum(areas.values()):7,}  in all")


if __name__ == "__main__":
    main()
