"""Progress on long fits: a bar where tqdm is installed, one line at the end where it is not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    verbose: int, name: str, total: int | None, unit: str = "rows"
) -> Iterator[Callable[[int], None] | None]:
    """A function to call with the number of rows read, or None where nobody wants to know.

    Without a total, which iterations do not know, what was done is counted.
    """
    if not verbose:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        start, last = time.perf_counter(), 0

        def remember(done: int) -> None:
            nonlocal last
            last = done

        yield remember
        count, seconds = last if total is None else total, time.perf_counter() - start
        print(f"{name}: {count:,} {unit} in {seconds:.1f} s", file=sys.stderr)
        return
    with tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=True) as bar:

        def report(done: int) -> None:
            if total is not None:
                # Iterative solvers read the rows several times; how often is known at the end.
                bar.total = total * max(1, -(-done // total))
            bar.update(done - bar.n)

        yield report
