/* SPDX-License-Identifier: GPL-2.0-only */
// The clock of a WiFi cell, the value of the map `cells`. Compiles for the kernel and for user space.
#include <linux/types.h>

struct cell {
	struct bpf_spin_lock lock; // for all that the programs of this cell write
	__u32 pad;
	__u64 next_free_ns, uplink_free_ns; // when the air is free: of all, and of stations
	__u64 limit_ns;                     // longest wait; a packet that would wait longer is dropped
	__u64 downlink_airtime_ns;          // of the latest downlink packet
	__u64 busy_ns, drops, sent;         // counters: total airtime, dropped packets, sent packets
};

static __always_inline __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}
