#!/usr/bin/env bash
# packaging/install.sh install|uninstall: the work of `make install` and `make uninstall`, for hosts without the package.
#
#   $PREFIX/bin/scaler_*            the commands: wrappers that find lib/scaler beside their own folder
#   $PREFIX/lib/scaler/python/      a private CPython environment: scheduler, client library and workers
#   $PREFIX/lib/scaler/pypy/        a private PyPy environment with the scheduler, if PyPy is installed; then the scheduler runs in it
#   $PREFIX/share/                  man pages, completions for bash and zsh, copies of the default configurations
#   .../systemd/system/*.service    with the right ExecStart; their users are in .../sysusers.d/scaler.conf
#   /etc/scaler/*.toml              the default configurations, if there are none yet
#
# DESTDIR (default: empty) is a prefix of all these paths, for packagers. PREFIX is /usr/local by default. PYTHON and PYPY
# name interpreters. BUILD is the folder of man pages and so on (default: packaging/build, made by make man). Install packages
# for tasks by $PREFIX/lib/scaler/python/bin/python -m pip install. uninstall removes the files of install, except changed
# configurations.
set -euo pipefail
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local} DESTDIR=${DESTDIR:-} BUILD=${BUILD:-packaging/build}
export PIP_PREFER_BINARY=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PYTHONNOUSERSITE=1
unset PYTHONPATH

say() { printf '[install] %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 1
}

for folder in "$PREFIX" "${DESTDIR:-/}"; do
    case $folder in
        /*) ;;
        *) die "$folder is not an absolute path: PREFIX and DESTDIR must be" ;;
    esac
done
PREFIX=/${PREFIX#/} DESTDIR=${DESTDIR%/}
case $PREFIX in
    /usr | /usr/local) SYSTEMD=$PREFIX/lib/systemd/system SYSUSERS=$PREFIX/lib/sysusers.d ;;
    *) SYSTEMD=/etc/systemd/system SYSUSERS=/etc/sysusers.d ;; # systemd reads no other folders
esac
LIB=$PREFIX/lib/scaler SHARE=$PREFIX/share/scaler ETC=/etc/scaler
MANIFEST=$DESTDIR$LIB/manifest # the files and folders that this script made, as "f PATH" and "d PATH", in order

# --- files ---------------------------------------------------------------------------------------------------------

# folder PATH: makes it with its parents, and notes the new ones
folder() {
    [ -d "$DESTDIR$1" ] && return
    case $1 in / | "") return ;; esac
    folder "$(dirname "$1")"
    mkdir "$DESTDIR$1" && chmod 755 "$DESTDIR$1"
    NOTES+=("d $1")
}

# put MODE SOURCE PATH
put() {
    folder "$(dirname "$3")"
    install -m "$1" "$2" "$DESTDIR$3"
    NOTES+=("f $3")
}

# finish: runs after errors too, so that uninstall finds all files
finish() {
    [ ! -d "$DESTDIR$LIB" ] || write_manifest
    rm -rf "$work"
}

write_manifest() {
    { [ -f "$MANIFEST" ] && cat "$MANIFEST"; printf '%s\n' "${NOTES[@]}"; } | awk '!seen[$0]++' >"$work/manifest"
    install -m 644 "$work/manifest" "$MANIFEST"
}

# --- the environments ----------------------------------------------------------------------------------------------

# find_interpreter IMPLEMENTATION MINOR CANDIDATE...: prints the first that runs, is new enough and can make environments
find_interpreter() {
    local implementation=$1 minor=$2 candidate
    shift 2
    for candidate in "$@"; do
        if "$candidate" -c "import sys, venv; sys.exit(sys.implementation.name != '$implementation' \
or sys.version_info < (3, $minor))" >/dev/null 2>&1; then
            # Not an environment itself, but the interpreter that it was made with.
            "$candidate" -c 'import sys; print(getattr(sys, "_base_executable", None) or sys.executable)'
            return
        fi
    done
    return 1
}

# quietly TEXT COMMAND...: prints the command's output only if it fails
quietly() {
    local text=$1
    shift
    say "$text"
    "$@" >"$work/log" 2>&1 </dev/null || { tail -n 25 "$work/log" >&2 && return 1; }
}

sources() { # copies of the sources, because a build leaves files in its source folder and reuses them
    local name
    for name in scheduler_daemon client_lib worker_lib; do
        mkdir "$work/$name"
        tar -C "$name" -ch --exclude=build --exclude=dist --exclude='*.egg-info' --exclude=__pycache__ . | tar -C "$work/$name" -x
    done
}

make_environment() { # NAME INTERPRETER DISTRIBUTION...
    local there=$DESTDIR$LIB/$1 interpreter=$2
    shift 2
    rm -rf "$there"
    "$interpreter" -m venv "$there" || return 1
    local pip=("$there/bin/python" -m pip install --no-compile "${@/#/$work/}")
    # On a CPython without a wheel of capnpy it is compiled. If that fails, its pure form is used.
    "${pip[@]}" || USE_CYTHON=0 "${pip[@]}" || return 1
    # No file may contain the path of this folder, because the folder may be moved.
    find "$there/bin" -type f ! -name 'python*' ! -name 'scaler_*' -delete
    sed -i "1s|.*|#!$LIB/${there##*/}/bin/python|" "$there"/bin/scaler_*
    sed -i '/^command = /d' "$there/pyvenv.cfg"
    find "$there/lib" -name __pycache__ -type d -prune -exec rm -rf {} +
    # Compile now, because services cannot write here (without pip). The times of files may change when they are moved,
    # so they are not compared. -B: otherwise imports would compile modules with their present path.
    "$there/bin/python" -B -m compileall -q -x '/site-packages/pip/' --invalidation-mode unchecked-hash \
        -s "${DESTDIR:-/}" -p / "$there/lib" || true
}

