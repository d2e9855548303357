# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
#
# common.sh - the settings of the run and its worlds, and the tables of rows and measures, which
# rows_*.sh fill.
#
# row NAME UNIT higher|lower TITLE
#   a line of the report; higher or lower is better.
# budget ROW CONTENDER at-most|at-least VALUE
# budget ROW CONTENDER times VALUE OTHER
#   the goal of a row: a value, or a factor by which it is better than another contender. The report
#   says whether it is reached.
# measure WHEN CONTENDERS LIMIT FUNCTION [ARGUMENT...]
#   WHEN: quick (always) or full (not with BENCH=quick); quick/1, full/1: one round is enough.
#   CONTENDERS: separated by commas: $everyone, $translators, $ours, ...
#   LIMIT: seconds after which one run of the function is killed, and counts as failed.
#   FUNCTION runs in the contender's world (see world), and prints by `result ROW VALUE [NOTE]`.
# each_family row|budget|measure ...
#   the same for IPv4 and for IPv6, whose row is called ROW_v6; a quick run takes it once.
#   FUNCTION uses `of_family` and `address_of_family`; result knows the row's name.

build=${BUILD:-$project/build}
bench=${BENCH:-full}
if [ "$bench" = quick ]; then
	bench_rounds=${BENCH_ROUNDS:-3} bench_seconds=${BENCH_SECONDS:-0.3}
	bench_limit=${BENCH_LIMIT:-1500}
else
	bench_rounds=${BENCH_ROUNDS:-5} bench_seconds=${BENCH_SECONDS:-2}
	bench_limit=${BENCH_LIMIT:-7200}
fi
bench_nice=${BENCH_NICE:--10}

all_contenders="plain portmap nftables ${BEFORE:+before }established off always"
contenders=${CONTENDERS:-$all_contenders}
everyone=plain,portmap,nftables,established,off,always
translators=portmap,nftables,established,off,always
ours=established,off,always

# Where the newest reference plugins are, if they are available: tests/bench/newest.
export NEWEST=${NEWEST:-$build/bench/newest}
newest_plugins=$NEWEST/usr/lib/cni

available() {
	[ "$1" != nftables ] || [ -x "$newest_plugins/portmap" ] || return 1
}

rows=()
measures=()
budgets=()
row() { rows+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"$4"); }
measure() { measures+=("$1 ${2/established/${BEFORE:+before,}established} ${*:3}"); }
budget() { budgets+=("$*"); }

each_family() {
	"$@"
	case $1 in
	row) row "$2_v6" "$3" "$4" "$5, IPv6" ;;
	budget) budget "$2_v6" "${@:3}" ;;
	measure)
		[ "$bench $2" != 'quick quick' ] || set -- "$1" quick/1 "${@:3}"
		measure "$2" "$3" "$4" over_ipv6 "${@:5}"
		;;
	esac
}

for file in "$here"/rows_*.sh; do
	# shellcheck source=/dev/null
	. "$file"
done
