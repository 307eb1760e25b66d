# dpmem: `make demo` shows the main job on a real dpnp program, `make test` passes the tests. Both set everything up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
VENV019 := .venv-dpnp019
PY := $(VENV)/bin/python
STAMPS := target/stamps
# A workspace of its own, so that neither the wheel nor `--workspace` has to do with it; the tests build it when they use it.
SIMULATED := --manifest-path testing/simulated-devices/Cargo.toml --target-dir target/simulated
PIP := pip install --quiet --disable-pip-version-check

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python packaging -name '*.py' -o -name '*.pyi' -o -name py.typed -o -path packaging/scripts/dpmem) pyproject.toml

.PHONY: all setup setup-019 wheel demo test check bench soak fuzz clean
all: setup

# --- environments ---------------------------------------------------------------------------------------------
$(STAMPS)/venv: requirements/dpnp-0.20.txt requirements/dev.txt requirements/test.txt requirements/notebook.txt
	@mkdir -p $(STAMPS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "dpmem needs Python 3.10 or later: make PYTHON=python3.11 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/$(PIP) -r requirements/dpnp-0.20.txt -r requirements/dev.txt -r requirements/notebook.txt
	@touch $@

$(STAMPS)/venv019: requirements/dpnp-0.19.txt requirements/dev.txt requirements/test.txt requirements/notebook-8.txt
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV019)
	$(VENV019)/bin/$(PIP) -r requirements/dpnp-0.19.txt -r requirements/dev.txt -r requirements/notebook-8.txt
	@touch $@

$(STAMPS)/wheel: $(STAMPS)/venv $(RUST_SOURCES) $(PYTHON_SOURCES)
	@rm -rf target/wheels
	$(VENV)/bin/maturin build --quiet --release --locked --compatibility linux --interpreter $(PY) --out target/wheels
	@touch $@

$(STAMPS)/installed: $(STAMPS)/wheel
	$(VENV)/bin/$(PIP) --no-deps --force-reinstall target/wheels/dpmem-*.whl
	@touch $@

$(STAMPS)/installed019: $(STAMPS)/wheel $(STAMPS)/venv019
	$(VENV019)/bin/$(PIP) --no-deps --force-reinstall target/wheels/dpmem-*.whl
	@touch $@

wheel: $(STAMPS)/wheel
setup: $(STAMPS)/installed
setup-019: $(STAMPS)/installed019

# --- what people run ------------------------------------------------------------------------------------------
demo: setup
	@echo "== dpmem run examples/leaky_training.py"
	@cd examples && ../$(VENV)/bin/dpmem run leaky_training.py

# Interpreters beside the main one, wherever pyenv or the system has them: frames and truth are tested on each.
OTHERS := $(foreach v,3.10 3.12 3.13 3.14,$(firstword $(wildcard $(HOME)/.pyenv/versions/$(v).*/bin/python) $(shell command -v python$(v) 2>/dev/null)))

# Two processes at a time; the corpus of findings does that by itself.
PARALLEL := --numprocesses 2 --dist worksteal

check: $(STAMPS)/installed
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	cargo fmt --manifest-path testing/simulated-devices/Cargo.toml --check
	cargo clippy --quiet --all-targets --locked $(SIMULATED) -- -D warnings
	sh .ci/unsafe-rules
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --quiet --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m mypy.stubtest dpmem._native --mypy-config-file pyproject.toml
	cargo test --quiet --workspace --locked
	$(PY) -m pytest -q tests/frames tests/api

test: setup setup-019
	cargo test --quiet --workspace --locked
	cargo test --quiet --release --locked $(SIMULATED)
	RUSTFLAGS="--cfg loom" cargo test --quiet --release --locked -p dpmem-core --lib --target-dir target/loom
	$(PY) -m pytest -q $(PARALLEL) tests --ignore tests/soak --ignore tests/findings
	$(PY) -m pytest -q tests/findings
	DPMEM_TEST_INTERPRETERS=this $(VENV019)/bin/python -m pytest -q $(PARALLEL) tests/api tests/hook tests/frames tests/holders tests/notebook tests/pool tests/chunks/test_chunks.py
	@for python in $(OTHERS); do sh .ci/other-python $$python || exit 1; done

bench: setup
	$(VENV)/bin/$(PIP) -r requirements/bench.txt
	$(PY) bench/run.py

soak: setup setup-019
	$(PY) -m pytest -q tests/soak --timeout 7200

# libFuzzer's instrumentation, as cargo-fuzz would give it; every target runs for a minute on what it found before.
FUZZ_FLAGS := --cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ_SECONDS ?= 60
FUZZ_TRIPLE := x86_64-unknown-linux-gnu

fuzz:
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target $(FUZZ_TRIPLE) --target-dir target/fuzz
	@for target in $(FUZZ_TARGETS); do \
	    echo "== fuzz $$target"; mkdir -p target/fuzz/corpus/$$target; \
	    target/fuzz/$(FUZZ_TRIPLE)/release/$$target -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1 \
	        -artifact_prefix=target/fuzz/ target/fuzz/corpus/$$target || exit 1; \
	done

clean:
	rm -rf target $(VENV) $(VENV019) .venv-3.*
