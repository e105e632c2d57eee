#!/usr/bin/env bash
# tests/run.sh [lint]: run ruff (rules and format) and mypy, and without `lint` also the tests of every environment.
# `make test` calls it. All suites run even when one fails; the last lines say how each went.
#
# The tests that wait for processes run at the same time as the other interpreters' suites, which compute. The tests of
# the main environment that compute follow. This keeps two cores busy.
set -uo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
status=0
summary=()
beside=0  # the process that runs the other interpreters' suites
end() {
    [ "$beside" = 0 ] || kill -- -"$beside" 2>/dev/null
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run_suite NAME COMMAND...: its output in a file of its name, and behind that its exit status
run_suite() {
    local name=$1
    shift
    printf '\n### %s: %s\n' "$name" "$*"
    "$@" 2>&1 </dev/null | tee "$folder/output of $name"
    echo "${PIPESTATUS[0]}" >"$folder/status of $name"
}

# sum_up NAME: a line for the summary: pytest's closing line, or what the tool said last
sum_up() {
    local verdict=ok
    if [ "$(cat "$folder/status of $1" 2>/dev/null)" != 0 ]; then
        verdict=FAILED
        status=1
    fi
    summary+=("$(printf '%-30s %-7s %s' "$1" "$verdict" \
        "$(grep -v '^ *$' "$folder/output of $1" | tail -n 1 | sed 's/^[= ]*//; s/[= ]*$//')")")
}

name_of() { "$1/bin/python" -c 'import platform as p; print(p.python_implementation(), p.python_version())'; }

# tests_in ENVIRONMENT [FOLDER...]: pytest there, the commands of that environment first on PATH
tests_in() {
    local environment=$1
    shift
    PATH="$PWD/$environment/bin:$PATH" "$environment/bin/python" -m pytest "$@"
}

# Tests that start processes and mostly wait for them: four at a time keep two cores busy.
WAITING=(tests/adapters tests/conformance tests/documents tests/integration tests/interop tests/installation tests/ui
    tests/worker/fork_server tests/worker/worker/test_worker_conversation.py tests/worker/worker/test_worker_objects.py
    tests/worker/worker/test_worker_process.py)
names=()

mypy_of_all() {
    run_suite mypy mypy scheduler_daemon/scaler_scheduler client_lib/scaler_client worker_lib/scaler_worker \
        client_lib/examples/standard_library.py benchmarks tests/client/api/typed_usage.py
}

# suites_of_others: mypy, and those of all environments but .venv, one after the other
suites_of_others() {
    local environment
    mypy_of_all
    [ -f .venv-pypy/stamp-test ] && run_suite "$(name_of .venv-pypy)" tests_in .venv-pypy tests/scheduler tests/wire tests/top tests/fuzz
    for environment in .venv-3.*; do
        [ -f "$environment/stamp-test" ] && run_suite "$(name_of "$environment")" tests_in "$environment" -m "not one_interpreter" tests/client tests/worker
    done
}

run_suite ruff ruff check .
run_suite format ruff format --check .
names+=(ruff format mypy)

if [ "${1-}" = lint ]; then
    mypy_of_all
else
    set -m
    suites_of_others >"$folder/of others" 2>&1 &
    beside=$!
    set +m
    run_suite "$(name_of .venv), waiting" tests_in .venv -n 4 --dist loadfile "${WAITING[@]}"
    # The longest file first, or one process would be left with it at the end.
    run_suite "$(name_of .venv), computing" tests_in .venv -n 2 --dist loadfile tests/simulation tests "${WAITING[@]/#/--ignore=}"
    wait "$beside"
    beside=0
    cat "$folder/of others"
    if [ -f .venv-pypy/stamp-test ]; then
        names+=("$(name_of .venv-pypy)")
    else
        summary+=("PyPy                           not on this machine, left out")
    fi
    for environment in .venv-3.*; do
        [ -f "$environment/stamp-test" ] && names+=("$(name_of "$environment")")
    done
    names+=("$(name_of .venv), computing" "$(name_of .venv), waiting")
fi

for name in "${names[@]}"; do
    sum_up "$name"
done
printf '\n### summary\n'
printf '%s\n' "${summary[@]}"
exit "$status"
