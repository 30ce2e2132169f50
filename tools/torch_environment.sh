#!/bin/sh
# tools/torch_environment.sh DIR PIP...: an environment in DIR whose Python has torch for the CPU, for the tests of bochner.torch.
#
# PyPI's torch for Linux comes with libraries for graphics cards, some gigabytes of them. Debian's (python3-torch, 150 MB with all it
# needs) belongs to the system's Python, so the environment sees the system's packages; root has it installed where it is missing.
# TORCH_PYTHON names another Python that has torch. PIP... is a pip that installs into another Python (`python -m pip`, 22.3 or newer).
set -eu
dir=$1
shift
python=${TORCH_PYTHON:-/usr/bin/python3}

has_torch() {
	"$python" -c 'import sys, torch; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if ! has_torch && [ -z "${TORCH_PYTHON:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-torch; } >&2 || true
fi
if ! has_torch; then
	echo "make: $python has no torch, or is older than Python 3.11: tests of bochner.torch are skipped." \
		"Install it (apt-get install python3-torch), or name a Python that has it: make TORCH_PYTHON=..." >&2
	exit 1
fi
# Torch works with the numpy it was compiled against: not one of the next major version.
next=$("$python" -c 'import numpy; print(int(numpy.__version__.split(".")[0]) + 1)')
rm -rf "$dir"
"$python" -m venv --without-pip --system-site-packages "$dir"
"$@" --python "$dir/bin/python" install --quiet "numpy>=1.26,<$next" "scipy>=1.11" "scikit-learn>=1.6" "pytest>=8"
