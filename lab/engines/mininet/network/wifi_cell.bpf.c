// SPDX-License-Identifier: GPL-2.0-only
//
// A WiFi cell. Its virtual clock says until when the radio channel is busy; every packet on the
// channel advances the clock by its airtime.
//
// Downlink: the access point has a finite first-in first-out queue.
//     start = max(now, next_free); drop if start - now exceeds the limit, which is the buffer
//     next_free = start + airtime
// Uplink: the stations alternate with the access point while both have packets.
//     start = max(now, uplink_free)
//     uplink_free = start + airtime + (downlink has a backlog ? airtime of its latest packet : 0)
//     next_free = max(now, next_free) + airtime
// Both directions share the airtime (half duplex). An uplink packet, such as an acknowledgement,
// does not wait for the downlink queue. The departure time of a packet is start + airtime; the fq
// qdisc sends the packet then.
// Airtime = (airtime per frame + bytes x airtime per byte of the station) x mean number of
// transmissions. Collisions decide this number, and the fraction of packets that are dropped because
// every attempt collided; the AP agent computes both from the number of contenders.
// A packet whose station is not in this cell passes unchanged: a program of every cell to which a
// station may move is attached to the station's radio, and only the one of its present cell acts.
#include "cell_packet.h"

char _license[] SEC("license") = "GPL";

struct collisions {
	__u32 transmissions_ppm; // mean number of transmissions of a frame, in millionths
	__u32 loss_ppm;          // fraction of frames that are lost, in millionths
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct collisions);
} air SEC(".maps");

struct airtime {
	__u64 ps_per_byte, frame_ns; // picoseconds per byte, nanoseconds per frame
};

struct station {
	struct airtime down, up;     // of packets to the station, and from it
	__u64 busy_until_ns;         // end of the station's latest uplink packet
	__u64 first_ns;              // end of the first packet since the station came; 0 before it
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); // the station's IPv4 address
	__type(value, struct station);
} stations SEC(".maps");

static __always_inline __u64 airtime_ns(struct __sk_buff *skb, struct airtime *airtime,
					struct collisions *collisions)
{
	__u64 once_ns = airtime->frame_ns + (__u64)skb->len * airtime->ps_per_byte / 1000;
	return once_ns * collisions->transmissions_ppm / MILLION;
}

static __always_inline int is_lost(struct collisions *collisions)
{
	return collisions->loss_ppm && bpf_get_prandom_u32() % MILLION < collisions->loss_ppm;
}

// A packet of a station of this cell.
struct packet {
	struct cell *cell;
	struct station *station;
	__u64 now_ns, airtime_ns;
};

// Fill in `packet`; its station has the address at `offset`. Return TC_ACT_OK, or what to do with
// a packet that belongs to no station of this cell or is lost.
static __always_inline int packet_of(struct __sk_buff *skb, int offset, struct packet *packet)
{
	__u32 zero = 0;
	struct collisions *collisions = bpf_map_lookup_elem(&air, &zero);
	packet->cell = bpf_map_lookup_elem(&cells, &zero);
	packet->station = found_by_address(skb, offset, &stations);
	if (!packet->cell || !collisions || !packet->station)
		return TC_ACT_UNSPEC;
	if (is_lost(collisions))
		return TC_ACT_SHOT;
	struct station *station = packet->station;
	struct airtime *airtime = offset == SOURCE_OFFSET ? &station->up : &station->down;
	packet->airtime_ns = airtime_ns(skb, airtime, collisions);
	packet->now_ns = bpf_ktime_get_ns();
	return TC_ACT_OK;
}

// Count a drop if a packet that waits for `wait_ns` does not fit into the cell's buffer.
static __always_inline int is_dropped(struct cell *cell, __u64 wait_ns)
{
	if (wait_ns <= cell->limit_ns)
		return 0;
	cell->drops++;
	return 1;
}

static __always_inline void count_sent(struct cell *cell, __u64 airtime)
{
	cell->busy_ns += airtime;
	cell->sent++;
}

static __always_inline int send_at(struct __sk_buff *skb, struct station *station,
				   __u64 departure_ns)
{
	if (!station->first_ns)
		station->first_ns = departure_ns;
	return leave_at(skb, departure_ns);
}

SEC("tc")
int downlink(struct __sk_buff *skb)
{
	struct packet packet;
	int action = packet_of(skb, DESTINATION_OFFSET, &packet);
	if (action != TC_ACT_OK)
		return action;
	struct cell *cell = packet.cell;
	bpf_spin_lock(&cell->lock);
	__u64 start = later(packet.now_ns, cell->next_free_ns);
	if (is_dropped(cell, start - packet.now_ns)) {
		bpf_spin_unlock(&cell->lock);
		return TC_ACT_SHOT;
	}
	cell->next_free_ns = start + packet.airtime_ns;
	cell->downlink_airtime_ns = packet.airtime_ns;
	count_sent(cell, packet.airtime_ns);
	bpf_spin_unlock(&cell->lock);
	return send_at(skb, packet.station, start + packet.airtime_ns);
}

SEC("tc")
int uplink(struct __sk_buff *skb)
{
	struct packet packet;
	int action = packet_of(skb, SOURCE_OFFSET, &packet);
	if (action != TC_ACT_OK)
		return action;
	struct cell *cell = packet.cell;
	__u64 now = packet.now_ns, airtime = packet.airtime_ns;
	bpf_spin_lock(&cell->lock);
	__u64 start = later(now, cell->uplink_free_ns);
	if (is_dropped(cell, start - now)) {
		bpf_spin_unlock(&cell->lock);
		return TC_ACT_SHOT;
	}
	__u64 alternate = cell->next_free_ns > now ? cell->downlink_airtime_ns : 0;
	cell->uplink_free_ns = start + airtime + alternate;
	cell->next_free_ns = later(now, cell->next_free_ns) + airtime;
	count_sent(cell, airtime);
	bpf_spin_unlock(&cell->lock);
	packet.station->busy_until_ns = start + airtime;
	return send_at(skb, packet.station, start + airtime);
}
