#!/usr/bin/env bash
# packaging/deb/build.sh: packaging/dist/scaler-scheduler_<version>_amd64.deb around packaging/dist/scaler_scheduler.
#
# The man page, completions and the default configuration come from packaging/build (`make man`).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
tree=$BUILD/deb
documents=$tree/usr/share/doc/scaler-scheduler
PROGRAM=scaler_scheduler

# take MODE SOURCE PATH: copies SOURCE, if it exists, to PATH in the package
take() {
    [ ! -e "$2" ] || install -D -m "$1" "$2" "$tree$3"
}

changelog() {
    printf 'scaler-scheduler (%s) unstable; urgency=medium\n\n' "$VERSION"
    printf '  * Release %s: see CHANGELOG.md.gz.\n\n' "$VERSION"
    printf ' -- Scaler maintainers <scaler@localhost>  %s\n' "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
}

rm -rf "$tree"
mkdir -p "$tree/DEBIAN" "$documents"
chmod 755 "$tree" "$tree/DEBIAN"
take 755 "$DIST/$PROGRAM" "/usr/bin/$PROGRAM"
take 644 "$root/systemd/scaler-scheduler.service" /usr/lib/systemd/system/scaler-scheduler.service
take 644 "$BUILD/configuration/scheduler.toml" /etc/scaler/scheduler.toml
take 644 "$BUILD/man/$PROGRAM.1" "/usr/share/man/man1/$PROGRAM.1"
take 644 "$BUILD/completions/bash/$PROGRAM" "/usr/share/bash-completion/completions/$PROGRAM"
take 644 "$BUILD/completions/zsh/_$PROGRAM" "/usr/share/zsh/vendor-completions/_$PROGRAM"
take 644 "$root/CHANGELOG.md" /usr/share/doc/scaler-scheduler/CHANGELOG.md
take 644 "$here/lintian-overrides" /usr/share/lintian/overrides/scaler-scheduler
take 644 "$here/copyright" /usr/share/doc/scaler-scheduler/copyright
changelog >"$documents/changelog"
find "$tree/usr/share" -type f \( -name '*.1' -o -iname 'changelog*' \) -exec gzip -9n {} +
cp -R "$BUILD/one_file/licenses" "$documents/"
(cd "$BUILD/one_file/app" && find . -path '*.dist-info/*' -type f ! -name METADATA -exec cp --parents {} "$documents/licenses/" \;)

(cd "$tree" && find etc -type f -printf '/%p\n' | sort) >"$tree/DEBIAN/conffiles"
install -m 755 "$here"/{postinst,prerm,postrm} "$tree/DEBIAN/"
glibc=$(sed -n 's/.*with glibc \([0-9.]*\) or newer.*/\1/p' "$DIST/$PROGRAM" | head -n 1)
size=$(du -k --apparent-size --summarize --exclude=DEBIAN "$tree" | cut -f 1)
sed -e "s/@VERSION@/$VERSION/" -e "s/@GLIBC@/$glibc/" -e "s/@SIZE@/$size/" "$here/control" >"$tree/DEBIAN/control"
(cd "$tree" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
chmod 644 "$tree/DEBIAN"/{control,conffiles,md5sums}
find "$tree" -type d -exec chmod 755 {} +
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# The content is compressed already, so a low level is enough.
dpkg-deb --root-owner-group -Zgzip -z1 --build "$tree" "$DIST/scaler-scheduler_${VERSION}_amd64.deb"
# lintian takes minutes, so it runs only with LINTIAN=1.
[ -z "${LINTIAN-}" ] || lintian --allow-root --fail-on error,warning "$DIST/scaler-scheduler_${VERSION}_amd64.deb"
