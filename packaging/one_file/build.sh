#!/usr/bin/env bash
# packaging/one_file/build.sh: packaging/dist/scaler_scheduler, one executable file that contains PyPy.
set -euo pipefail
here=$(dirname "$0")
tree=$BUILD/one_file
GLIBC=$("$here/collect_pypy.sh" "$PYPY" "$BUILD/wheels" "$tree")
NURSERY=$("$PYPY" -c 'from scaler_scheduler.daemon.startup import NURSERY; print(NURSERY)')
export GLIBC NURSERY
"$here/pack.sh" "$tree" scaler_scheduler "$VERSION" "$DIST/scaler_scheduler"