environments() {
    local python pypy
    python=$(find_interpreter cpython 10 ${PYTHON:-/usr/bin/python3 python3 .venv/bin/python}) ||
        die "no CPython 3.10 or newer with venv found: name it with PYTHON=/path/to/python3 (Debian: python3-venv)"
    reachable "$python"
    quietly "$LIB/python: $("$python" --version)" make_environment python "$python" scheduler_daemon 'client_lib[exporter,top,ui]' worker_lib ||
        die "the environment could not be made"
    if pypy=$(find_interpreter pypy 9 ${PYPY:-/usr/bin/pypy3 pypy3 .venv-pypy/bin/python}); then
        reachable "$pypy"
        quietly "$LIB/pypy: $("$pypy" --version 2>&1 | tail -n 1)" make_environment pypy "$pypy" scheduler_daemon && return
        rm -rf "$DESTDIR$LIB/pypy"
    fi
    say "no PyPy (Debian: pypy3, pypy3-venv), or it could not be set up: the scheduler runs on CPython, slower"
}

reachable() { # the users of services cannot read the homes of others
    case $(readlink -f "$1") in
        /root/* | /home/*) say "NOTE: $1 is in a user's home, where the services of systemd cannot read it" ;;
    esac
}

wrapper() { # PROGRAM
    local environment=python collector=""
    if [ -f "$DESTDIR$LIB/pypy/bin/$1" ]; then
        environment=pypy
        # PyPy reads them only from the environment. If they are set here, PyPy is not started twice.
        collector='export PYPY_GC_NURSERY="${PYPY_GC_NURSERY-32M}"
export PYPY_GC_MAJOR_COLLECT="${PYPY_GC_MAJOR_COLLECT-1.4}"'
    fi
    cat >"$work/$1" <<END
#!/bin/sh
# Runs $1 in its own environment, which is found relative to this folder.
lib=\$(dirname -- "\$(readlink -f -- "\$0")")/../lib/scaler
$collector
exec "\$lib/$environment/bin/python" "\$lib/$environment/bin/$1" "\$@"
END
    put 755 "$work/$1" "$PREFIX/bin/$1"
}

# --- install, uninstall --------------------------------------------------------------------------------------------

configuration() { # NAME: installs it if there is none, or only an unchanged older default
    local default=$BUILD/configuration/$1 there=$DESTDIR$ETC/$1 before=$DESTDIR$SHARE/$1
    if [ ! -e "$there" ] || { [ -e "$before" ] && cmp -s "$there" "$before"; }; then
        put 644 "$default" "$ETC/$1"
    else
        say "$ETC/$1 stays as it is; the default is $SHARE/$1"
    fi
    put 644 "$default" "$SHARE/$1"
}

install_all() {
    [ -d "$BUILD/man" ] || die "$BUILD does not exist: run make man"
    work=$(mktemp -d)
    NOTES=()
    trap finish EXIT
    mkdir -p "$DESTDIR/" 2>/dev/null || die "$DESTDIR can't be made"
    [ -w "$DESTDIR/" ] || die "${DESTDIR:-/} can't be written: be root, or give a DESTDIR"
    folder "$LIB"
    sources
    environments
    local script program unit file
    for script in "$DESTDIR$LIB"/python/bin/scaler_*; do
        program=${script##*/}
        wrapper "$program"
        for file in "man/$program.1:man/man1" "completions/bash/$program:bash-completion/completions" \
            "completions/zsh/_$program:zsh/site-functions"; do
            [ -f "$BUILD/${file%:*}" ] && put 644 "$BUILD/${file%:*}" "$PREFIX/share/${file#*:}/$(basename "${file%:*}")"
        done
    done
    for unit in systemd/*.service; do
        program=$(sed -n 's|^ExecStart=/usr/bin/\([a-z_]*\).*|\1|p' "$unit")
        if [ -f "$DESTDIR$PREFIX/bin/$program" ]; then
            sed "s|^ExecStart=/usr/bin/|ExecStart=$PREFIX/bin/|" "$unit" >"$work/unit"
            put 644 "$work/unit" "$SYSTEMD/${unit##*/}"
        fi
    done
    put 644 systemd/scaler.sysusers "$SYSUSERS/scaler.conf"
    configuration scheduler.toml
    configuration cluster.toml
    configuration exporter.toml
    configuration top.toml
    configuration ui.toml
    configuration autoscaler.toml
    if [ -n "${DESTDIR:-}" ]; then
        say "installed below $DESTDIR"
    else
        say "installed. Next: systemd-sysusers; systemctl daemon-reload; systemctl enable --now scaler-scheduler"
    fi
}

