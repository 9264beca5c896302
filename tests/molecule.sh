#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs molecule scenarios one after the other on the lab's hosts. Usage: tests/molecule.sh SCENARIO...
set -euo pipefail
cd "$(dirname "$0")/.."
for scenario in "$@"; do
    molecule test --scenario-name "$scenario"
done
