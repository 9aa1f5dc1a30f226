/* SPDX-License-Identifier: GPL-2.0-only */
// What the programs of WiFi cells share: their clock, the addresses of a packet, and when fq sends
// it.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "cell.h"

#define ETHERTYPE_IPV4 0x0800
#define SOURCE_OFFSET 26
#define DESTINATION_OFFSET 30
#define HEADERS_BYTES 34
#define MILLION 1000000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

// Return the value in `stations` for the IPv4 address in the packet at `offset`, or NULL.
static __always_inline void *found_by_address(struct __sk_buff *skb, int offset, void *stations)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	if (data + HEADERS_BYTES > end || *(__u16 *)(data + 12) != bpf_htons(ETHERTYPE_IPV4))
		return 0;
	__u32 address = *(__u32 *)(data + offset);
	return bpf_map_lookup_elem(stations, &address);
}

// Let fq keep the packet until `departure_ns`.
static __always_inline int leave_at(struct __sk_buff *skb, __u64 departure_ns)
{
	// A plain assignment to skb->tstamp would look like a time of day where the packet is captured.
	bpf_skb_set_tstamp(skb, departure_ns, BPF_SKB_TSTAMP_DELIVERY_MONO);
	return TC_ACT_OK;
}
