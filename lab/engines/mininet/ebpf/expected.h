// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Limits the window of a subflow to its expected rate, which the controller has set: the host's
// flow control of S-MPTCP (its Algorithm 5, as repaired), for laws that react to losses. Compiles
// for the kernel and for user space; part of a law if EXPECTED_BY_WINDOW is defined.
//
// Once per round trip, with window w, mean round-trip time rtt and its lowest sample base, w / rtt
// is compared with the expected rate et, and q = w (rtt - base) / rtt is the number of packets in
// queues:
// 1) If w / rtt > et, only a fifth of the law's growth counts. If in addition q has not become
//    smaller since the last round trip, w = 0.9 et base.
// 2) Otherwise the law's growth counts in full.
// For every acknowledgement:
// 3) Slow start ends at the slow-start threshold or when the rate reaches et.
// After a loss the law alone reduces the window.
#pragma once

#include "law.h"

#define FRAME_BITS (8 * 1514ull) // of a full Ethernet frame
#define MAX_EXPECTED_BPS (1ull << 37)
#define US_PER_S 1000000ull
#define SLOWED 5
#define QUEUE_BITS 16 // q is in 2^-16 packets
#define FEWEST_QUEUED (2u << QUEUE_BITS) // fewer packets are no queue
#define FEWEST_PACKETS 2 // in a window after a cut

struct expected_state {
	u32 divisor; // of the law's growth; 0: no round trip has ended
	u32 queue;   // q of the last round trip
};

// Returns -1, 0 or 1: whether window / rtt is below, at or above the expected rate.
static inline int compare_rate(u32 window, u32 rtt_us, u64 expected_bps)
{
	u64 sent = window * US_PER_S * FRAME_BITS, expected = expected_bps * rtt_us;
	return sent < expected ? -1 : sent > expected;
}

static inline void cut_to_expected(struct law_round *round, u64 expected_bps)
{
	u64 unit = 10 * US_PER_S * FRAME_BITS, packets = 9 * expected_bps * round->base_rtt_us;
	round->window = packets / unit;
	round->fraction = (packets % unit << 16) / unit << (PACKET_BITS - 16);
	if (round->window < FEWEST_PACKETS) {
		round->window = FEWEST_PACKETS;
		round->fraction = 0;
	}
	round->ssthresh = round->window;
}

static inline void limit_round(struct law_round *round, struct expected_state *state,
			       u64 expected_bps)
{
	u64 queued = (u64)round->window * (round->rtt_us - round->base_rtt_us);
	u32 queue = (queued << QUEUE_BITS) / round->rtt_us;
	int above = compare_rate(round->window, round->rtt_us, expected_bps) > 0;
	state->divisor = above ? SLOWED : 1; // 1, 2
	if (above && queue >= FEWEST_QUEUED && queue >= state->queue)
		cut_to_expected(round, expected_bps);
	state->queue = queue;
}

static inline u32 growth_divisor(const struct expected_state *state, u64 expected_bps)
{
	return expected_bps && state->divisor ? state->divisor : 1;
}
