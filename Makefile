# Everything a person needs to try, test and judge Quorate. `make` alone lists it.
#
# Plain users build into ./target; CARGO_TARGET_DIR is obeyed if it is set.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup run test build verify fix bench burst

# Compilers and RocksDB of this machine, in every recipe.
ENV := . scripts/env.sh;
# What the end-to-end tests and the loads run as processes.
BINARIES := -p quorate-server -p quorate-shim -p quorate-ctl
ARGS ?=

help: ## List these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

setup: ## Install what is missing on this machine (Debian; as root)
	@scripts/setup.sh

run: setup ## Show a cluster at work: pods, a killed leader, nothing left (KEEP=1 leaves it up)
	@scripts/run.sh

build: setup ## Build the binaries into target/debug
	@$(ENV) cargo build --locked $(BINARIES)

# Binaries first, since tests run them; together with the tests, so that what both depend on is
# compiled once, with the features that tests add.
test: setup ## Run every test, the real binaries included
	@$(ENV) cargo build --workspace --bins --tests --locked
	@$(ENV) cargo test --workspace --locked $(ARGS)

verify: ## Judge without changing anything: format, lints, licences, documents
	@scripts/setup.sh verify
	@scripts/verify.sh

fix: ## Change what can be changed by itself: format, and lints with a mechanical cure
	@scripts/setup.sh lint
	@$(ENV) cargo clippy --workspace --all-targets --locked --fix --allow-dirty --allow-staged
	@$(ENV) cargo fmt --all

bench: setup ## Measure fdatasync, one allocation, and many (ARGS="--seconds 5")
	@$(ENV) cargo build --release --locked $(BINARIES) -p quorate-jepsen
	@$(ENV) cargo run --release --locked -q -p quorate-jepsen -- bench $(ARGS)

burst: setup ## 500 pods at once, up and down, beside host-local (ARGS="--adds 500")
	@$(ENV) cargo build --release --locked $(BINARIES) -p quorate-jepsen
	@$(ENV) cargo run --release --locked -q -p quorate-jepsen -- burst $(ARGS)
