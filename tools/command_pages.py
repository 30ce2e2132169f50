"""The guide's pages about commands, from the program itself: its help, and what an example printed.

    python tools/command_pages.py PROGRAM
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "guide" / "commands"
# A table that awk makes everywhere: numbers and words, and prices that follow from them.
HOUSES = """\
awk 'BEGIN { print "area,rooms,district,price"; split("north east south west", d, " "); for (i = 1; i <= 600; i++) {
  a = 40 + 160 * (i * 0.618 % 1); r = 1 + int(a / 40 + i * 0.755 % 1); w = 1 + int(i * 0.32 % 1 * 4)
  printf "%.0f,%d,%s,%.0f\\n", a, r, d[w], 1000 * (a * (2 + w / 4) + 20 * r + 30 * (i * 0.17 % 1)) } }' > houses.csv
"""
FIT = "bochner fit houses.csv --target price --budget 2"
# What each page shows: what comes before, and the line whose output is shown. None: what the line does is not for a page.
EXAMPLES: dict[str, tuple[str, str] | None] = {
    "fit": (HOUSES, FIT),
    "predict": (HOUSES + FIT + " --quiet\nhead -n 6 houses.csv > new.csv\n", "bochner predict houses.bochner new.csv --interval 0.9"),
    "inspect": (HOUSES + FIT + " --quiet\n", "bochner inspect houses.bochner"),
    "transform": (HOUSES, "bochner transform houses.csv --columns area,rooms --features 4 --out features.csv && head -n 4 features.csv"),
    "compare": (HOUSES, "bochner compare houses.csv --target price --features 256,1024 --draws 2"),
    "plan": (HOUSES, "bochner plan houses.csv --target price --error 0.05"),
    "demo": None,
    "reproduce": ("", "bochner reproduce"),
    "bench": None,
    "data": ("", "bochner data list"),
    "completions": ("", "bochner completions bash > bochner.bash && head -n 3 bochner.bash"),
    "man": ("", "bochner man --dir man && ls man"),
}
# Help is folded at this width.
COLUMNS = "100"


def run(line: str, program: Path, folder: str) -> str:
    """What a line of shell prints, remarks included."""
    known = {name: value for name, value in os.environ.items() if name != "BOCHNER_DATA"}
    environment = known | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": COLUMNS, "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stdout}")
    return "".join(f"{text.rstrip()}\n" for text in done.stdout.splitlines())


def commands(program: Path) -> list[str]:
    """The names of all commands, as the program lists them."""
    text = run("bochner --help", program, ".")
    listed = text[text.index("Commands:\n") :].split("\n\n")[0].splitlines()[1:]
    return [line.split()[0] for line in listed if line.startswith("  ") and not line.startswith("   ")]


def help_of(command: str, program: Path) -> str:
    return run(f"bochner {command} --help", program, ".")


def page(command: str, program: Path) -> str:
    text = help_of(command, program)
    parts = [f"# bochner {command}", text.split("\n")[0]]
    shown = EXAMPLES.get(command)
    if shown:
        before, line = shown
        with tempfile.TemporaryDirectory() as folder:
            if before:
                run(before, program, folder)
            said = run(line, program, folder)
        parts += ["## An example", f"```sh\n{before}{line}\n```", f"```text\n{said}```"]
    return "\n\n".join([*parts, "## Help", f"```text\n{text}```"]) + "\n"


def main() -> None:
    program = Path(sys.argv[1]).resolve()
    PAGES.mkdir(exist_ok=True)
    for command in commands(program):
        (PAGES / f"{command}.md").write_text(page(command, program), encoding="utf-8")


if __name__ == "__main__":
    main()
