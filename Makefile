# `make demo` and `make test` need Python 3.11 or newer with its venv module, and nothing else: each sets up
# .venv from the lock files in requirements/ (hashes checked), does its job, and is quick the second time.

VENV := .venv
PYTHONS := python3.13 python3.12 python3.11 python3 python3.14 python3.15
PYTEST_ARGS :=
UV := uv

# What an environment was built for: the lock files, and this folder, since the scripts in .venv name it. A change
# of either gives the marks another name, so that .venv is built anew.
ID := $(shell { cat requirements/*.txt; pwd; } | cksum | cut -d ' ' -f 1)
PROJECT_ID := $(shell cksum < pyproject.toml | cut -d ' ' -f 1)
RUNTIME := $(VENV)/.runtime-$(ID)
DEV := $(VENV)/.dev-$(ID)
PROJECT := $(VENV)/.project-$(ID)-$(PROJECT_ID)

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-warn-script-location
LOCK := $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock'

# Nothing from outside may enter the environment, nor be installed elsewhere than into it.
unexport PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER

.NOTPARALLEL:
.PHONY: help demo test format golden lock clean

help:
	@echo 'make demo    score the bundled traces: no key, and no network once it is set up'
	@echo 'make test    lint, format, types, tests; PYTEST_ARGS="-k graph" picks among the tests'
	@echo 'make format  format the code, and fix what the linter can fix'
	@echo 'make golden  FRAMEWORK=langgraph: run that framework and record its golden fixtures anew'
	@echo 'make lock    pyproject.toml to requirements/ (needs uv); LOCK_ARGS=--upgrade takes the newest versions'
	@echo 'make clean   remove .venv, caches and builds'

demo: $(RUNTIME) $(PROJECT)
	@$(BIN)/counterpoint demo

test: $(DEV) $(PROJECT)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PYTEST_ARGS)

format: $(DEV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

golden: $(DEV) $(PROJECT)
	$(BIN)/python tests/golden/regenerate/run.py $(FRAMEWORK)

lock:
	$(LOCK) --group build --output-file requirements/runtime.txt $(LOCK_ARGS)
	$(LOCK) --extra dev --constraint requirements/runtime.txt --output-file requirements/dev.txt $(LOCK_ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks build dist

# The interpreter that .venv was made with is gone or newer than it: the marks that depend on this are out of date.
$(BIN)/python: ;

# A name on the PATH proves little (a shim without a version behind it, a Python without ensurepip): the first
# interpreter that really makes an environment is taken.
$(RUNTIME): $(BIN)/python
	@echo 'Setting up $(VENV) (once; about 200 MB are fetched) ...' >&2
	@for python in $(PYTHONS); do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		"$$python" -m venv --clear $(VENV) >/dev/null 2>&1 || continue; \
		$(BIN)/python -m pip --version >/dev/null 2>&1 && exit 0; \
	done; \
	echo 'make: no Python >= 3.11 that can make an environment among: $(PYTHONS).' \
		'Install one with its venv module (Debian: python3-venv), or name it: make PYTHONS=/path/to/python3' >&2; \
	exit 1
	@$(INSTALL) --require-hashes -r requirements/runtime.txt
	@touch $@

$(DEV): $(RUNTIME)
	@echo 'Adding the development tools to $(VENV) (about 100 MB more) ...' >&2
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(PROJECT): $(RUNTIME)
	@$(INSTALL) --no-deps --no-build-isolation --no-index --editable .
	@touch $@
