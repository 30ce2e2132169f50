"""Every fenced block of the README files and the guide runs.

Blocks of a page share one folder and, in Python, one set of names, from top to bottom. `python` runs here, `sh` in bash with the
program of this checkout, `rust` as a documentation test of the crate that includes the page. `text` is what something printed. A
block that cannot run says so in a comment before it, ``<!-- not run: why -->``, and is counted here.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import the_program
from matplotlib import pyplot

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
# Pages whose blocks test_torch.py and test_jax.py run, where the libraries are.
ELSEWHERE = [ROOT / "docs" / "guide" / "networks.md"]
HERE = [page for page in PAGES if page not in ELSEWHERE]
# How many blocks of a page are not run.
NOT_RUN = {"README.md": 1, "docs/guide/command_line.md": 1, "docs/guide/getting_started.md": 1, "python/README.md": 1}
BLOCK = re.compile(r"^(?P<why><!-- not run: .+ -->\n)?(?P<fence>`{3,})(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)\s*$", re.M | re.S)


def blocks(path):
    """Line, kind, text and the reason why it is not run, of every block."""
    page = path.read_text(encoding="utf-8")
    for found in BLOCK.finditer(page):
        yield page[: found.start("text")].count("\n") + 1, found["kind"], found["text"], found["why"]


def name(path):
    return path.relative_to(ROOT).as_posix()


def run_shell(text, folder):
    path = os.pathsep.join([str(the_program().parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "BOCHNER_DATA": str(folder)}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("path", [p for p in HERE if any(b[1] in ("python", "sh") for b in blocks(p))], ids=name)
def test_snippets_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, kind, text, why in blocks(path):
        if why:
            continue
        if kind == "python":
            # Line numbers of a failure are those of the page.
            exec(compile("\n" * (line - 1) + text, str(path), "exec"), names)
        elif kind == "sh":
            run_shell(text, tmp_path)
    pyplot.close("all")


def test_every_block_is_of_a_kind_that_runs_or_is_no_code():
    known = ("python", "sh", "rust", "text", "{toctree}", "{include} which_map_tables.md")
    for path in PAGES:
        for line, kind, _, _ in blocks(path):
            assert kind in known or kind.startswith("{literalinclude} "), f"{name(path)}:{line}: a block of kind {kind!r} is not run; known: {', '.join(known)}"


def test_few_blocks_are_not_run_and_all_are_known():
    found = {name(path): sum(why is not None for *_, why in blocks(path)) for path in PAGES}
    assert {page: count for page, count in found.items() if count} == NOT_RUN


def test_pages_with_rust_are_documentation_tests():
    included = (ROOT / "crates" / "bochner" / "src" / "lib.rs").read_text(encoding="utf-8")
    for path in PAGES:
        if any(kind == "rust" for _, kind, _, _ in blocks(path)):
            assert f'include_str!("../../../{name(path)}")' in included, name(path)


def tool(file):
    spec = importlib.util.spec_from_file_location(file, ROOT / "tools" / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_of_commands_show_the_help_of_the_program():
    pages = tool("command_pages")
    here = the_program()
    commands = pages.commands(here)
    assert sorted(path.stem for path in pages.PAGES.glob("*.md")) == sorted(commands)
    for command in commands:
        text = (pages.PAGES / f"{command}.md").read_text(encoding="utf-8")
        assert f"## Help\n\n```text\n{pages.help_of(command, here)}```" in text, f"{command}: run make command-pages"


def test_the_plot_of_speeds_shows_the_measured_figures():
    assert (ROOT / "docs" / "_static" / "speed.svg").read_text(encoding="utf-8") == tool("speed_plot").plot()


def test_links_between_pages_lead_somewhere():
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", BLOCK.sub("", page)):
            # What the guide generates is checked when it is built.
            if "://" not in link and "generated/" not in link:
                assert (path.parent / link).exists(), f"{name(path)} links to {link}"
