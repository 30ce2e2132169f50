"""Progress on long fits: a bar where tqdm is installed, one line at the end where it is not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    verbose: int, name: str, total: int | None, unit: str = "rows"
) -> Iterator[Callable[[int, int | None], None] | None]:
    """A function to call with the number of rows done and their total, or None where nobody wants to know.

    `total` is what is done in all where the work itself does not know; without one, what was done is counted.
    """
    if not verbose:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        start, last = time.perf_counter(), 0

        def remember(done: int, _: int | None) -> None:
            nonlocal last
            last = done

        yield remember
        count, seconds = last if total is None else total, time.perf_counter() - start
        print(f"{name}: {count:,} {unit} in {seconds:.1f} s", file=sys.stderr)
        return
    with tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=True) as bar:

        def report(done: int, known: int | None) -> None:
            bar.total = total if known is None else known
            bar.update(done - bar.n)

        yield report
