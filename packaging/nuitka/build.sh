#!/usr/bin/env bash
# packaging/nuitka/build.sh: packaging/dist/<command>.bin of each command in packaging/commands.txt, by nuitka --onefile.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$BUILD/nuitka
mkdir -p "$folder"
export PYTHONHASHSEED=0
"$PYTHON" -m pip install --quiet --no-deps --force-reinstall --no-index --find-links "$BUILD/wheels" scaler-scheduler

build() {
    local name=$1 module=$2 package=${2%%.*}
    printf 'import sys\n\nfrom %s import main\n\nsys.exit(main())\n' "$module" >"$folder/$name.py"
    # capnpy and what it needs are looked up at run time; setuptools is only imported for its build commands.
    "$PYTHON" -m nuitka --onefile --quiet --assume-yes-for-downloads --output-dir="$folder" --output-filename="$name.bin" \
        --include-package="$package" --include-package-data="$package" --include-package=zmq --include-module=uvloop \
        --include-distribution-metadata=capnpy --nofollow-import-to='setuptools.*,Cython,pytest,_pytest,*.tests,capnpy.testing' \
        --onefile-tempdir-spec="{CACHE_DIR}/scaler/$name-$VERSION" --lto=no --jobs=2 "$folder/$name.py"
    mv "$folder/$name.bin" "$DIST/$name.bin"
}

grep -v '^#' "$here/../commands.txt" | while read -r name module _; do
    build "$name" "$module" </dev/null
done
