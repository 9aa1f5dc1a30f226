// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The input of a congestion control law, which is a view of all paths of the connection, and the
// fixed-point arithmetic that the laws share. Compiles for the kernel and for user space.
//
// A path is a subflow that can send and whose round-trip time has been measured. Path 0 of a view
// is the path on which the acknowledgement arrived or the loss occurred. A law consists of two
// functions of a view:
//     increase    the change of the window of path 0 per acknowledged packet, in 2^-40 packets
//     after_loss  the window of path 0 after a loss, in packets
// A law with `#define PER_ROUND` before the include has a third function:
//     on_round    changes the window of path 0 at the end of a round trip in which the whole window
//                 was used and nothing was lost
//
// The formula of every coupled law contains the rates x = w / rtt of all paths. To avoid fractions,
// the code multiplies all rates by the round-trip time of one path, the parameter `here`:
// scaled_window(path, here) is the window that would give the rate of `path` at the round-trip time
// of `here`, in 2^-14 packets. So scaled_window(here, here) is exactly the window of `here`.
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
#define MAX_WINDOW ((1u << 18) - 1) // packets; larger windows are cut to this: no overflow
#define MAX_RTT_US ((1u << 22) - 1)
#define MAX_BYTES 0xffffffffu
#define MAX_SCALED_WINDOW (1ull << 46)
#define PACKET_BITS 40
#define ONE_PACKET (1ll << PACKET_BITS)
#define SCALED_WINDOW_BITS 14
#define SHARE_BITS 30

struct law_path {
	u32 window; // packets, at least 1
	u32 rtt_us; // smoothed round-trip time, at least 1
	u64 bytes;  // acknowledged between the last two losses or since the last loss, the larger
	            // number; in a law with PER_ROUND: memory[0] of this path (see below)
};

struct law_view {
	u32 count;
	struct law_path path[MAX_PATHS];
};

LAW s64 increase(const struct law_view *view);
LAW u32 after_loss(const struct law_view *view);

#define MEMORY 3

// A round trip of path 0 that has ended. Windows are in packets.
struct law_round {
	u32 rtt_us;         // mean of the samples of the round-trip time in this round trip
	u32 base_rtt_us;    // lowest sample so far
	u32 samples;        // number of samples in this round trip
	u32 window;         // the law may change this and the following fields
	u32 ssthresh;       // slow-start threshold
	s64 fraction;       // of a packet, not yet added to the window, in 2^-40 packets
	u64 memory[MEMORY]; // of the law, for this path; 0 at first and after each loss
};

#ifdef PER_ROUND
LAW void on_round(const struct law_view *view, struct law_round *round);
#endif

static inline u64 smaller(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

static inline u64 scaled_window(const struct law_path *path, const struct law_path *here)
{
	u64 window = (u64)path->window << SCALED_WINDOW_BITS;
	return smaller(window * here->rtt_us / path->rtt_us, MAX_SCALED_WINDOW);
}

static inline u64 sum_of_scaled_windows(const struct law_view *view, const struct law_path *here)
{
	u64 sum = 0;
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++)
		sum += scaled_window(&view->path[p], here);
	return sum;
}

// (w / rtt^2) / (sum of w / rtt)^2 = w / (sum of scaled windows)^2, with w and rtt of `here`;
// in 2^-40 packets.
static inline u64 linked_increase(const struct law_view *view, const struct law_path *here)
{
	u64 sum = sum_of_scaled_windows(view, here);
	u64 share = ((u64)here->window << (SCALED_WINDOW_BITS + SHARE_BITS)) / sum;
	return (share << (PACKET_BITS + SCALED_WINDOW_BITS - SHARE_BITS)) / sum;
}

// The window after a loss in RFC 5681: half, but at least 2 packets; rounded as in the kernel.
static inline u32 half(u32 window)
{
	return larger(window >> 1, 2);
}
