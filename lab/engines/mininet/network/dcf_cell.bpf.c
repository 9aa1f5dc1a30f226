// SPDX-License-Identifier: GPL-2.0-only
//
// A WiFi cell with `air: dcf`. The programs and maps have the names of those in wifi_cell.bpf.c,
// and are attached in the same way; dcf_air.h says when packets leave.
//
// Each contender has a queue of its own that holds a number of packets. The map `queues` has the
// departures of the latest ones: a packet is dropped if the one that is so many places before it
// has not left. Large queues have one entry for several packets.
#include "cell_packet.h"
#include "dcf_air.h"

char _license[] SEC("license") = "GPL";

#define QUEUE_ENTRIES 1024

struct station {
	struct way down, up;
	__u64 busy_until_ns, first_ns; // as in wifi_cell.bpf.c
	__u32 ap, own;                 // the numbers of its access point and of itself as contenders
};

struct queue {
	__u64 packets;
	__u64 departures_ns[QUEUE_ENTRIES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct channel);
} channels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_CONTENDERS);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); // the station's IPv4 address
	__type(value, struct station);
} stations SEC(".maps");

static __always_inline int is_full(const struct channel *channel, const struct queue *queue,
				   __u64 now_ns)
{
	__u64 oldest = queue->packets / channel->group - channel->groups;
	return queue->packets >= channel->group * channel->groups &&
	       queue->departures_ns[oldest % QUEUE_ENTRIES] > now_ns;
}

static __always_inline void put(const struct channel *channel, struct queue *queue,
				__u64 departure_ns)
{
	queue->departures_ns[queue->packets / channel->group % QUEUE_ENTRIES] = departure_ns;
	queue->packets++;
}

static __always_inline int on_packet(struct __sk_buff *skb, int is_up)
{
	__u32 zero = 0;
	struct cell *cell = bpf_map_lookup_elem(&cells, &zero);
	struct channel *channel = bpf_map_lookup_elem(&channels, &zero);
	int offset = is_up ? SOURCE_OFFSET : DESTINATION_OFFSET;
	struct station *station = found_by_address(skb, offset, &stations);
	if (!cell || !channel || !station)
		return TC_ACT_UNSPEC;
	struct way *way = is_up ? &station->up : &station->down;
	__u32 number = is_up ? station->own : station->ap;
	struct queue *queue = bpf_map_lookup_elem(&queues, &number);
	if (!queue)
		return TC_ACT_UNSPEC;
	__u64 length = skb->len, now_ns = bpf_ktime_get_ns(), departure_ns = 0, abandoned_ppm = 0;
	bpf_spin_lock(&cell->lock);
	if (is_full(channel, queue, now_ns)) {
		cell->drops++;
	} else {
		departure_ns = departure_of(cell, channel, way, number, is_up, length, now_ns);
		abandoned_ppm = means_now(channel)->abandoned_ppm;
		put(channel, queue, departure_ns);
	}
	bpf_spin_unlock(&cell->lock);
	if (!departure_ns || bpf_get_prandom_u32() % MILLION < abandoned_ppm ||
	    bpf_get_prandom_u32() % MILLION < channel->loss_ppm)
		return TC_ACT_SHOT;
	if (is_up)
		station->busy_until_ns = departure_ns;
	if (!station->first_ns)
		station->first_ns = departure_ns;
	return leave_at(skb, departure_ns);
}

SEC("tc")
int downlink(struct __sk_buff *skb)
{
	return on_packet(skb, 0);
}

SEC("tc")
int uplink(struct __sk_buff *skb)
{
	return on_packet(skb, 1);
}