uninstall_all() {
    [ -f "$MANIFEST" ] || die "nothing installed under $DESTDIR$PREFIX: $MANIFEST is not there"
    local name kind path lines
    mapfile -t lines < <(tac "$MANIFEST")
    for name in "$DESTDIR$SHARE"/*.toml; do
        name=${name##*/}
        if grep -qx "f $ETC/$name" "$MANIFEST" && [ -e "$DESTDIR$ETC/$name" ] && ! cmp -s "$DESTDIR$ETC/$name" "$DESTDIR$SHARE/$name"; then
            say "$ETC/$name was changed, and stays"
            lines=("${lines[@]/#"f $ETC/$name"/"k $ETC/$name"}")
        fi
    done
    rm -rf "$DESTDIR$LIB/python" "$DESTDIR$LIB/pypy" "$MANIFEST"
    for name in "${lines[@]}"; do
        kind=${name%% *} path=$DESTDIR${name#* }
        case $kind in
            f) rm -f "$path" ;;
            d) rmdir --ignore-fail-on-non-empty "$path" 2>/dev/null || true ;;
        esac
    done
    say "uninstalled. Users, and files of services in /var/lib and /var/log, stay."
}

case ${1-} in
    install) install_all ;;
    uninstall) uninstall_all ;;
    *) die "usage: packaging/install.sh install|uninstall" ;;
esac
