#!/usr/bin/env bash
# tests/run.sh [lint]: run ruff (rules and format) and mypy, and without `lint` also the tests of every environment.
# `make test` calls it. All suites run even when one fails; the last lines say how each went.
#
# The tests that wait for processes run in the foreground. Beside them run three lanes of suites that compute. This keeps
# two cores busy to the end. The lanes have the same priority: beside other programs, niced tests would starve.
set -uo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
status=0
summary=()
lanes=()  # processes that run suites in the background, each the leader of its group
end() {
    [ ${#lanes[@]} = 0 ] || kill -- "${lanes[@]/#/-}" 2>/dev/null
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

# Tests that start processes and mostly wait for them: four at a time keep two cores busy. Files start in this order.
# Those that take longest are first, or one process would be left with one of them at the end.
#
# These are about clients, hosts, programs that watch, and benchmarks. Their scheduler runs under the main CPython: under
# PyPy, it takes twice the processor time for a test of a few tasks.
ABOUT_PEERS=(tests/integration/test_bench_smoke.py tests/documents/test_examples.py
    tests/integration/test_{autoscaler,objects,modules,client_files,compared_smoke}.py tests/interop
    tests/ui/test_page_{looks,fed}.py tests/ui tests/integration/test_{host_results,inspection_command}.py
    tests/integration/test_{doctor,local_cluster,exporter,environments,graphs_while_hosts_end,nested,balance}.py
    tests/integration/test_{odd_hosts,cluster_command,example,object_files,kept_maps,kept_results,bad_kept_results}.py
    tests/integration/test_{cluster_ends,gang_examples,graphs_elsewhere,hosts,futures_as_arguments,local_modules}.py
    tests/integration/test_{output,processes,resources,retiring,shared_arrays,spilling,stop_in_import,ui}.py
    tests/integration/test_{host_transfers,worker_death}.py tests/adapters tests/worker/fork_server
    tests/worker/worker/test_worker_{conversation,objects,process}.py tests/documents)
# The others are about the scheduler. It runs under PyPy, for which it is made.
ABOUT_SCHEDULER=(tests/conformance
    tests/integration/test_{keys,commands,hostile,chaos,keys_of_watchers,connections,graph_losses,garbage,monitor}.py
    tests/integration/test_{client_gone,attack}.py tests/integration tests/installation)
WAITING=("${ABOUT_PEERS[@]}" "${ABOUT_SCHEDULER[@]}")

# files_of PATH...: the test files there, each once and in this order; pytest sorts what a folder and a file name both
files_of() {
    local path
    for path in "$@"; do
        find "$path" -name 'test_*.py' | sort
    done | awk '!seen[$0]++'
}

# waiting FILE...: runs these tests in four processes. Else xdist would start the files with most tests first.
waiting() { tests_in .venv -n 4 --dist loadfile --no-loadscope-reorder "$@"; }

FAULTS=tests/simulation/test_teeth.py
names=()

mypy_of_all() {
    run_suite mypy mypy scheduler_daemon/scaler_scheduler client_lib/scaler_client worker_lib/scaler_worker \
        client_lib/examples/standard_library.py benchmarks tests/client/api/typed_usage.py
}

# The main environment's tests that compute. tests/simulation is first, as a fault there says most. The scheduler's own
# tests run under PyPy, for which it is made; under CPython the tests about peers run it. The unit tests of client and
# worker run under the other CPythons, if there are some, except those marked main_environment: they need packages of
# the main environment, or try an algorithm at random.
computing() {
    local without=("${WAITING[@]/#/--ignore=}")
    [ ! -f .venv-pypy/stamp-test ] || without+=(--ignore=tests/scheduler)
    mypy_of_all
    if compgen -G '.venv-3.*/stamp-test' >/dev/null; then
        run_suite "$(name_of .venv), marked" tests_in .venv tests/client tests/worker -m main_environment \
            "${WAITING[@]/#/--ignore=}"
        without+=(--ignore=tests/client --ignore=tests/worker)
    fi
    run_suite "$(name_of .venv), computing" tests_in .venv tests/simulation tests --ignore="$FAULTS" "${without[@]}"
}

# This lane is the shortest, so the deliberate faults follow in it. PyPy gets the nursery that the daemon has: 7.3.11 ended
# with a segmentation fault in 8 of 43 long runs of the core with a smaller one, and in none of 20 with this one.
under_pypy() {
    [ ! -f .venv-pypy/stamp-test ] ||
        PYPY_GC_NURSERY=32M run_suite "$(name_of .venv-pypy)" tests_in .venv-pypy \
            tests/scheduler tests/wire tests/top tests/fuzz
    run_suite "deliberate faults" tests_in .venv "$FAULTS"
}

# The newest runs all tests. The older one runs no tests that start worker processes: fork and signals change in new versions.
under_further_pythons() {
    local environment without=()
    for environment in $(printf '%s\n' .venv-3.* | sort -rV); do
        [ -f "$environment/stamp-test" ] || continue
        run_suite "$(name_of "$environment")" tests_in "$environment" -m "not main_environment" tests/client tests/worker \
            ${without[@]+"${without[@]}"}
        without=("${WAITING[@]/#/--ignore=}")
    done
}

# lane FUNCTION: calls it in the background; its output is shown at the end
lane() {
    set -m
    "$1" >"$folder/lane $1" 2>&1 &
    lanes+=($!)
    set +m
}

run_suite ruff ruff check .
run_suite format ruff format --check .
names+=(ruff format mypy)

if [ "${1-}" = lint ]; then
    mypy_of_all
else
    for each in computing under_pypy under_further_pythons; do
        lane "$each"
    done
    mapfile -t about_peers < <(files_of "${ABOUT_PEERS[@]}")
    mapfile -t about_scheduler < <(files_of "${WAITING[@]}" | tail -n "+$((${#about_peers[@]} + 1))")
    SCALER_SCHEDULER_PYTHON="$PWD/.venv/bin/python" \
        run_suite "$(name_of .venv), peers" waiting "${about_peers[@]}"
    run_suite "$(name_of .venv), scheduler" waiting "${about_scheduler[@]}"
    wait "${lanes[@]}"
    lanes=()
    cat "$folder"/lane*
    if [ -f .venv-pypy/stamp-test ]; then
        names+=("$(name_of .venv-pypy)")
    else
        summary+=("PyPy                           not on this machine, left out")
    fi
    for environment in .venv-3.*; do
        [ -f "$environment/stamp-test" ] && names+=("$(name_of "$environment")")
    done
    ! compgen -G '.venv-3.*/stamp-test' >/dev/null || names+=("$(name_of .venv), marked")
    names+=("deliberate faults" "$(name_of .venv), computing" "$(name_of .venv), peers" "$(name_of .venv), scheduler")
fi

for name in "${names[@]}"; do
    sum_up "$name"
done
printf '\n### summary\n'
printf '%s\n' "${summary[@]}"
exit "$status"
