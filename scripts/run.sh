#!/usr/bin/env bash
# `make run`: Quorate at work, in one screen. Three replicas on loopback; containers (network
# namespaces) that the stock `bridge` plugin connects, with addresses from Quorate; the leader
# killed meanwhile. Everything is removed at the end, however it ends.
#
#   KEEP=1        leave the cluster up, and say how to talk to it and how to stop it
#   PROFILE=release   optimised binaries; the default, debug, is built in a third of the time, and
#                 nothing here is a measurement
#   QUORATE_BIN_DIR=DIR   use the binaries there, build nothing
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

KEEP="${KEEP:-}"
PROFILE="${PROFILE:-debug}"
PLUGINS=/usr/lib/cni
RANGE=10.88.0.0/24
# Interface names have at most 15 characters; the process id keeps two runs apart.
BRIDGE="quorate$$"
PODS=(web-0 web-1 web-2)
netns_of() { printf 'quorate-%s-%s' "$$" "$1"; }

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
number=0
step() { number=$((number + 1)); printf '\n%s%d. %s%s\n' "$bold" "$number" "$*" "$plain"; }
show() { sed "s/^/   /"; }
note() { printf '   %s%s%s\n' "$dim" "$*" "$plain"; }
die() { printf '\nrun: %s\n' "$*" >&2; exit 1; }

