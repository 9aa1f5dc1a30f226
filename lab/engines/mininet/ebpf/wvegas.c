// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// wVegas, weighted Vegas (Cao et al., ICNP 2012; multipath-tcp.org kernel 0.9x). The subflows of a
// connection keep ten packets in queues together; each has a share of them. Once per round trip the
// window w is divided into two parts: `diff` packets are in queues, `target` packets on the wire.
// 1) Slow start ends when more than GAMMA packets are in queues.
// 2) alpha is the number of packets that a subflow may keep in queues: its share of TOTAL_ALPHA by
//    rate, at least 2. It is computed anew when `diff` has reached it. The rates of the other
//    subflows are those that they have recorded.
// 3) w changes by one packet, so that `diff` approaches alpha.
// 4) If the queueing delay is at least twice the lowest queueing delay so far, w becomes half of
//    `target`, so that the queue drains, and the search for the lowest delay begins anew. A delay
//    of less than a hundredth of the base round-trip time is no queue.
// 5) ssthresh becomes at least three quarters of w (tcp_current_ssthresh), so that slow start refills
//    most of the window after a drain.
// With fewer than 3 samples of the round-trip time, w grows as in Reno. A loss halves w as in Reno.
#define UNCOUPLED
#define PER_ROUND
#include "coupled.h"

#define TOTAL_ALPHA 10
#define MIN_ALPHA 2
#define GAMMA 1
#define MIN_WINDOW 2
#define MIN_SAMPLES 3
#define NOISE 100
#define RATE_BITS 20 // a rate is in 2^-20 packets per second

#define RATE(round) ((round)->memory[0]) // other subflows read it as `bytes` of the path
#define ALPHA(round) ((round)->memory[1])
#define MIN_QUEUE_US(round) ((round)->memory[2]) // 0: none yet

static inline u64 share_of_alpha(const struct law_view *view, u64 own_rate)
{
	u64 sum = own_rate;
	for (u32 p = 1; p < MAX_PATHS && p < view->count; p++)
		sum += view->path[p].bytes;
	return TOTAL_ALPHA * own_rate / sum;
}

static inline void leave_slow_start(struct law_round *round)
{
	round->ssthresh = smaller(round->ssthresh, larger(round->window - 1, 1));
}

static inline void step(const struct law_view *view, struct law_round *round, u32 diff)
{
	if (diff >= larger(ALPHA(round), MIN_ALPHA)) { // 2
		RATE(round) = ((u64)round->window * 1000000 << RATE_BITS) / round->rtt_us;
		ALPHA(round) = share_of_alpha(view, RATE(round));
	}
	u32 alpha = larger(ALPHA(round), MIN_ALPHA);
	if (diff > alpha) { // 3
		round->window--;
		leave_slow_start(round);
	} else if (diff < alpha) {
		round->window++;
	}
}

static inline void drain(struct law_round *round, u32 queue_us)
{
	if (MIN_QUEUE_US(round) == 0 || MIN_QUEUE_US(round) > queue_us)
		MIN_QUEUE_US(round) = queue_us;
	if (queue_us < 2 * MIN_QUEUE_US(round) || (u64)queue_us * NOISE <= round->base_rtt_us)
		return;
	round->window = (u64)round->window * round->base_rtt_us / (2 * round->rtt_us); // 4
	MIN_QUEUE_US(round) = 0;
}

LAW void on_round(const struct law_view *view, struct law_round *round)
{
	if (round->samples < MIN_SAMPLES) {
		round->fraction += ONE_PACKET / round->window;
		return;
	}
	round->fraction = 0;
	u32 queue_us = round->rtt_us - round->base_rtt_us;
	u32 diff = (u64)round->window * queue_us / round->rtt_us;
	u32 target = (u64)round->window * round->base_rtt_us / round->rtt_us;
	if (round->window >= round->ssthresh) {
		step(view, round, diff);
		drain(round, queue_us);
	} else if (diff > GAMMA) { // 1
		round->window = smaller(round->window, target + 1);
		leave_slow_start(round);
	}
	round->window = larger(round->window, MIN_WINDOW);
	round->ssthresh = larger(round->ssthresh, round->window / 2 + round->window / 4); // 5
}

LAW s64 increase(const struct law_view *view)
{
	return 0; // the window changes once per round trip
}

LAW u32 after_loss(const struct law_view *view)
{
	return half(view->path[0].window);
}

CONGESTION_CONTROL(bpf_wvegas);
