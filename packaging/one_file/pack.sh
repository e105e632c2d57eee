#!/usr/bin/env bash
# packaging/one_file/pack.sh TREE NAME VERSION FILE: one executable file that unpacks TREE and runs TREE/bin/NAME.
#
# NURSERY, GROWTH and GLIBC in the environment are values for stub.sh. The same tree and SOURCE_DATE_EPOCH give the same file. The
# file .contents is written into the tree.
set -euo pipefail
tree=$1 name=$2 version=$3 file=$4
stub=$(dirname "$0")/stub.sh
epoch=${SOURCE_DATE_EPOCH:?}
export LC_ALL=C

(
    cd "$tree"
    rm -f .contents
    { find . -type f ! -path ./.contents -printf '%P\n' && echo .contents; } | sort >.contents
    if grep -q '[[:space:]]' .contents || [ "$(find . -type l | wc -l)" != 0 ]; then
        echo "pack.sh: white space in a name, or a link, in $tree" >&2
        exit 1
    fi
    find . -type d -exec chmod 755 {} +
    find . -type f -perm /111 -exec chmod 755 {} +
    find . -type f ! -perm /111 -exec chmod 644 {} +
    find . -exec touch --no-dereference --date="@$epoch" {} +
)

archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
# stub.sh makes the folder itself, for its owner alone. The archive must not set its mode.
(cd "$tree" && tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" \
    --exclude=./.used $(ls -A)) | gzip -9n >"$archive"

hash=$(sha256sum <"$archive" | cut -c 1-64)
# shellcheck disable=SC2046  # no name has white space
listing=$(cd "$tree" && stat -c '%s %Y %f %n' $(cat .contents) | sha256sum | cut -c 1-64)
sed -e "s/@NAME@/$name/g" -e "s/@VERSION@/$version/g" -e "s/@SHORT@/${hash:0:16}/" -e "s/@ARCHIVE@/$hash/" \
    -e "s/@LISTING@/$listing/" -e "s/@LINES@/$(wc -l <"$stub")/" -e "s/@NURSERY@/$NURSERY/" -e "s/@GROWTH@/$GROWTH/" \
    -e "s/@GLIBC@/$GLIBC/" "$stub" >"$file.new"
cat "$archive" >>"$file.new"
chmod 755 "$file.new"
mv "$file.new" "$file"