folder="$(mktemp -d "${TMPDIR:-/tmp}/quorate-run.XXXXXX")"
pids=()
cleanup() {
  local status=$? name pid
  trap - EXIT INT TERM
  set +e
  for name in "${PODS[@]}"; do ip netns delete "$(netns_of "$name")" 2>/dev/null; done
  ip link delete "$BRIDGE" 2>/dev/null
  if [ -n "$KEEP" ] && [ "$status" -eq 0 ]; then exit 0; fi
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  for pid in "${pids[@]}"; do
    # Replicas drain for a moment; one that does not is ended.
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null
  done
  if [ "$status" -ne 0 ]; then tail -n 5 "$folder"/quorate-*.log 2>/dev/null >&2; fi
  rm -rf "$folder"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- Building -----------------------------------------------------------------------------------

if [ -n "${QUORATE_BIN_DIR:-}" ]; then
  step "Use the replica, the CNI plugin and the admin CLI that are built already"
  bin="$QUORATE_BIN_DIR"
else
  step "Build the replica, the CNI plugin and the admin CLI (the first time takes minutes)"
  release=()
  [ "$PROFILE" != release ] || release=(--release)
  cargo build --locked "${release[@]}" -p quorate-server -p quorate-shim -p quorate-ctl
  bin="${CARGO_TARGET_DIR:-target}/$PROFILE"
fi
bin="$(cd "$bin" && pwd)"
note "in $bin"

# --- The cluster --------------------------------------------------------------------------------

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
base=
for candidate in $(seq 7400 100 9900); do
  taken=
  for offset in 0 1 2 10 11 12; do port_is_free $((candidate + offset)) || taken=1; done
  [ -n "$taken" ] || { base=$candidate; break; }
done
[ -n "$base" ] || die "no free ports between 7400 and 9912"

peers=() endpoints=
for i in 0 1 2; do
  peers+=(--peer "quorate-$i=127.0.0.1:$((base + i))")
  endpoints="${endpoints:+$endpoints,}quorate-$i=127.0.0.1:$((base + i))"
done
ctl() { "$bin/quoratectl" --insecure --endpoints "$endpoints" "$@"; }

start() {
  setsid "$bin/quorate-server" --insecure --name "quorate-$1" --data-dir "$folder/quorate-$1" \
    --listen "127.0.0.1:$((base + $1))" --http-listen "127.0.0.1:$((base + 10 + $1))" \
    "${peers[@]}" </dev/null >>"$folder/quorate-$1.log" 2>&1 &
  pids[$1]=$!
  # Else bash reports the death of the one that is killed below.
  disown "${pids[$1]}"
}

# Whether a replica answers, be it that no cluster is born yet (`cluster status` ends with 1 then).
answers() {
  local status=0
  "$bin/quoratectl" --insecure --endpoints "quorate-$1=127.0.0.1:$((base + $1))" cluster status 2>&1 || status=$?
  [ "$status" -le 1 ]
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# Asks often until a command succeeds, for at most 20 seconds.
eventually() {
  local end=$((SECONDS + 20)) last
  until last="$("$@" 2>&1)"; do
    [ "$SECONDS" -lt "$end" ] || die "waited 20 s in vain for: $*: $last"
    sleep 0.05
  done
}

step "Start three replicas on loopback, with their data in $folder"
for i in 0 1 2; do start "$i"; done
for i in 0 1 2; do eventually answers "$i"; done
note "ports $base to $((base + 2)), metrics on $((base + 10)) to $((base + 12)), processes ${pids[*]}"

step "Birth: an explicit, one-time act, so that three empty disks never pass for a new cluster"
note "quoratectl cluster init"
ctl cluster init 2>&1 | show

# --- Containers ---------------------------------------------------------------------------------

cat >"$folder/node.json" <<JSON
{"cluster": "local", "node": "node-1", "machineId": "machine-of-node-1", "incarnation": "",
 "endpoints": [{"name": "quorate-0", "address": "127.0.0.1:$base"},
               {"name": "quorate-1", "address": "127.0.0.1:$((base + 1))"},
               {"name": "quorate-2", "address": "127.0.0.1:$((base + 2))"}],
 "insecure": true, "stateDir": "$folder/node-1"}
JSON
cat >"$folder/network.json" <<JSON
{"cniVersion": "1.0.0", "name": "demo", "type": "bridge", "bridge": "$BRIDGE",
 "ipam": {"type": "quorate", "range": "$RANGE", "nodeFile": "$folder/node.json"}}
JSON

# Network namespaces and bridges need root, and a system that lets them be made and entered.
networks=
if [ "$(id -u)" -eq 0 ] && [ -x "$PLUGINS/bridge" ] && ip netns add "$(netns_of probe)" 2>/dev/null; then
  if ip -netns "$(netns_of probe)" link set lo up 2>/dev/null && ip link add "$BRIDGE" type bridge 2>/dev/null; then
    networks=1
    ip link delete "$BRIDGE"
  fi
  ip netns delete "$(netns_of probe)"
fi

# One CNI call: verb, pod.
cni() {
  local plugin="$PLUGINS/bridge" netns
  netns="$(netns_of "$2")"
  [ -n "$networks" ] || plugin="$bin/quorate"
  CNI_COMMAND="$1" CNI_CONTAINERID="$2" CNI_IFNAME=eth0 CNI_NETNS="/run/netns/$netns" \
    CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=$2" \
    CNI_PATH="$PLUGINS:$bin" "$plugin" <"$folder/network.json"
}
add() {
  local netns result
  netns="$(netns_of "$1")"
  [ -z "$networks" ] || ip netns add "$netns"
  result="$(cni ADD "$1")" || die "ADD for $1 failed: $result"
  if [ -n "$networks" ]; then
    ip -netns "$netns" link set lo up
    printf '%s: ' "$1"; ip -netns "$netns" -brief -4 address show eth0
  else
    printf '%s: %s\n' "$1" "$(tr -d '\n\t ' <<<"$result")"
  fi | show
}
delete() {
  local result
  result="$(cni DEL "$1")" || die "DEL for $1 failed: $result"
  [ -z "$networks" ] || ip netns delete "$(netns_of "$1")"
}
address_of() { ip -netns "$(netns_of "$1")" -brief -4 address show eth0 | awk '{ sub("/.*", "", $3); print $3 }'; }

if [ -n "$networks" ]; then
  step "Two containers: the stock bridge plugin connects them, and asks our plugin for addresses"
else
  step "Two containers, our plugin alone: network namespaces or bridges are not to be had here"
fi
add "${PODS[0]}"
add "${PODS[1]}"

if [ -n "$networks" ]; then
  step "They reach each other"
  ip netns exec "$(netns_of "${PODS[0]}")" ping -n -c 2 -i 0.2 -W 2 "$(address_of "${PODS[1]}")" | show
fi

# --- Trouble ------------------------------------------------------------------------------------

leader_of() { ctl cluster status -o json | grep -oE '"leader": *"quorate-[0-9]"' | grep -oE '[0-9]' | head -n 1; }
leader="$(leader_of)"
[ -n "$leader" ] || die "no leader in: $(ctl cluster status -o json)"
step "Kill the leader, quorate-$leader, with SIGKILL, and add a third container at once"
kill -KILL "${pids[$leader]}"
eventually gone "${pids[$leader]}"
before="${EPOCHREALTIME/[.,]/}"
add "${PODS[2]}"
after="${EPOCHREALTIME/[.,]/}"
note "took $(((after - before) / 1000)) ms, election included"

step "What the cluster knows"
table() { note "quoratectl $*"; ctl "$@" 2>&1 | show; }
table cluster status
table pool list
table address list

step "The killed replica comes back on its data and catches up"
start "$leader"
eventually answers "$leader"
table cluster status

step "Delete all three containers"
for name in "${PODS[@]}"; do delete "$name"; done
table address list
left="$(ctl address list -o json | grep -cF '"address"' || true)"
[ "$left" -eq 0 ] || die "$left addresses are left"
note "nothing is left"

if [ -n "$KEEP" ]; then
  step "The cluster stays up"
  cat >"$folder/stop" <<SH
kill ${pids[*]}
for pid in ${pids[*]}; do while kill -0 \$pid 2>/dev/null; do sleep 0.1; done; done
rm -r "$folder"
SH
  cat <<TEXT | show
talk to it:   $bin/quoratectl --insecure --endpoints $endpoints cluster status
metrics:      http://127.0.0.1:$((base + 10))/metrics
the plugin:   CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_IFNAME=eth0 CNI_NETNS=/run/netns/c1 CNI_PATH=$PLUGINS $bin/quorate <$folder/network.json
logs, data:   $folder
stop it:      sh $folder/stop
TEXT
else
  step "Stop"
  note "replicas, bridge, namespaces and $folder are removed"
fi
