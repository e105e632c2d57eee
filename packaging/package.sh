#!/usr/bin/env bash
# packaging/package.sh [WHAT...]: builds the files that an operator installs into packaging/dist/, and checks each.
# `make package` calls it. WHAT is any of the parts below; without it all are built.
#
# The parts use VERSION, SOURCE_DATE_EPOCH, BUILD, DIST, PYTHON (CPython with the tools) and PYPY from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
PARTS=(distributions one_file deb pex nuitka)

root=$PWD
export BUILD=$root/packaging/build DIST=$root/packaging/dist
export PYTHON=$root/.venv-package/bin/python PYPY=$root/.venv-pypy/bin/python
export PATH=$root/.venv-package/bin:$PATH
VERSION=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' scheduler_daemon/scaler_scheduler/__init__.py)
# Builds are reproducible: all times are that of the last commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONNOUSERSITE=1 LC_ALL=C.UTF-8
unset PYTHONPATH SCALER_SCHEDULER_PYTHON

build() {
    local start=$SECONDS
    printf '[package] %s ... ' "$1"
    if "packaging/$1/build.sh" >"$BUILD/$1.log" 2>&1 </dev/null; then
        printf 'done (%d s)\n' $((SECONDS - start))
    else
        printf 'failed\n--- the end of %s:\n' "$BUILD/$1.log"
        tail -n 25 "$BUILD/$1.log"
        exit 1
    fi
}

umask 022
mkdir -p "$BUILD" "$DIST"
[ $# -gt 0 ] || set -- "${PARTS[@]}"
rm -rf "$BUILD/wheels"
packaging/wheels.sh "$BUILD/wheels" >"$BUILD/wheels.log" 2>&1
# Man pages, completions and default configurations for the packages.
rm -rf "$BUILD"/{man,completions,configuration}
.venv/bin/python packaging/documents "$BUILD"
for part in "$@"; do
    build "$part"
done
# Start each file and run tasks, with and without keys.
packaging/within.sh python -m benchmarks.package_check
(cd "$DIST" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS && cat SHA256SUMS)
