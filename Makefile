# dpmem: `make demo` shows the main job on a real dpnp program, `make test` passes the tests. Both set everything up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
VENV019 := .venv-dpnp019
PY := $(VENV)/bin/python
STAMPS := target/stamps
PIP := pip install --quiet --disable-pip-version-check

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed) pyproject.toml

.PHONY: all setup setup-019 wheel demo test check bench soak fuzz clean
all: setup

# --- environments ---------------------------------------------------------------------------------------------
$(STAMPS)/venv: requirements/dpnp-0.20.txt requirements/dev.txt
	@mkdir -p $(STAMPS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "dpmem needs Python 3.10 or later: make PYTHON=python3.11 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/$(PIP) -r requirements/dpnp-0.20.txt -r requirements/dev.txt
	@touch $@

$(STAMPS)/venv019: requirements/dpnp-0.19.txt requirements/dev.txt
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV019)
	$(VENV019)/bin/$(PIP) -r requirements/dpnp-0.19.txt -r requirements/dev.txt
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
