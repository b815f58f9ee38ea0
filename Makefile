# Each target sets up what it needs: a clone, Python 3.11 or newer, pip and make are enough.
# `make help` lists them; .ci/run is what must pass before anything lands.

PYTHON ?= python3
# Quiet on what goes well: a machine's own pip settings warn at length.
PIP_FLAGS = -qq --disable-pip-version-check --require-virtualenv
UV_VERSION = 0.13.9

.DEFAULT_GOAL = help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: .venv/ready ## the main job against the simulator, before your eyes; ONCE=1 ends by itself
	.venv/bin/python -m tests.demo $(if $(ONCE),--once)

.PHONY: test
test: .venv/ready browser ## every test but the long proofs
	.venv/bin/pytest -q -m "not prove"

.PHONY: check
check: .venv/ready ## format, lint, types, import contracts, the manners of the house
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/pytest -q tests/house

.PHONY: prove
prove: .venv/ready .venv-thirdparty/ready ## the long proofs, trimmed to minutes; FULL=1 runs them whole
	FULL=$(FULL) .venv/bin/pytest -q -m prove

.PHONY: bench
bench: .venv/ready .venv-peers/ready ## speed and memory, each figure beside its peer
	.venv/bin/python -m tests.bench

.PHONY: sim
sim: .venv/ready ## simulated worlds: SEEDS=n HOURS=h; FRESH=1 for seeds that nobody has seen yet
	.venv/bin/python -m tests.simulation --seeds $(or $(SEEDS),10) --hours $(or $(HOURS),1) $(if $(FRESH),--fresh)

.PHONY: format
format: .venv/ready ## let ruff lay out the code and mend what it can
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

.PHONY: lock
lock: .venv-lock/ready ## resolve the dependencies anew; UPGRADE=1 takes newer releases
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) --group peers -o requirements-peers.lock
	.venv-lock/bin/uv pip compile $(LOCK_FLAGS) pyproject.toml --group thirdparty -c requirements.lock -o requirements-thirdparty.lock

# Every platform and Python that we support, in one file each; no address of any index.
LOCK_FLAGS = --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove what these targets made
	rm -rf .venv .venv-peers .venv-thirdparty .venv-lock .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
	find bot sender storage tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Browser tests need a Chromium. Root on a Debian gets it here; elsewhere those tests are skipped
# and say what to type, or fail under CI.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null || { \
		echo 'installing chromium for the browser tests'; \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null >/dev/null && \
		apt-get install -y -qq --no-install-recommends chromium </dev/null >/dev/null || \
		echo 'chromium could not be installed' >&2; }

.venv/ready: requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make PYTHON=python3.11 ...' >&2; exit 2; }
	test -x .venv/bin/pip || $(PYTHON) -m venv .venv
	.venv/bin/pip install $(PIP_FLAGS) --require-hashes -r requirements-dev.lock
	.venv/bin/pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

.venv-peers/ready: requirements-peers.lock
	test -x .venv-peers/bin/pip || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install $(PIP_FLAGS) --require-hashes -r requirements-peers.lock
	@touch $@

.venv-thirdparty/ready: requirements-thirdparty.lock
	test -x .venv-thirdparty/bin/pip || $(PYTHON) -m venv .venv-thirdparty
	.venv-thirdparty/bin/pip install $(PIP_FLAGS) --require-hashes -r requirements-thirdparty.lock
	@touch $@

.venv-lock/ready:
	test -x .venv-lock/bin/pip || $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install $(PIP_FLAGS) uv==$(UV_VERSION)
	@touch $@
