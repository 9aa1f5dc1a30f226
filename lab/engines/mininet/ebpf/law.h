// What a coupled law sees, and the fixed-point arithmetic the laws share. Compiles for the kernel and for user space.
//
// A path is a subflow that can send and whose round trip is known. In a view, path 0 is the one this acknowledgement or
// loss is on. A law is two functions of a view:
//     increase    by how much an acknowledged packet changes the window of path 0, in 2^-40 packets
//     after_loss  the window of path 0 after a loss, in packets
// Every law has the term x = w / rtt of all paths. Here it is always taken times the round trip of one path, `y`: the
// window that another path's rate would need on this one, in 2^-14 packets. So a path's own y is its window, exactly.
#pragma once

#ifdef __bpf__
#include "vmlinux.h"
#define LAW static inline
#else
#include <stdint.h>
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#define LAW
#define CONGESTION_CONTROL(name)
#endif

#define MAX_PATHS 16
#define MAX_WINDOW ((1u << 18) - 1) // packets; greater ones count as this, so that nothing overflows
#define MAX_RTT_US ((1u << 22) - 1)
#define MAX_BYTES 0xffffffffu
#define MAX_Y (1ull << 46)
#define PACKET_BITS 40
#define ONE_PACKET (1ll << PACKET_BITS)
#define Y_BITS 14
#define SHARE_BITS 30

struct law_path {
	u32 window; // packets, at least 1
	u32 rtt_us; // smoothed, at least 1
	u64 bytes;  // acknowledged between the last two losses or since the last one, whichever is more
};

struct law_view {
	u32 count;
	struct law_path path[MAX_PATHS];
};

LAW s64 increase(const struct law_view *view);
LAW u32 after_loss(const struct law_view *view);

static inline u64 smaller(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

// Of `other`, at the round trip of `here`.
static inline u64 y(const struct law_path *other, const struct law_path *here)
{
	return smaller(((u64)other->window << Y_BITS) * here->rtt_us / other->rtt_us, MAX_Y);
}

static inline u64 sum_of_y(const struct law_view *view, const struct law_path *here)
{
	u64 sum = 0;
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++)
		sum += y(&view->path[p], here);
	return sum;
}

// (w / rtt^2) / (sum of w / rtt)^2 = w / (sum of y)^2, with w and rtt those of `here`; in 2^-40 packets.
static inline u64 linked_increase(const struct law_view *view, const struct law_path *here)
{
	u64 sum = sum_of_y(view, here);
	u64 share = ((u64)here->window << (Y_BITS + SHARE_BITS)) / sum;
	return (share << (PACKET_BITS + Y_BITS - SHARE_BITS)) / sum;
}

// RFC 5681; the kernel rounds so.
static inline u32 half(u32 window)
{
	return larger(window >> 1, 2);
}
