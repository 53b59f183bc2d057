#!/bin/sh
# Starts three instances on this machine and makes a network of them: a leads, and each of three shards has two owners.
#
#     docs/three-instances.sh [PROGRAM [DIRECTORY [FIRST-PORT]]]
#
# They run until this script is interrupted. Data stays in DIRECTORY: run it again with the same one to go on.
set -eu
program=${1:-./svc}
directory=${2:-./network.svc}
port=${3:-7700}

url() { echo "http://localhost:$((port + $1))"; }
ask() { # METHOD INSTANCE PATH BODY
	curl -sS --fail-with-body -X "$1" "$(url "$2")$3" -H 'Content-Type: application/json' -d "$4"
	echo
}

processes=
trap 'kill $processes 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM
for i in 0 1 2; do
	mkdir -p "$directory/$i"
	"$program" --db-path "$directory/$i/data" --dump-dir "$directory/$i/dumps" --snapshot-dir "$directory/$i/snapshots" \
		--http-addr "localhost:$((port + i))" --experimental-allowed-ip-networks 127.0.0.0/8,::1/128 >"$directory/$i/log" 2>&1 &
	processes="$processes $!"
done
for i in 0 1 2; do
	tries=0
	until curl -s -o /dev/null "$(url $i)/health"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { echo "instance $i does not answer; see $directory/$i/log" >&2; exit 1; }
		sleep 0.1
	done
	ask PATCH $i /experimental-features '{"network": true}' >/dev/null
done
if curl -s "$(url 0)/network" | grep -q '"leader":null'; then
	ask PATCH 0 /network '{
		"self": "a", "leader": "a",
		"remotes": {"a": {"url": "'"$(url 0)"'"}, "b": {"url": "'"$(url 1)"'"}, "c": {"url": "'"$(url 2)"'"}},
		"shards": {"x": {"remotes": ["a", "b"]}, "y": {"remotes": ["b", "c"]}, "z": {"remotes": ["c", "a"]}}
	}'
fi
echo "a leads at $(url 0); b is at $(url 1), c at $(url 2); logs are in $directory/*/log"
wait
