# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# kube_proxy.sh - many rules, as kube-proxy writes them in its mode iptables.

# kube_proxy_rules: those of 2,500 services with a node port: 10,000
kube_proxy_rules() {
	local i
	echo '*nat'
	printf ':KUBE-SERVICES -\n:KUBE-NODEPORTS -\n'
	for ((i = 0; i < 2500; i++)); do printf ':KUBE-SVC-%d -\n:KUBE-SEP-%d -\n' $i $i; done
	echo '-A PREROUTING -j KUBE-SERVICES'
	for ((i = 0; i < 2500; i++)); do
		echo "-A KUBE-SERVICES -d 10.96.$((i / 250)).$((i % 250 + 1))/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-$i"
		echo "-A KUBE-NODEPORTS -p tcp -m tcp --dport $((30000 + i)) -j KUBE-SVC-$i"
		echo "-A KUBE-SVC-$i -j KUBE-SEP-$i"
		echo "-A KUBE-SEP-$i -p tcp -m tcp -j DNAT --to-destination 10.87.$((i / 250)).$((i % 250 + 1)):80"
	done
	echo '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS'
	echo COMMIT
}
