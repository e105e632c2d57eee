#!/usr/bin/env bash
# packaging/one_file/build.sh: packaging/dist/scaler_scheduler, one executable file that contains PyPy.
set -euo pipefail
here=$(dirname "$0")
tree=$BUILD/one_file
GLIBC=$("$here/collect_pypy.sh" "$PYPY" "$BUILD/wheels" "$tree")
read -r NURSERY GROWTH < <("$PYPY" -c 'from scaler_scheduler.daemon.pypy import *; print(NURSERY, GROWTH)')
export GLIBC GROWTH NURSERY
"$here/pack.sh" "$tree" scaler_scheduler "$VERSION" "$DIST/scaler_scheduler"
