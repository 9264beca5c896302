#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# mypy sees the collection under its real name through .collections, so that imports of ansible_collections resolve.
set -euo pipefail
cd "$(dirname "$0")/../.."
mypy --config-file pyproject.toml -p ansible_collections.gb10.vllm.plugins
mypy --config-file pyproject.toml --explicit-package-bases tests/standin tests/lab
