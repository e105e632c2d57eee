#!/usr/bin/env bash
# tests/system/run.sh [PYTEST'S ARGUMENTS...]: builds what the system tests need, then runs them. `make test-system` calls
# it. Where this machine can't boot others, what needs that is skipped, and the last lines say why.
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
exec python -m pytest tests/system -v -rs "$@"
