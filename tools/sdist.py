"""Makes the source distribution of the Python package, which builds with ``--locked``.

    python tools/sdist.py FOLDER

`maturin sdist` takes the crates that the package needs, with the lock file of all crates. Cargo calls such a lock file out of date;
here it loses what the package does not use, and nothing in it changes otherwise.
"""

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def locked(lock: str) -> set[str]:
    """The packages of a lock file, with their versions and checksums."""
    kept = ("name", "version", "source", "checksum")
    parts = lock.split("[[package]]")[1:]
    return {"\n".join(line for line in part.splitlines() if line.startswith(kept)) for part in parts}


def main(folder: Path) -> Path:
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        subprocess.run(["maturin", "sdist", "-m", ROOT / "python" / "Cargo.toml", "--out", work], check=True, stdout=subprocess.DEVNULL)
        made = next(work.glob("*.tar.gz"))
        with tarfile.open(made) as archive:
            archive.extractall(work, filter="data")
        tree = work / made.name.removesuffix(".tar.gz")
        lock = tree / "Cargo.lock"
        before = lock.read_text(encoding="utf-8")
        cargo = ["cargo", "metadata", "--format-version", "1", "--manifest-path", tree / "Cargo.toml"]
        subprocess.run(cargo, check=True, stdout=subprocess.DEVNULL)
        after = lock.read_text(encoding="utf-8")
        if not locked(after) <= locked(before):
            raise SystemExit("Cargo.lock would change: run cargo update --workspace first")
        # The same archive with the shorter lock file.
        folder.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        with tarfile.open(made) as archive, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out:
            for member in archive.getmembers():
                data = archive.extractfile(member)
                content = data.read() if data else b""
                if member.name == f"{tree.name}/Cargo.lock":
                    content = after.encode()
                    member.size = len(content)
                out.addfile(member, io.BytesIO(content) if member.isfile() else None)
        result = folder / made.name
        result.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
        return result


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
