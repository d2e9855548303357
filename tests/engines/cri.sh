# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# cri.sh - a client of the Container Runtime Interface, like kubelet. gRPC is HTTP/2 with five bytes
# (a flag and the length) before each message. curl speaks HTTP/2, protoc encodes the messages.

cri_proto=$project/tests/engines/cri.proto

cri_encode() { protoc -I "${cri_proto%/*}" --encode="runtime.v1.$1" "$cri_proto"; }
cri_decode() { protoc -I "${cri_proto%/*}" --decode="runtime.v1.$1" "$cri_proto"; }

# cri_frame FILE: its content as a gRPC message
cri_frame() {
	local length shift
	length=$(stat -c %s "$1")
	printf '\0'
	for shift in 24 16 8 0; do
		printf "\\x$(printf %02x $((length >> shift & 255)))"
	done
	cat "$1"
}

# cri_call METHOD REQUEST RESPONSE <TEXT: calls the runtime that listens on $cri_socket with a
# message in protobuf's text format, and prints the response in the same format, or the runtime's
# error.
cri_call() {
	local scratch status
	scratch=$(mktemp -d /run/cri.XXXXXX)
	cri_encode "$2" >"$scratch/message"
	cri_frame "$scratch/message" >"$scratch/request"
	curl --silent --show-error --max-time $((30 * ${SLOWER:-1})) --http2-prior-knowledge --unix-socket "$cri_socket" \
		-H 'content-type: application/grpc' -H 'te: trailers' --data-binary @"$scratch/request" \
		-D "$scratch/headers" -o "$scratch/response" \
		"http://localhost/runtime.v1.RuntimeService/$1" || return 1
	status=$(cri_header grpc-status "$scratch/headers")
	if [ "$status" = 0 ]; then
		tail -c +6 "$scratch/response" | cri_decode "$3"
	else
		cri_header grpc-message "$scratch/headers"
	fi
	rm -r "$scratch"
	[ "$status" = 0 ]
}

cri_header() { tr -d '\r' <"$2" | sed -n "s/^$1: //p" | tail -n 1; }

# sandbox_run NAME [PORT...]: prints its ID. A port is HOST:CONTAINER/PROTOCOL[@HOST-ADDRESS]
sandbox_run() {
	local name=$1 port
	shift
	{
		echo "config { metadata { name: '$name' uid: 'uid-of-$name' namespace: 'default'"
		echo "attempt: ${attempt:-0} } hostname: '$name' log_directory: '/run/logs'"
		for port; do
			sed -E 's|(.*):(.*)/([^@]*)@?(.*)|port_mappings { host_port: \1 container_port: \2\
				protocol: \U\3\E host_ip: "\4" }|' <<<"$port"
		done
		echo '}'
	} | cri_call RunPodSandbox RunRequest Sandbox | sed 's/^pod_sandbox_id: "\(.*\)"$/\1/'
}

sandbox_stop() { cri_call StopPodSandbox Sandbox Nothing <<<"pod_sandbox_id: '$1'"; }
sandbox_remove() { cri_call RemovePodSandbox Sandbox Nothing <<<"pod_sandbox_id: '$1'"; }
sandboxes() { cri_call ListPodSandbox Nothing ListResponse </dev/null; }
