#!/usr/bin/env bash
# Installs what building and trying Quorate needs on Debian 12 or later, and nothing that is there.
#
#   scripts/setup.sh           what `make run`, `make test`, `make bench` and `make burst` need
#   scripts/setup.sh lint      also rustfmt and clippy
#   scripts/setup.sh verify    also cargo-deny, for `make verify`
#
# Safe to repeat: quiet, and quick, when nothing is missing. As root it installs; as another user
# it says what root has to run.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

RUST_NEEDED=1.95
PLUGINS=/usr/lib/cni

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
any_file() { compgen -G "$1" >/dev/null; }
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# The version of the Rust compiler on the path; nothing if there is none that runs.
rust_version() { rustc --version 2>/dev/null | awk '{ print $2 }' || true; }
rust_fits() { have cargo && [ -n "$(rust_version)" ] && at_least "$RUST_NEEDED" "$(rust_version)"; }
candidate() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }
known() { [ -n "$(candidate "$1")" ]; }

updated=
apt_update() {
  [ -z "$updated" ] || return 0
  say "reading the package lists (apt-get update)"
  apt-get update -qq >/dev/null || die "apt-get update failed: are the package sources of this machine reachable?"
  updated=1
}

apt_install() {
  say "installing $*"
  # One line a package is enough: the whole of apt's output is shown only if it fails.
  local log
  log="$(mktemp)"
  if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "apt-get could not install: $*"
  fi
  rm -f "$log"
}

# What of Debian's packages is missing, judged by what we use of each.
missing_packages() {
  have gcc && have g++ && have make || echo build-essential
  have pkg-config || echo pkg-config
  have git || echo git
  [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
  any_file '/usr/lib/*/librocksdb.so' || echo librocksdb-dev
  # bindgen reads RocksDB's header through it while compiling.
  any_file '/usr/lib/llvm-*/lib/libclang.so*' || any_file '/usr/lib/*/libclang-[0-9]*.so*' || echo libclang
  [ -x "$PLUGINS/bridge" ] && [ -x "$PLUGINS/host-local" ] || echo containernetworking-plugins
  have ip || echo iproute2
  have ping || echo iputils-ping
}

# The name of a package that differs between releases.
resolve() {
  case "$1" in
    libclang)
      if known libclang1; then echo libclang1; return; fi
      local newest
      newest="$(apt-cache pkgnames libclang1- | grep -E '^libclang1-[0-9]+$' | sort -V | tail -n 1)"
      [ -n "$newest" ] || die "no package of libclang is known to apt here: install libclang, then run this again"
      echo "$newest" ;;
    *) echo "$1" ;;
  esac
}

install_rust() {
  local pair rustc cargo
  for pair in "rustc cargo" "rustc-web cargo-web"; do
    read -r rustc cargo <<<"$pair"
    if known "$rustc" && known "$cargo" && at_least "$RUST_NEEDED" "$(candidate "$rustc" | sed 's/[^0-9.].*//')"; then
      apt_install "$rustc" "$cargo"
      hash -r
      rust_fits || die "$(command -v rustc) is $(rust_version), and hides the newer one just installed in /usr/bin: put /usr/bin first in PATH"
      return
    fi
  done
  if ! have rustup && known rustup; then
    apt_install rustup
  fi
  if have rustup; then
    say "installing the stable Rust toolchain (rustup)"
    rustup toolchain install stable --profile minimal >/dev/null 2>&1 && rustup default stable >/dev/null 2>&1 || true
    hash -r
  fi
  rust_fits || die "Rust $RUST_NEEDED or later is needed and this system's packages have none: install it with rustup (rustup.rs), then run this again"
}

packages="$(missing_packages)"
rust_is_missing=
rust_fits || rust_is_missing=1
if [ -n "$packages" ] || [ -n "$rust_is_missing" ]; then
  have apt-get || die "missing: ${packages//$'\n'/ } ${rust_is_missing:+Rust $RUST_NEEDED}; this script installs with apt-get, which is not here"
  if [ "$(id -u)" -ne 0 ]; then
    die "missing: ${packages//$'\n'/ }${rust_is_missing:+ and Rust $RUST_NEEDED}; run once as root: $(pwd)/scripts/setup.sh"
  fi
  apt_update
fi
if [ -n "$packages" ]; then
  # The plugins' package wants iptables only for `ipMasq`, which we never ask for.
  resolved=
  for package in $packages; do resolved="$resolved $(resolve "$package")"; done
  # shellcheck disable=SC2086
  apt_install $resolved
fi
[ -z "$rust_is_missing" ] || install_rust

level="${1:-}"
[ "$level" = lint ] || [ "$level" = verify ] || exit 0

# The tools that only judge the code.
tool_package() {
  if [ "$(command -v rustc)" = /usr/bin/rustc ] && installed rustc-web; then echo "$2"; else echo "$1"; fi
}
for tool in "cargo-fmt rustfmt rustfmt-web" "cargo-clippy rust-clippy rust-web-clippy"; do
  read -r binary plain web <<<"$tool"
  have "$binary" && cargo "${binary#cargo-}" --version >/dev/null 2>&1 && continue
  if have rustup; then
    component="${binary#cargo-}"
    [ "$component" = fmt ] && component=rustfmt
    say "installing $component (rustup)"
    rustup component add "$component" >/dev/null
  elif [ "$(id -u)" -eq 0 ]; then
    apt_update
    apt_install "$(tool_package "$plain" "$web")"
  else
    die "$binary is missing; run once as root: $(pwd)/scripts/setup.sh lint"
  fi
done
if [ "$level" = verify ] && ! have cargo-deny; then
  say "installing cargo-deny from source; this takes minutes, once"
  cargo install --quiet --locked cargo-deny
fi
