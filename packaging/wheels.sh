#!/usr/bin/env bash
# packaging/wheels.sh FOLDER: wheels of the scheduler, and of what it needs and has no compiled part, for every Python.
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
