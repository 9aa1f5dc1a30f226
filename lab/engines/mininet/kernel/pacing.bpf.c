// SPDX-License-Identifier: GPL-2.0-only
//
// Sets the pacing rates of TCP sockets. The program is an iterator: the kernel calls `pace` for
// each TCP socket of a network namespace. It is run after a rate in the map `rates` has changed.
// `pace` sets SO_MAX_PACING_RATE of each socket in the map; the kernel then paces the socket,
// counting payload bytes.
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define KERNEL __attribute__((preserve_access_index)) // field offsets: from the running kernel

struct sock_common {
	__be32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
} KERNEL;

struct bpf_iter__tcp {
	struct sock_common *sk_common;
} KERNEL;

struct tcp_sock;

struct flow {
	__be32 source, destination;
	__be16 source_port, destination_port;
};

struct {
	__type(key, struct flow);
	__type(value, __u32); // payload bytes per second; 0xffffffff means no limit
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
} rates SEC(".maps");

SEC("iter/tcp")
int pace(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct tcp_sock *socket = common ? bpf_skc_to_tcp_sock(common) : 0;
	if (!socket)
		return 0;
	struct flow flow = {
		.source = common->skc_rcv_saddr,
		.destination = common->skc_daddr,
		.source_port = bpf_htons(common->skc_num),
		.destination_port = common->skc_dport,
	};
	__u32 *found = bpf_map_lookup_elem(&rates, &flow);
	if (!found)
		return 0;
	__u32 rate = *found;
	bpf_setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	return 0;
}
