#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A mod as the community build's launcher applies it: run inside the container, in its own folder, before the engine starts.
set -eu
cp greeting.txt /tmp/greeting.txt
echo "mod greet was applied"
