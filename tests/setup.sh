#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Puts the development tools into a virtual environment. Usage: tests/setup.sh FOLDER
set -euo pipefail
folder=$1

# ansible-core 2.19 runs on Python 3.11 to 3.13.
usable() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }
choose() {
    for candidate in python3.11 python3.12 python3.13 python3; do
        if command -v "$candidate" >/dev/null && usable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

packages=()
command -v git >/dev/null || packages+=(git)
command -v ssh >/dev/null || packages+=(openssh-client)
# The proxy's unit tests run nginx on a folder of their own.
[ -x /usr/sbin/nginx ] || packages+=(nginx-light)
# Who waits at a socket that nobody serves.
command -v ss >/dev/null || packages+=(iproute2)
# The rules and alerts are tried with promtool.
command -v promtool >/dev/null || packages+=(prometheus)
python=$(choose)
if [ -z "$python" ]; then
    packages+=(python3 python3-venv)
elif ! "$python" -c 'import ensurepip' 2>/dev/null; then
    packages+=(python3-venv)
fi
if [ ${#packages[@]} -gt 0 ]; then
    echo "installing ${packages[*]}"
    apt-get update -qq
    # No service is started on this machine because of what the tests need.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    python=$(choose)
fi
if [ -z "$python" ]; then
    echo "no Python 3.11 to 3.13 found: install one, ansible-core 2.19 needs it" >&2
    exit 1
fi

"$python" -m venv --clear "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement requirements/dev.txt
