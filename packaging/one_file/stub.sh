#!/bin/sh
# @NAME@ @VERSION@ with PyPy and all its dependencies. A compressed tar archive follows this script. The first start
# unpacks it into a folder that is named by its hash. Every start checks that folder and runs the program in it, in this
# process. packaging/README.md of the project describes the folder and the checks.
#
# The script needs only sh, coreutils, tar and gzip.
set -u

name=@NAME@
folder=$name-@SHORT@
archive=@ARCHIVE@  # its SHA-256
listing=@LISTING@  # the output of `listing_of` for an intact folder
lines=@LINES@      # of this script

KEPT_DAYS=30       # unused folders of other versions
ABANDONED_DAYS=1   # temporary folders of killed starts

NO_PLACE=73        # the exit statuses of sysexits.h
CANNOT_RUN=71
DAMAGED_FILE=66

say() { printf '%s: %s\n' "$name" "$*" >&2; }

work=              # the temporary folder of this start

end() {
    status=$1
    shift
    say "$*"
    [ -z "$work" ] || rm -rf "$work"
    exit "$status"
}

has_proc() { [ -e /proc/self ]; }
mount_proc="/proc is not mounted here: mount it (mount -t proc proc /proc)"

first_line() { printf '%s\n' "$1" | head -n 1; }

# listing_of FOLDER: a hash of size, time of change and mode of every file in it. In milliseconds it detects files that are
# missing, truncated or changed.
listing_of() (
    IFS='
'
    set -f
    # shellcheck disable=SC2046  # one name a line
    { cd "$1" && stat -c '%s %Y %f %n' $(cat .contents); } 2>/dev/null | sha256sum
)

# intact FOLDER: succeeds if only this user can write to it and the unpacked files in it are unchanged
intact() {
    [ -O "$1" ] && [ ! -L "$1" ] && [ "$(stat -c %a "$1" 2>/dev/null)" = 700 ] && [ "$(listing_of "$1")" = "$listing  -" ]
}

# private FOLDER: makes it if needed; fails if other users may write to it. `fault` is the reason
private() {
    [ -d "$1" ] || fault=$(umask 077 && LC_ALL=C mkdir -p "$1" 2>&1) || {
        fault=${fault##*: }
        return 1
    }
    fault="it belongs to another user, or others may write to it"
    [ -O "$1" ] || return 1
    case $(stat -L -c %a "$1") in *[2367]? | *[2367]) return 1 ;; esac
}

packed() { tail -n +"$((lines + 1))" "$0"; }

# unpack FOLDER: unpacks into a new folder and starts PyPy there as a test. `fault` is the reason of a failure
unpack() {
    command -v tar >/dev/null && command -v gzip >/dev/null || end "$CANNOT_RUN" "tar and gzip are needed to unpack it"
    [ "$(packed | sha256sum)" = "$archive  -" ] || end "$DAMAGED_FILE" "$0 is damaged: copy it again"
    fault=$(mkdir -m 700 "$1" && packed | gzip -dc 2>/dev/null | LC_ALL=C tar -xpof - -C "$1" 2>&1) &&
        fault=$(: 2>&1 >"$1/.used") || {
        case $fault in
            *"No space left on device"*) fault="No space left on device" ;;
            *) fault=$(first_line "$fault") && fault=${fault##*: } ;;
        esac
        return 1
    }
    fault="the unpacked files differ from the archive"
    intact "$1" || return 1
    fault=$("$1/bin/$name" -I -S -B -c '' 2>&1 </dev/null)
    case $? in
        0) return ;;
        126) fault="programs can't be run from there (mounted noexec?)" ;;
        *)
            case $fault in
                *GLIBC_* | *"not found"*) end "$CANNOT_RUN" "needs an x86-64 Linux with glibc @GLIBC@ or newer;" \
                    "here is $(uname -m) with $(getconf GNU_LIBC_VERSION 2>/dev/null || echo another C library)" ;;
            esac
            has_proc || end "$CANNOT_RUN" "PyPy can't be run here. $mount_proc"
            end "$CANNOT_RUN" "PyPy can't be run here: $(first_line "$fault")"
            ;;
    esac
    return 1
}

