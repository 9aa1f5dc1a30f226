// SPDX-License-Identifier: GPL-2.0-only
//
// Replace every packet that arrives at a switch port from a host by a clone, which belongs to no
// socket. See packet_programs.py for the purpose. The clone arrives at the same port once more; its
// mark says that it is one.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

#define CLONE 0x10ab

SEC("tc")
int replace(struct __sk_buff *skb)
{
	if (skb->mark == CLONE) {
		skb->mark = 0;
		return TC_ACT_UNSPEC;
	}
	skb->mark = CLONE;
	if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS)) {
		skb->mark = 0;
		return TC_ACT_UNSPEC;
	}
	return TC_ACT_SHOT;
}
