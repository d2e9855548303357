# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_monitoring.sh - conf/monitoring: alerts and a dashboard, of metrics that exist.

monitoring_needs_promtool() {
	command -v promtool >/dev/null || skip "there is no promtool (package prometheus)"
	cp "$project"/conf/monitoring/* "$project"/tests/monitoring/* /run
}

# The expressions of the dashboard, with values for its variables.
dashboard_expressions() {
	jq -r '.panels[].targets[].expr' /run/grafana-dashboard.json |
		sed 's/\$__rate_interval/5m/; s/\$instance/.*/'
}

# each alert fires for what it is made for, and for nothing beside it
test_monitoring_alerts() {
	monitoring_needs_promtool
	(cd /run && promtool check rules bpf-portmap.rules.yml && promtool test rules alerts.yml) \
		>/run/out 2>&1 || fail "$(cat /run/out)"
	expect_equal "$(sed -n 's/^ *- alert: //p' /run/bpf-portmap.rules.yml | sort)" \
		"$(sed -n 's/^ *- alertname: //p' /run/alerts.yml | sort -u)" "alerts that are tested"
}

# Prometheus can read every expression of the dashboard
test_monitoring_dashboard() {
	monitoring_needs_promtool
	dashboard_expressions | jq -Rn '{groups: [{name: "panels", rules: [inputs] | to_entries |
		map({record: "bpf_portmap:panel\(.key)", expr: .value})}]}' >/run/panels.yml
	promtool check rules /run/panels.yml >/run/out 2>&1 || fail "$(cat /run/out)"
	expect_in /run/out "$(jq '[.panels[].targets[]] | length' /run/grafana-dashboard.json) rules found"
}

# alerts and dashboard name no metric and no label that `stats` does not print
test_monitoring_names() {
	local name known
	monitoring_needs_promtool
	web_as_pod -p 8080:80/tcp
	by_hand 0 stats --prometheus --checks
	{
		dashboard_expressions
		sed -n 's/^ *expr: //p' /run/bpf-portmap.rules.yml
	} >/run/expressions
	known=$(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' /run/out)
	for name in $(grep -o 'bpf_portmap_[a-z_]*' /run/expressions | sort -u); do
		grep -qx "$name" <<<"$known" || fail "there is no metric $name"
	done
	known=$(grep -v '^#' /run/out | grep -oE '[a-z_]+="' | sort -u)
	for name in $(grep -oE '[a-z_]+(=|!=|=~)"' /run/expressions | sed 's/[!=~]*"//' | sort -u); do
		[ "$name" = instance ] || grep -qx "$name=\"" <<<"$known" || fail "there is no label $name"
	done
}
