# SPDX-License-Identifier: GPL-3.0-or-later
# `make demo` and `make test` set up everything they need; run them as root on Debian or Ubuntu.
SHELL := /bin/bash
ENGINE ?= real
VENV := .venv
READY := $(VENV)/.ready
PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PATH ENGINE

.PHONY: help setup lab lab-down demo test test-all test-code lint unit monitoring evaluation proxy sanity contract molecule e2e bench-plan bench-metrics bench-rollout bench-proxy report-pictures clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## the tools, in .venv

$(READY): requirements/dev.txt tests/setup.sh
	tests/setup.sh $(VENV)
	@touch $@

lab: $(READY) ## two engine hosts, a proxy and a registry on this machine
	python tests/lab up --engine $(ENGINE)

lab-down: $(READY) ## end the lab; caches stay
	python tests/lab down

demo: $(READY) ## the main job on the lab, with its report (ENGINE=stand-in: in a minute)
	python tests/e2e/demo.py --engine $(ENGINE)

test: $(READY) ## everything that CI runs
	python tests/lab up --engine both
	$(MAKE) --jobs=2 --output-sync=recurse test-code molecule
	$(MAKE) e2e

test-all: ## the same with every story and every kill of the controller, not only today's
	GB10_STORIES=all GB10_KILL_SAMPLE=all $(MAKE) test

# Goes well beside molecule: this keeps a core busy, that mostly waits for the lab's hosts.
test-code: $(READY)
	$(MAKE) lint
	@# Those of the plugins run under sanity.
	pytest tests/unit --ignore tests/unit/plugins
	$(MAKE) monitoring
	$(MAKE) evaluation
	$(MAKE) proxy
	$(MAKE) sanity
	$(MAKE) contract

lint: $(READY) ## ruff, mypy, yamllint, ansible-lint, changelog, our own checks
	ruff check .
	ruff format --check .
	tests/lint/types.sh
	yamllint --strict .
	ansible-lint --offline --strict
	antsibull-changelog lint
	python tests/lint/consistency.py

unit: $(READY) ## fast tables
	pytest tests/unit

monitoring: $(READY) ## every rule, alert and dashboard, tried with promtool
	pytest tests/monitoring

evaluation: $(READY) ## the tool-call suite itself before a stand-in that calls tools badly in each way
	pytest tests/evaluation

proxy: $(READY) ## the role's nginx configuration before copies that misbehave, with a table
	pytest tests/proxy

sanity: $(READY) ## ansible-test sanity, and the unit tests as ansible-test runs them
	tests/lint/sanity.sh

contract: $(READY) ## the same assertions for the stand-in and for the real engine
	pytest tests/contract tests/memory

molecule: $(READY) ## stories of the roles, on lab hosts (GB10_STORIES=all: every one)
	GB10_STORIES=$${GB10_STORIES:-today} tests/molecule.sh

e2e: $(READY) ## stories of whole rollouts under load, good and bad (GB10_STORIES=all GB10_KILL_SAMPLE=all: every one)
	GB10_STORIES=$${GB10_STORIES:-today} pytest -s -m real tests/e2e
	GB10_STORIES=$${GB10_STORIES:-today} pytest -rP --numprocesses 2 --dist loadfile -m 'not real' tests/e2e

bench-plan: $(READY) ## the memory plan against figures from public logs (OBSERVATIONS=FILE for others)
	python tests/benchmarks/bench_plan.py $(if $(OBSERVATIONS),--observations $(OBSERVATIONS))

bench-metrics: $(READY) ## what reading and summing the metrics of 2, 16 and 64 copies costs
	python tests/benchmarks/bench_metrics.py

bench-rollout: $(READY) ## what a cutover costs beside the engine's own start, and the same by hand (ENGINE=stand-in: faster)
	python tests/benchmarks/bench_rollout.py --engine $(ENGINE)

bench-proxy: $(READY) ## what the proxy adds to a small request, beside a plain nginx and HAProxy
	python tests/benchmarks/bench_proxy.py

report-pictures: $(READY) ## pictures of sample reports in Chromium, at the widths of a desk and a telephone
	python tests/report/pictures.py reports/pictures

clean: ## what the tools leave behind
	rm -rf $(VENV) .ansible .pytest_cache .mypy_cache .ruff_cache dist
