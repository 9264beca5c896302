#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ansible-test insists on a path that ends in ansible_collections/gb10/vllm, so it gets a copy of the working tree.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/ansible_collections/gb10/vllm
mkdir -p "$tree"
copy() {
    git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0 tar -c --ignore-failed-read | tar -x -C "$tree"
}
# What is shipped, and its unit tests; the tests beside them run ansible-playbook from the clone and have a run of their own.
copy galaxy.yml README.md LICENSES changelogs meta playbooks plugins roles \
    tests/unit/conftest.py tests/unit/fixtures tests/unit/plugins

# ansible-test fetches its pip bootstrap from the network; ours is the one that comes with Python.
# The environments that ansible-test makes are kept, they take longer than the tests.
export HOME=$PWD/.ansible/sanity
cache=$HOME/.ansible/test/cache
mkdir -p "$cache"
requirements=$(python -c 'import ansible_test; print(ansible_test.__path__[0])')/_internal/python_requirements.py
number=$(sed -n "s/^ *pip='\([0-9.]*\)',$/\1/p" "$requirements" | head -n 1 | tr . _)
cp tests/lint/get_pip.py "$cache/get_pip_$number.py"

python=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
(cd "$tree" && ansible-test sanity --local --python "$python" --color no)
# Some tests ask the stand-in, which is no part of the collection, or want certificates.
copy tests/standin tests/unit/certificates.py
(cd "$tree" && ansible-test units --local --python "$python" --color no)
