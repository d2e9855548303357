# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# table.jq - results.json as lines for a terminal.

def pad($width): tostring | . + (" " * ([0, $width - length] | max));
def right($width): tostring | (" " * ([0, $width - length] | max)) + .;

# Three digits that count, with thousands apart.
def grouped: tostring | [while(length > 0; .[:-3])] | reverse
	| . as $parts | [range(length) | $parts[.][(if . == 0 then 0 else $parts[. - 1] | length end):]]
	| join(",");
def number: if . == null then "" elif . >= 1000 then round | grouped
	elif . >= 100 then round | tostring
	elif . >= 10 then . * 10 | round / 10 | tostring
	else . * 1000 | round / 1000 | tostring end;
def times: if . == null then "" else . * 100 | round / 100 | tostring + "x" end;
def spread: if .median == 0 then "" else
	(.highest - .lowest) / .median * 50 | round | "±\(.)%" end;

.machine as $machine
| "",
  "\($machine.cpu), \($machine.cores) cores, \($machine.memory_mb / 1024 | round) GB, Linux \($machine.kernel), \($machine.system)",
  ($machine.versions | to_entries[] | "\(.key): \(.value)"),
  "\($machine.date), \($machine.mode), \($machine.rounds) rounds, \($machine.seconds) s; load before: \($machine.load_before)",
  (.rows[] | . as $row
	| "",
	  "\(.title), \(.unit) (\(.better) is better)",
	  ("  " + ("" | pad(14)) + ("median" | right(12)) + ("spread" | right(8))
		+ ("to portmap" | right(12)) + ("to plain" | right(10))),
	  (["plain", "portmap", "nftables", "before", "established", "off", "always"] as $order
	  | (.contenders | to_entries | sort_by(.key as $k | $order | index($k) // 99))[]
	  | "  " + (.key | pad(14)) + (.value.median | number | right(12))
		+ (.value | spread | right(8)) + (.value.to_portmap | times | right(12))
		+ (.value.to_plain | times | right(10))
		+ (if .value.notes == [] then "" else "  " + (.value.notes | join("; ")) end))),
  "",
  (.budgets[] | "\(if .ok then "ok    " else "MISSED" end)  \(.title), \(.contender): "
	+ (if .kind == "at-most" then "\(.reached | number) \(.unit), at most \(.value | number)"
	   elif .kind == "at-least" then "\(.reached | number) \(.unit), at least \(.value | number)"
	   else "\(.reached * 100 | round / 100) times better than \(.other), at least \(.value)" end)),
  "",
  (.failed | group_by([.failed, .contender])[]
	| "FAILED: \(.[0].failed), \(.[0].contender), \(length) times: \(.[0].error)")
