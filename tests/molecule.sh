#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs molecule scenarios one after the other on the lab's hosts. Usage: tests/molecule.sh [SCENARIO...]
# Without a name it runs all; with GB10_STORIES=today those of every day and every second one of the others, in turn.
set -euo pipefail
cd "$(dirname "$0")/.."
every_day=(proxy engine)
in_turn=(service_address firewall memory_guard monitoring)
scenarios=("$@")
if [ $# -eq 0 ]; then
    scenarios=("${every_day[@]}")
    day=$((${GB10_DAY:-$(date +%s) / 86400} % 2))
    for place in "${!in_turn[@]}"; do
        if [ "${GB10_STORIES:-all}" != today ] || [ $((place % 2)) -eq "$day" ]; then
            scenarios+=("${in_turn[$place]}")
        fi
    done
fi
echo "scenarios: ${scenarios[*]}"
for scenario in "${scenarios[@]}"; do
    molecule test --scenario-name "$scenario"
done
