#!/usr/bin/env bash
# Judges the code and changes nothing: format, lints, dependencies, documents. `make verify` calls
# it; `scripts/verify.sh quick` leaves out what needs cargo-deny, for a gate that must be quick.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

step() { printf '== %s\n' "$*"; }

step "format"
cargo fmt --all -- --check

step "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings

step "documents"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

[ "${1:-}" != quick ] || exit 0

step "licences, duplicates, sources"
cargo deny --locked check --hide-inclusion-graph licenses bans sources

step "advisories"
# They come from a database that is fetched, which not every machine may do: that is said, and is
# no failure of the code. An advisory that is found is.
if fetched="$(cargo deny --locked fetch db 2>&1)"; then
  cargo deny --locked check --disable-fetch --hide-inclusion-graph advisories
else
  printf 'not checked: the advisory database could not be fetched (%s)\n' "$(tail -n 1 <<<"$fetched")"
fi
