// SPDX-License-Identifier: GPL-2.0-only
//
// Pass every packet that arrives at a switch port from a host. See host_port.py for the purpose.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC("xdp")
int pass(struct xdp_md *packet)
{
	return XDP_PASS;
}
