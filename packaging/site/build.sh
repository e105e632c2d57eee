#!/usr/bin/env bash
# packaging/site/build.sh FOLDER: builds the site of the documents there, strict, with what setup.sh docs has installed.
set -euo pipefail
folder=$(realpath -m "${1:?usage: packaging/site/build.sh FOLDER}")
root=$(cd "$(dirname "$0")/../.." && pwd)
# Without this variable, the theme advertises its successor at each start.
NO_MKDOCS_2_WARNING=1 "$root/.venv-docs/bin/python" -m mkdocs build \
    --config-file "$root/packaging/site/mkdocs.yml" --site-dir "$folder"
printf 'the site is in %s: open index.html\n' "$folder"
