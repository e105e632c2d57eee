#!/usr/bin/env bash
# packaging/pex/build.sh: packaging/dist/<command>.pex of each command in packaging/commands.txt: one file for PyPy and for
# CPython, with the compiled parts for each.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
PLATFORMS=(pp-39-pypy39_pp73 pp-310-pypy310_pp73 pp-311-pypy311_pp73 cp-39-cp39 cp-310-cp310 cp-311-cp311 cp-312-cp312 cp-313-cp313)

build() {
    local name=$1 module=$2 distribution=$3
    pex "$distribution" --output-file "$DIST/$name.pex" --entry-point "$module:main" --find-links "$BUILD/wheels" \
        --constraints "$here/../constraints.txt" "${PLATFORMS[@]/#/--platform=manylinux_2_28_x86_64-}" \
        --venv prepend --sh-boot --pex-root "$BUILD/pex" --disable-cache
}

grep -v '^#' "$here/../commands.txt" | while read -r name module distribution; do
    build "$name" "$module" "$distribution" </dev/null
done
