# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# chart.jq - results.json as an SVG picture: the main rows, each contender a bar. Rates are drawn
# as multiples of the distribution's portmap, times as they are. Rows that the run did not
# measure are left out.

def contenders: [
	{name: "portmap", label: "portmap (iptables)"},
	{name: "nftables", label: "portmap, newest (nftables)"},
	{name: "plain", label: "plain routing, no NAT"},
	{name: "off", label: "bpf-portmap, fastPath off"},
	{name: "established", label: "bpf-portmap, established (default)"},
	{name: "always", label: "bpf-portmap, always"}];

def rates: [
	{row: "udp_in_30000", label: "UDP packets, 30,000 flows in"},
	{row: "udp_out_30000", label: "UDP packets, 30,000 flows out"},
	{row: "udp_slow", label: "UDP packets, 60,000 slow flows"},
	{row: "udp_slow_worst", label: "... the worst second of seven"},
	{row: "udp_in_new", label: "UDP packets, new flows in"},
	{row: "udp_in_oneway", label: "UDP packets, never answered, in"},
	{row: "tcp_connect", label: "TCP connections"}];

def times: [
	{row: "add_tcp_1", label: "ADD, one port"},
	{row: "del_tcp_1", label: "DEL, one port"}];

def left: 210;
def width: 860;
def bar: 11;
def escaped: gsub("&"; "&amp;") | gsub("<"; "&lt;");
def text($x; $y; $class): "<text x=\"\($x)\" y=\"\($y)\" class=\"\($class)\">\(escaped)</text>";
def rounded($digits): . * pow(10; $digits) | round / pow(10; $digits);

# One line of the chart: what it is called, and its bars [{name, size, label}]
def group($y; $largest):
	. as $group
	| (.bars | length * bar / 2) as $half
	| (.label | text(left - 10; $y + $half + 4; "row")),
	  (range(.bars | length) | . as $i | $group.bars[$i]
	   | ([1, .size / $largest * (width - left - 70) | rounded(1)] | max) as $long
	   | "<rect x=\"\(left)\" y=\"\($y + $i * bar)\" width=\"\($long)\" height=\"\(bar - 2)\" class=\"\(.name)\"/>",
	     (.label | text(left + $long + 5; $y + $i * bar + 8; "value")));

# Groups under each other from $y on, with a title
def panel($title; $y):
	(map(.bars[].size) | max // 1) as $largest
	| ($title | text(0; $y; "title")),
	  (foreach .[] as $group ({at: ($y + 14)};
		{from: .at, at: (.at + ($group.bars | length) * bar + 12), group: $group};
		.from as $from | .group | group($from; $largest)));

def height_of: 34 + (map((.bars | length) * bar + 12) | add // 0);

. as $results
| [contenders[] | select(.name as $name | any($results.rows[]; .contenders[$name]))] as $shown
| def row_of($name): [$results.rows[] | select(.row == $name)][0];
  def bars_of($row; label_of; size_of): [$shown[] | . as $c | $row.contenders[.name] // empty
	| {name: $c.name, size: size_of, label: label_of}];
  [rates[] | . as $wanted | row_of(.row) | select(. != null and .contenders.portmap) | . as $row
	| $row.contenders.portmap.median as $one
	| {label: $wanted.label, bars: bars_of($row; .median / $one | rounded(2) | "\(.)x";
		.median / $one)}] as $rates
| [times[] | . as $wanted | row_of(.row) | select(. != null) | . as $row
	| {label: $wanted.label, bars: bars_of($row; .median | rounded(2) | "\(.) ms"; .median)}] as $times
| ($rates | height_of) as $first
| (40 + $first + (if $times == [] then 0 else ($times | height_of) end)) as $height
| "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-12 -12 \(width + 24) \($height + 36)\" width=\"\(width)\" role=\"img\" aria-label=\"Benchmark of bpf-portmap\">
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.row { text-anchor: end; }
.value { font-size: 9.5px; fill: #59636e; }
.title { font-size: 14px; font-weight: 600; }
.note { fill: #59636e; font-size: 11px; }
.portmap { fill: #8c959f; } .nftables { fill: #b7bec6; } .plain { fill: #d8a24a; }
.off { fill: #9ec5f4; } .established { fill: #1f6feb; } .always { fill: #12489e; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .value, .note { fill: #9198a1; }
.portmap { fill: #7d8590; } .nftables { fill: #545d68; } .plain { fill: #c69026; }
.off { fill: #2f5d9e; } .established { fill: #4493f8; } .always { fill: #a5d0ff; }
}
</style>",
  (range($shown | length) | . as $i | $shown[$i]
	| "<rect x=\"\($i % 3 * 280)\" y=\"\(($i / 3 | floor) * 18)\" width=\"12\" height=\"12\" class=\"\(.name)\"/>",
	  (.label | text($i % 3 * 280 + 18; ($i / 3 | floor) * 18 + 10; "legend"))),
  ($rates | panel("Rates, as multiples of the reference portmap (longer is better)"; 62)),
  (select($times != []) | $times | panel("Time of the plugin (shorter is better)"; 62 + $first)),
  ("\($results.machine.cpu), \($results.machine.cores) cores, Linux \($results.machine.kernel), \($results.machine.date[:10]), medians of \($results.machine.rounds), commit \($results.machine.versions.commit)"
	| text(0; $height + 14; "note")),
  "</svg>"
