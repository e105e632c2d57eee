#!/usr/bin/env bash
# tests/run.sh [lint]: ruff, mypy, and unless only lint is asked for every test in every environment that is set up.
# `make test` calls it. All suites run even when one fails; the last lines say how each went.
set -uo pipefail
cd "$(dirname "$0")/.."

output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
summary=()

# suite NAME COMMAND...: runs it, and keeps a line for the summary: pytest's closing line, or what the tool said last
suite() {
    local name=$1 verdict=ok
    shift
    printf '\n### %s: %s\n' "$name" "$*"
    "$@" 2>&1 </dev/null | tee "$output"
    if [ "${PIPESTATUS[0]}" != 0 ]; then
        verdict=FAILED
        status=1
    fi
    summary+=("$(printf '%-16s %-7s %s' "$name" "$verdict" "$(grep -v '^ *$' "$output" | tail -n 1 | sed 's/^[= ]*//; s/[= ]*$//')")")
}

name_of() { "$1/bin/python" -c 'import platform as p; print(p.python_implementation(), p.python_version())'; }

# tests_in ENVIRONMENT [FOLDER...]: pytest there, the commands of that environment first on PATH
tests_in() {
    local environment=$1
    shift
    PATH="$PWD/$environment/bin:$PATH" "$environment/bin/python" -m pytest "$@"
}

suite ruff ruff check .
suite mypy mypy scheduler_daemon/scaler_scheduler client_lib/scaler_client worker_lib/scaler_worker \
    client_lib/examples/standard_library.py benchmarks tests/client/typed_usage.py

if [ "${1-}" != lint ]; then
    if [ -f .venv-pypy/stamp-test ]; then
        suite "$(name_of .venv-pypy)" tests_in .venv-pypy tests/core tests/wire
    else
        summary+=("PyPy             not on this machine, left out")
    fi
    for environment in .venv-3.*; do
        [ -f "$environment/stamp-test" ] || continue
        suite "$(name_of "$environment")" tests_in "$environment" tests/client tests/worker
    done
    suite "$(name_of .venv)" tests_in .venv
fi

printf '\n### summary\n'
printf '%s\n' "${summary[@]}"
exit "$status"
