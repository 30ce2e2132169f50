# make test    every test: Rust (unit, property, statistical, doc), then the wheel in a private environment and its tests
# make bench   ratios against references on this machine; PEERS=1 adds numpy and scikit-learn
# make docs    the pages of the Rust interface and the guide (docs/_build/html/index.html), warnings as errors
# make lint    formatting, ruff, mypy and clippy
# make fuzz    every reader, the model loader, checkpoints and arguments with cargo-fuzz, SECONDS=600 each
# make sanitize   tests of tiles, products and transforms, where all unsafe code is, under AddressSanitizer
# make check-long   tests that take minutes: moved seed ladders, large sizes
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What builds the wheel, and what the peers of the benchmarks need; the wheel's `test` extra lists what its tests need.
PYTHON_TOOLS := "maturin>=1.9,<2" "numpy>=1.26" "scipy>=1.11" "scikit-learn>=1.6"

.PHONY: test test-rust test-python test-torch wheel check-long sanitize types bench docs docs-rust docs-guide which-map command-pages pictures lint fuzz clean
.DELETE_ON_ERROR:

# Nightly options of the compiler.
UNLOCKED_CARGO := $(shell cargo +nightly --version >/dev/null 2>&1 && echo "cargo +nightly" || echo "env RUSTC_BOOTSTRAP=1 cargo")

test: test-rust test-python

test-rust:
	cargo test --workspace --exclude bochner-python

test-python: wheel
	$(BIN)/python -m pip install --quiet "$$(echo $(VENV)/wheels/*.whl)[test]"
	$(BIN)/python -m pytest -q python/tests --ignore python/tests/test_torch.py
	@$(MAKE) --no-print-directory test-torch

# Torch lives in an environment of its own; without one, a sentence says so.
TORCH := $(VENV)/torch
test-torch: wheel
	@if [ -e $(TORCH)/.ready ] || { tools/torch_environment.sh $(TORCH) $(BIN)/python -m pip && touch $(TORCH)/.ready; }; then \
		$(BIN)/python -m pip --python $(TORCH)/bin/python install --quiet --no-deps --force-reinstall $(VENV)/wheels/*.whl && \
		$(TORCH)/bin/python -m pytest -q python/tests/test_torch.py; fi

# The development profile is optimised, and shares what the Rust tests have compiled.
wheel: $(VENV)/.ready
	rm -rf $(VENV)/wheels
	$(BIN)/maturin build --profile dev --manifest-path python/Cargo.toml --interpreter $(BIN)/python --out $(VENV)/wheels
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall $(VENV)/wheels/*.whl

$(VENV)/.ready: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "maturin>=1.9,<2"
	touch $@

check-long: types sanitize
	cargo test --release --workspace --exclude bochner-python -- --include-ignored
	cargo test --release --package bochner --test on_data -- --include-ignored --nocapture
	BOCHNER_LONG=1 $(BIN)/python -m pytest -q python/tests/test_interrupt.py
	$(BIN)/python docs/which_map.py | diff docs/guide/which_map_tables.md -

# AddressSanitizer sees what reaches beyond its memory. Nightly Rust where it is installed, otherwise the stable compiler with its
# nightly options unlocked; in a folder of its own, since everything is compiled for it. Linux on x86-64 only.
SANITIZED := x86_64-unknown-linux-gnu
sanitize:
	@if [ "$$(rustc -vV | sed -n 's/^host: //p')" != $(SANITIZED) ]; then echo "sanitize: skipped, needs $(SANITIZED)"; else \
		RUSTFLAGS="-Zsanitizer=address" $(UNLOCKED_CARGO) test --package bochner --lib --target $(SANITIZED) \
			--target-dir target/sanitize -- linalg:: projection:: ; fi

# The stubs of parameters from the catalogue, the package against its annotations, and the extension against its stubs (whose
# names python/tests/test_stubs.py lists).
types: wheel
	$(BIN)/python tools/python_stubs.py > python/py_src/bochner/_signatures.pyi
	$(BIN)/python -m pip install --quiet "mypy>=1.18" "$$(echo $(VENV)/wheels/*.whl)[plot]"
	$(BIN)/python -m mypy --config-file python/pyproject.toml python/py_src/bochner
	echo 'bochner\._bochner\.__all__' > $(VENV)/stubtest.allow
	$(BIN)/python -m mypy.stubtest --allowlist $(VENV)/stubtest.allow bochner._bochner

bench: $(if $(PEERS),$(VENV)/.ready)
	$(if $(PEERS),$(BIN)/python -m pip install --quiet numpy scikit-learn pandas)
	cargo run --release -- bench --full $(if $(PEERS),--peers $(BIN)/python)

docs: docs-rust docs-guide

docs-rust:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude bochner-python --no-deps

# Needs the wheel: the reference is read from it, and it draws the figures.
docs-guide: wheel
	$(BIN)/python -m pip install --quiet "$$(echo $(VENV)/wheels/*.whl)[docs]"
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

# Measured anew; the same numbers on every machine.
which-map: wheel
	$(BIN)/python -m pip install --quiet "$$(echo $(VENV)/wheels/*.whl)"
	$(BIN)/python docs/which_map.py > docs/guide/which_map_tables.md

# Pages about commands and pictures that are kept in git, made anew.
command-pages:
	cargo build --package bochner-cli
	$(PYTHON) tools/command_pages.py $${CARGO_TARGET_DIR:-target}/debug/bochner

pictures: wheel
	$(BIN)/python tools/speed_plot.py > docs/_static/speed.svg
	$(BIN)/python docs/random_features_plot.py > docs/_static/random-features.svg
	cargo build --package bochner-cli
	$(BIN)/python tools/error_plot.py $${CARGO_TARGET_DIR:-target}/debug/bochner > docs/_static/kernel-error.svg

SECONDS ?= 600
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/src/bin/*.rs)))

# Needs `cargo install cargo-fuzz`. Nightly Rust where it is installed, otherwise the stable compiler with its nightly options
# unlocked. Without a sanitiser: readers and loader have no unsafe code, and what is searched for are panics, overflows, hangs
# and memory. What the fuzzer finds interesting goes to fuzz/found; the small files it starts from stay in fuzz/corpus.
fuzz:
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/found/$$target fuzz/corpus/$$target && \
		$(UNLOCKED_CARGO) fuzz run --sanitizer none $$target fuzz/found/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(SECONDS) -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 || exit 1; \
	done

# The cheap ones first.
lint: $(VENV)/.linters
	cargo fmt --all --check
	$(BIN)/ruff check --quiet --config python/pyproject.toml python tools docs benches
	$(BIN)/python -m mypy --config-file python/pyproject.toml python/py_src/bochner
	cargo clippy --workspace --all-targets -- -D warnings

$(VENV)/.linters: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet "ruff>=0.14" "mypy>=1.19" "numpy>=2" "matplotlib>=3.8"
	touch $@

clean:
	cargo clean
	rm -rf $(VENV)
