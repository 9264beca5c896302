#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# mypy sees the collection under its real name through .collections, so that imports of ansible_collections resolve.
# The programs of the tests import their neighbours by plain names, so each is checked in its own folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
settings=$PWD/pyproject.toml
mypy --config-file "$settings" -p ansible_collections.gb10.vllm.plugins
for folder in tests/lab tests/e2e tests/lint; do
    (cd "$folder" && MYPYPATH=. mypy --config-file "$settings" ./*.py)
done
mypy --config-file "$settings" -p ansible_collections.gb10.vllm.tests.proxy
mypy --config-file "$settings" tests/standin/vllm_standin.py
mypy --config-file "$settings" roles/proxy/files/gb10_vllm_hold.py
