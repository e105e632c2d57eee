#!/usr/bin/env bash
# Generates scaler_scheduler/wire/schema.py and the last part of protocol/PROTOCOL.md from protocol/scaler.capnp.
# tests/wire/test_schema.py and test_protocol_document.py check that they are up to date.
set -euo pipefail
cd "$(dirname "$0")/../scheduler_daemon"

command -v capnp >/dev/null || { echo "capnp is missing: install Debian's package capnproto" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp protocol/scaler.capnp "$folder/"
python -m capnpy compile "$folder/scaler.capnp" --no-pyx --no-reflection --text-type=unicode
# Remove the line with the date, so that the same schema gives the same file.
grep -v '^# generated on ' "$folder/scaler.py" > scaler_scheduler/wire/schema.py
python ../packaging/protocol_fields.py
