#!/usr/bin/env bash
# packaging/wheels.sh FOLDER: wheels for every Python: the scheduler, scaler_top, and their dependencies without compiled parts.
#
# capnpy is built without its compiled part, which exists only for CPython. So one wheel serves CPython and PyPy.
set -euo pipefail
folder=$1
cd "$(dirname "$0")/.."
mkdir -p "$folder"
# An old build/ would add modules that the source no longer has.
rm -rf scheduler_daemon/build
python -m pip wheel --quiet --no-deps --wheel-dir "$folder" ./scheduler_daemon
USE_CYTHON=0 python -m pip wheel --quiet --no-deps --no-binary capnpy,docopt,pypytools --wheel-dir "$folder" \
    --constraint packaging/constraints.txt capnpy docopt pypytools py six
# scaler_top, from a copy of the client library in which links are files.
top=$folder/../top
rm -rf "$top"
mkdir -p "$top"
cp -L packaging/top/pyproject.toml client_lib/LICENSE "$top/"
cp -rL client_lib/scaler_client "$top/"
find "$top" -name __pycache__ -type d -prune -exec rm -rf {} +
python -m pip wheel --quiet --no-deps --wheel-dir "$folder" "$top"
