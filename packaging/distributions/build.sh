#!/usr/bin/env bash
# packaging/distributions/build.sh: wheels and sdists of the three distributions in packaging/dist, checked by twine.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$BUILD/distributions
DISTRIBUTIONS=(scheduler_daemon client_lib worker_lib)

# same_bytes SDIST: packs it again without the times of the build, which setuptools writes into it
same_bytes() {
    local tree
    tree=$(mktemp -d)
    tar -C "$tree" -xzf "$1"
    tar -C "$tree" --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
        --mtime="@$SOURCE_DATE_EPOCH" "$(basename "$1" .tar.gz)" | gzip -9n >"$1.new"
    mv "$1.new" "$1"
    rm -rf "$tree"
}

# holds SDIST PATTERN...: fails unless each pattern is the end of a file name in it
holds() {
    local sdist=$1 names pattern
    names=$(tar -tzf "$sdist")
    shift
    for pattern in "$@"; do
        grep -q "$pattern\$" <<<"$names" || { echo "$sdist has no $pattern" >&2 && return 1; }
    done
}

rm -rf "$folder"
mkdir -p "$folder"
rm -f "$DIST"/scaler_{scheduler,client,worker}-*
for name in "${DISTRIBUTIONS[@]}"; do
    # Build from a copy, so that files of an earlier build are not packed, and this build leaves none. Follow links.
    mkdir "$folder/$name"
    tar -C "$root/$name" --create --dereference --exclude=build --exclude=dist --exclude='*.egg-info' --exclude=__pycache__ . |
        tar -C "$folder/$name" --extract
    # The wheel is built from the sdist, which shows that the sdist is complete.
    "$PYTHON" -m build --outdir "$DIST" "$folder/$name"
done
for sdist in "$DIST"/scaler_*-"$VERSION".tar.gz; do
    same_bytes "$sdist"
    holds "$sdist" /LICENSE /PKG-INFO /pyproject.toml
done
holds "$DIST/scaler_scheduler-$VERSION.tar.gz" protocol/scaler.capnp protocol/PROTOCOL.md
holds "$DIST/scaler_client-$VERSION.tar.gz" scaler_client/protocol/scaler.capnp
"$PYTHON" -m twine check --strict "$DIST"/scaler_*-"$VERSION"{.tar.gz,-py3-none-any.whl}
