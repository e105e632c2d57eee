#!/usr/bin/env bash
# packaging/wheels.sh FOLDER: wheels of the scheduler, of scaler_top, and of what it needs and has no compiled part, for every Python.
#
# capnpy is taken without its compiled part, which it has for CPython alone: the same wheel then serves CPython and PyPy.
set -euo pipefail
folder=$1
cd "$(dirname "$0")/.."
mkdir -p "$folder"
# build/ would bring modules that are gone from the source.
rm -rf scheduler_daemon/build
python -m pip wheel --quiet --no-deps --wheel-dir "$folder" ./scheduler_daemon
USE_CYTHON=0 python -m pip wheel --quiet --no-deps --no-binary capnpy,docopt,pypytools --wheel-dir "$folder" \
    --constraint packaging/constraints.txt capnpy docopt pypytools py six
# scaler_top alone, from a copy that the links of the client's library are followed for.
top=$folder/../top
rm -rf "$top"
mkdir -p "$top"
cp -L packaging/top/pyproject.toml client_lib/LICENSE "$top/"
cp -rL client_lib/scaler_client "$top/"
find "$top" -name __pycache__ -type d -prune -exec rm -rf {} +
python -m pip wheel --quiet --no-deps --wheel-dir "$folder" "$top"
