#!/usr/bin/env bash
# packaging/nuitka/build.sh: packaging/dist/<command>.bin for each command in packaging/commands.txt, by nuitka --onefile.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$BUILD/nuitka
# The scheduler imports capnpy without its compiler. Only the compiler needs setuptools.
NOT_NEEDED='*.tests,Cython,setuptools,capnpy.compiler,pytest,_pytest,capnpy.benchmarks,capnpy.testing,zmq.green,zmq.auth,zmq.devices,zmq.log,zmq.ssh,trio,tornado,twisted,gi,curses'
# CPython's pyzmq does not use cffi. The others are unused modules of capnpy, py and urwid.
NOT_NEEDED+=',cffi,pycparser,docopt,py._path.svnwc,py._path.svnurl,urwid.display._win32,urwid.display._win32_raw_display'
rm -rf "$folder"
mkdir -p "$folder"
export PYTHONHASHSEED=0

build() {
    local name=$1 module=$2 distribution=$3 package=${2%.*} further=()
    [ -z "$4" ] || further=("--include-package=$4")
    "$PYTHON" -m pip install --quiet --find-links "$BUILD/wheels" --constraint "$here/../constraints.txt" "$distribution"
    # An installed distribution of the same version may be of older source.
    "$PYTHON" -m pip install --quiet --no-deps --force-reinstall --no-index --find-links "$BUILD/wheels" "$distribution"
    # The script must not have the name of the package.
    printf 'import sys\n\nfrom %s import main\n\nsys.exit(main())\n' "$module" >"$folder/run_$name.py"
    # The scheduler looks up capnpy's version. capnpy imports py, which imports its own modules by name.
    "$PYTHON" -m nuitka --onefile --quiet --output-dir="$folder" --output-filename="$name.bin" \
        --include-package="$package" --include-package=zmq.backend.cython --include-package=capnpy --include-package=py \
        "${further[@]}" \
        --include-distribution-metadata=capnpy --nofollow-import-to="$NOT_NEEDED" --lto=no --jobs=2 \
        --onefile-tempdir-spec="{CACHE_DIR}/scaler/$name-$VERSION" "$folder/run_$name.py"
    mv "$folder/$name.bin" "$DIST/$name.bin"
}

grep -v '^#' "$here/../commands.txt" | while read -r name module distribution further; do
    build "$name" "$module" "$distribution" "$further" </dev/null
done
