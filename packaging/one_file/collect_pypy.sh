#!/usr/bin/env bash
# packaging/one_file/collect_pypy.sh PYPY WHEELS TREE: makes a folder with PyPy, its standard library, the shared libraries
# that they need beyond glibc, the scheduler with its dependencies, and all licences.
#
# PYPY is an interpreter with pip, WHEELS the folder of packaging/wheels.sh. patchelf must be on PATH. Prints the oldest glibc
# that is sufficient.
set -euo pipefail
pypy=$1 wheels=$2 tree=$3
packaging=$(cd "$(dirname "$0")/.." && pwd)
export LC_ALL=C PYTHONHASHSEED=0

# Not needed: test suites, modules for screens, development tools, other systems. gdbm is not needed and under the GPL.
LEFT_OUT=(
    test tests idlelib lib2to3 tkinter turtle.py turtledemo '_curses*' curses '_gdbm*' ensurepip venv distutils
    pydoc_data msilib 'plat-*' '_cffi_ssl/_cffi_src' '*_build.py' '_testcapi*' '_testmultiphase*' _ctypes_test.py
    _pypy_testcapi.py '*.h' hpy hpy.dist-info 'greenlet*' __pycache__ dist-packages site-packages EXTERNALLY-MANAGED
)
GLIBC_LIBRARIES='^(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|resolv|anl|nsl|BrokenLocale))\.so'

interpreter=$("$pypy" -c 'import os, sys; print(os.path.realpath(sys.executable))')
library=$("$pypy" -c 'import os; print(os.path.dirname(os.__file__))')

# Lines of "name path" for the libraries that a program or library is linked to, without glibc.
needed_by() {
    LD_LIBRARY_PATH=$tree/app/pyzmq.libs ldd "$1" | sed -n 's/^\t\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' |
        grep -Ev "$GLIBC_LIBRARIES" || true
}

# licence_of FILE: copies the copyright file of FILE's Debian package
licence_of() {
    local package
    # /lib is a link to /usr/lib, so a file may be known by either name. The lookup of the other name fails.
    package=$({ dpkg-query --search "$(realpath "$1")" "$1" "${1#/usr}" 2>/dev/null || true; } | head -n 1 | cut -d : -f 1)
    [ -n "$package" ] || { echo "collect_pypy.sh: $1 is not of a Debian package: its licence is unknown" >&2 && return 1; }
    mkdir -p "$tree/licenses/$package"
    cp -L "/usr/share/doc/$package/copyright" "$tree/licenses/$package/"
}

remove_left_out() {
    local pattern
    for pattern in "${LEFT_OUT[@]}"; do
        case $pattern in
            */*) rm -rf "$1"/${pattern} ;;
            *) find "$1" -name "$pattern" -prune -exec rm -rf {} + ;;
        esac
    done
}

rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/lib" "$tree/licenses"
cp -L "$interpreter" "$tree/bin/scaler_scheduler"
licence_of "$interpreter"
cp -RL "$library" "$tree/lib/"
remove_left_out "$tree/lib"

"$pypy" -m pip install --quiet --no-compile --no-warn-script-location --prefer-binary --find-links "$wheels" \
    --constraint "$packaging/constraints.txt" --target "$tree/app" scaler-scheduler >&2
cp "$packaging/one_file/main.py" "$tree/app/__main__.py"
rm -rf "$tree/app/bin" "$tree"/app/{capnpy/benchmarks,capnpy/testing,zmq/tests,pycparser,pycparser-*,cffi-*}
rm -rf "$tree"/app/{setuptools,_distutils_hack,pkg_resources,distutils-precedence.pth,setuptools-*}
find "$tree/app" \( -name '*.c' -o -name '*.cc' -o -name '*.h' -o -name '*.p[xy][dx]' -o -name '*.pyi' \) -delete
# Keep the metadata and licences of the distributions, but not the records of where they were installed from.
find "$tree/app" -path '*.dist-info/*' -type f ! -iname '*licen[sc]e*' ! -iname 'copying*' ! -iname 'authors*' \
    ! -name METADATA ! -path '*/licenses/*' -delete
find "$tree/app" -type d -empty -delete

find "$tree" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) | sort | while read -r binary; do
    needed_by "$binary"
done | sort -u | while read -r name path; do
    case $path in "$tree"/*) continue ;; esac
    cp -L "$path" "$tree/lib/$name"
    licence_of "$path"
done
# DT_RPATH of the program also applies to the dependencies of libraries, and precedes LD_LIBRARY_PATH.
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$tree/bin/scaler_scheduler"
rm -rf "$tree/lib/__pycache__"

# Compile now, so that nothing is written at run time. (-I would make it ignore PYTHONHASHSEED.)
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
"$tree/bin/scaler_scheduler" -s -S -B "$packaging/one_file/compile_modules.py" "$tree" >&2

find "$tree" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) -exec objdump -T {} + 2>/dev/null |
    grep -o 'GLIBC_[0-9.]*' | cut -d _ -f 2 | sort -Vu | tail -n 1
