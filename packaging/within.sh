#!/usr/bin/env bash
# packaging/within.sh COMMAND...: runs a command in .venv. The scheduler runs in .venv-pypy if that exists.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export PATH="$root/.venv/bin:$PATH" PYTHONNOUSERSITE=1
if [ -z "${SCALER_SCHEDULER_PYTHON-}" ] && [ -x "$root/.venv-pypy/bin/python" ]; then
    export SCALER_SCHEDULER_PYTHON="$root/.venv-pypy/bin/python"
fi
# Else each of the processes that a command starts compiles the modules that it imports: it starts twice as slowly.
unset PYTHONDONTWRITEBYTECODE
cd "$root"
exec "$@"
