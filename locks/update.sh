#!/bin/sh
# Write the lock files anew: every package, also indirect ones, with its version and its hashes.
# It needs uv (python -m pip install uv) and a network. The versions of requirements*.txt are kept.
set -eu
cd "$(dirname -- "$0")/.."
compile() {
    target=$1
    shift
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links "$@" -o "$target"
}
all=$(mktemp)
trap 'rm -f "$all"' EXIT
compile "$all" requirements.txt requirements-fast.txt requirements-figures.txt requirements-cluster.txt requirements-dev.txt requirements-emulation.txt
compile locks/run.txt requirements.txt -c "$all"
compile locks/fast.txt requirements-fast.txt -c "$all"
compile locks/figures.txt requirements-figures.txt -c "$all"
compile locks/cluster.txt requirements-cluster.txt -c "$all"
compile locks/dev.txt requirements.txt requirements-fast.txt requirements-figures.txt requirements-cluster.txt requirements-dev.txt -c "$all"
compile locks/emulation.txt requirements-emulation.txt -c "$all"
