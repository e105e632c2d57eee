#!/usr/bin/env bash
# packaging/pex/build.sh: packaging/dist/<command>.pex for each command in packaging/commands.txt: one file for PyPy and
# CPython, with the compiled parts of pyzmq for each.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheels=$BUILD/pex/wheels
# Dependencies of the commands that packaging/wheels.sh does not build: one wheel for each Python, and pure ones.
COMPILED=(pyzmq)
PURE=(packaging setuptools tomli typing_extensions urwid wcwidth)
# "implementation version abi platform" of pyzmq's wheels. From 3.12 on one wheel serves all versions of CPython.
PYTHONS=("pp 3.9 pypy39_pp73 manylinux2014_x86_64" "pp 3.10 pypy310_pp73 manylinux_2_28_x86_64"
    "pp 3.11 pypy311_pp73 manylinux_2_28_x86_64" "cp 3.9 cp39 manylinux2014_x86_64" "cp 3.10 cp310 manylinux_2_28_x86_64"
    "cp 3.11 cp311 manylinux_2_28_x86_64" "cp 3.12 abi3 manylinux_2_28_x86_64" "cp 3.13 abi3 manylinux_2_28_x86_64"
    "cp 3.14 abi3 manylinux_2_28_x86_64")
export PEX_ROOT=$BUILD/pex/root

fetch() {
    "$PYTHON" -m pip download --quiet --no-deps --only-binary :all: --dest "$wheels" --constraint "$here/../constraints.txt" "$@"
}

rm -rf "$wheels"
mkdir -p "$wheels"
cp "$BUILD"/wheels/*.whl "$wheels/"
fetch --implementation py --abi none --platform any "${PURE[@]}"
targets=()
for target in "${PYTHONS[@]}"; do
    read -r implementation version abi platform <<<"$target"
    if fetch --implementation "$implementation" --python-version "$version" --abi "$abi" --platform "$platform" \
        "${COMPILED[@]}"; then
        targets+=("--platform=$platform-$implementation-${version/./}-${abi/abi3/cp${version/./}}")
    else
        echo "left out, because ${COMPILED[*]} has no wheel for it: $target" >&2
    fi
done

# PyPy contains cffi. --venv: PyPy's scheduler executes itself again, which works only in an environment.
grep -v '^#' "$here/../commands.txt" | while read -r name module distribution _; do
    pex "$distribution" --pre-resolved-dists "$wheels" --output-file "$DIST/$name.pex" --entry-point "$module:main" \
        --exclude cffi "${targets[@]}" --venv --sh-boot </dev/null
done
