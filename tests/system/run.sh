#!/usr/bin/env bash
# tests/system/run.sh [PYTEST'S ARGUMENTS...]: builds the requirements of the system tests, and runs them. `make
# test-system` calls it. If this machine cannot boot others, these tests are skipped, and the last lines say why.
set -euo pipefail
cd "$(dirname "$0")/../.."

reason=$(python -m tests.system.requirements)
if [ -n "$reason" ]; then
    printf '[system] no machine is booted: %s\n' "$reason"
else
    packaging/setup.sh package
    packaging/package.sh distributions one_file deb
    python -m tests.system.roots
fi
SCALER_INSTALL_PYPY=1 exec python -m pytest tests/system tests/installation/test_install.py -v -rs "$@"