# sweep BASE WORK: removes temporary folders of killed starts, and other versions that were not used for long
sweep() {
    has_proc || return  # the running versions are not known
    now=$(date +%s)
    running=$(readlink /proc/[0-9]*/exe 2>/dev/null)
    touch -d "@$((now - KEPT_DAYS * 86400))" "$2/kept"
    touch -d "@$((now - ABANDONED_DAYS * 86400))" "$2/abandoned"
    for old in "$1/$name"-*; do
        case $running in *"$old/"*) continue ;; esac
        [ "$old/.used" -ot "$2/kept" ] && rm -rf "$old"
    done
    for old in "$1"/.unpack-*; do
        [ "$old" -ot "$2/abandoned" ] && rm -rf "$old"
    done
}

# settle ROOT BASE WORK: unpacks beside ROOT and renames. If two processes start at once, both use the first one's folder.
settle() {
    intact "$1" && return  # another start has unpacked it since the first check
    if [ -e "$1" ]; then
        fault="$folder in it belongs to another user"
        [ -O "$1" ] && [ ! -L "$1" ] || return 1
        mv -T "$1" "$3/old" 2>/dev/null
        # Another start may have repaired it between the check and the move.
        intact "$3/old" && mv -T "$3/old" "$1" 2>/dev/null && return
        say "$1 is damaged: it is unpacked again"
    fi
    unpack "$3/new" || return 1
    mv -T "$3/new" "$1" 2>/dev/null || intact "$1" || {
        fault="$folder can't be renamed there"
        return 1
    }
    sweep "$2" "$3"
    return 0
}

# prepare BASE: makes $root, an intact folder in BASE. `fault` is the reason of a failure
prepare() {
    root=$1/$folder
    private "$1" || return 1
    if ! intact "$root"; then
        fault=$(LC_ALL=C mktemp -d "$1/.unpack-XXXXXX" 2>&1) || {
            fault=${fault##*: }
            return 1
        }
        work=$fault
        trap 'rm -rf "$work"; exit 129' HUP
        trap 'rm -rf "$work"; exit 130' INT
        trap 'rm -rf "$work"; exit 143' TERM
        settle "$root" "$1" "$work"
        settled=$?
        rm -rf "$work"
        work=
        trap - HUP INT TERM
        [ "$settled" = 0 ] || return 1
    fi
    fault="programs can't be run from there (mounted noexec?)"
    [ -x "$root/bin/$name" ]
}

# try BASE ARGUMENT...: runs the program from BASE; returns if that is not possible
try() {
    base=$1
    shift
    prepare "$base" || {
        say "can't be unpacked to $base: $fault"
        return
    }
    { printf '' >"$root/.used"; } 2>/dev/null
    # As scaler_scheduler.daemon.pypy does. If they are set here, PyPy is not started twice.
    : "${PYPY_GC_NURSERY:=@NURSERY@}" "${PYPY_GC_MAJOR_COLLECT:=@GROWTH@}"
    export PYPY_GC_NURSERY PYPY_GC_MAJOR_COLLECT
    has_proc || say "$mount_proc; without it the scheduler does not see a container's memory limit"
    exec "$root/bin/$name" -I -S -B "$root/app" "$@"
}

case ${CACHE_DIRECTORY-} in /*) try "${CACHE_DIRECTORY%%:*}" "$@" ;; esac
case ${XDG_CACHE_HOME-} in
    /*) try "$XDG_CACHE_HOME/scaler" "$@" ;;
    *) case ${HOME-} in /*) try "$HOME/.cache/scaler" "$@" ;; esac ;;
esac
last=${TMPDIR:-/tmp}/scaler-$(id -u)
[ -L "$last" ] || try "$last" "$@"  # in /tmp any user can make a link
end "$NO_PLACE" "there is no place to unpack to: set XDG_CACHE_HOME to a folder of this user without noexec"
# The archive follows.
exit
