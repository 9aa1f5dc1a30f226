// SPDX-License-Identifier: GPL-2.0-only
//
// The state of a law in a socket, the round trips of the socket, and its expected rate.
//
// 1) The window changes by whole packets; a remaining fraction is added to the next change.
// 2) A round trip ends when a packet is acknowledged that was sent after its beginning. It counts
//    if nothing was lost. Its samples of the round-trip time come from each acknowledgement.
#pragma once

#include "law.h"
#ifdef EXPECTED_BY_WINDOW
#include "expected.h"
#endif
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#define NON_RESTRICTED 1 // TCP_CONG_NON_RESTRICTED: every user and every namespace may choose it
#define TYPE_ID(type) bpf_core_type_id_kernel(struct type)
#define READ_ONLY(type, pointer) \
	((struct type *)bpf_rdonly_cast((void *)(pointer), TYPE_ID(type)))

#if defined(PER_ROUND) || defined(EXPECTED_BY_WINDOW)
#define ROUNDS
#endif

// Stored in icsk_ca_priv of each socket. The kernel clears it when the congestion control is set.
struct law_state {
#ifdef KERNEL_LAW
	u64 of_kernel[8]; // the state of the kernel's own congestion control
#else
	u64 latest_loss;   // value of bytes_acked at the latest loss
	u64 previous_loss;
#endif
	s64 fraction;      // of a packet, not yet added to the window
#ifdef ROUNDS
	u64 rtt_sum_us;       // of the samples of this round trip
	u32 samples;          // number of samples in this round trip
	u32 base_rtt_us;      // lowest sample so far; 0: none yet
	u32 round_end;        // sequence number; 0: no round trip has begun
#endif
#ifdef PER_ROUND
	u64 memory[MEMORY];   // see law_round
#endif
#ifdef EXPECTED_BY_WINDOW
	struct expected_state expected;
#endif
};

#ifdef EXPECTED_BY_WINDOW
struct flow {
	__be32 source, destination;
	__be16 source_port, destination_port;
};

// All laws share this map; the host agent writes it.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow); // the sender's address is the source
	__type(value, u64);       // expected rate of the subflow's Ethernet frames in bit/s
} expected_rates SEC(".maps");

// Returns the expected rate of a subflow in bit/s; 0 if it has none.
static __always_inline u64 expected_bps(const struct tcp_sock *tp)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	struct flow flow = {
		.source = common->skc_rcv_saddr,
		.destination = common->skc_daddr,
		.source_port = bpf_htons(common->skc_num),
		.destination_port = common->skc_dport,
	};
	u64 *found = bpf_map_lookup_elem(&expected_rates, &flow);
	return found ? smaller(*found, MAX_EXPECTED_BPS) : 0;
}

static __always_inline void end_slow_start(struct tcp_sock *tp, u64 bps)
{
	u32 rtt_us = smaller(tp->srtt_us >> 3, MAX_RTT_US);
	if (bps && compare_rate(smaller(tp->snd_cwnd, MAX_WINDOW), rtt_us, bps) >= 0)
		tp->snd_ssthresh = smaller(tp->snd_ssthresh, tp->snd_cwnd);
}
#else
static __always_inline u64 expected_bps(const struct tcp_sock *tp)
{
	return 0;
}
#endif

static __always_inline int in_recovery(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_Recovery;
}

static __always_inline void change_window(struct tcp_sock *tp, struct law_state *state, s64 by) // 1
{
	s64 left = state->fraction + by;
	if (left >= ONE_PACKET) {
		u32 window = tp->snd_cwnd + (left >> PACKET_BITS);
		tp->snd_cwnd = smaller(window, tp->snd_cwnd_clamp);
		left &= ONE_PACKET - 1;
	} else if (left <= -ONE_PACKET) {
		u32 down = -left >> PACKET_BITS;
		u32 window = tp->snd_cwnd > down ? tp->snd_cwnd - down : 1;
		tp->snd_cwnd = window;
		tp->snd_ssthresh = smaller(tp->snd_ssthresh, window); // or slow start would restart
		left = -(-left & (ONE_PACKET - 1));
	}
	state->fraction = left;
}

static __always_inline int window_is_used(const struct tcp_sock *tp)
{
	int slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
	       (slow_start && tp->snd_cwnd < 2 * tp->max_packets_out);
}

#ifdef ROUNDS
static __always_inline void add_sample(struct law_state *state, const struct ack_sample *sample)
{
	if (sample->rtt_us <= 0) // not measured
		return;
	u32 rtt_us = smaller(sample->rtt_us, MAX_RTT_US);
	state->rtt_sum_us += rtt_us;
	state->samples++;
	if (!state->base_rtt_us || rtt_us < state->base_rtt_us)
		state->base_rtt_us = rtt_us;
}

static __always_inline int round_is_over(const struct law_state *state, u32 acknowledged) // 2
{
	return !state->round_end || (s32)(acknowledged - state->round_end) > 0;
}

static __always_inline int round_counts(struct tcp_sock *tp, const struct law_state *state)
{
	int lossless = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) < TCP_CA_CWR;
	return lossless && state->samples && state->round_end;
}

static __always_inline void begin_round(struct tcp_sock *tp, struct law_state *state)
{
	state->round_end = tp->snd_nxt;
	state->rtt_sum_us = state->samples = 0;
}

// Returns the round trip that has ended; its memory is empty.
static __always_inline struct law_round latest_round(struct tcp_sock *tp, struct law_state *state)
{
	struct law_round round = {
		.rtt_us = larger(state->rtt_sum_us / state->samples, 1),
		.base_rtt_us = larger(state->base_rtt_us, 1),
		.samples = state->samples,
		.window = larger(smaller(tp->snd_cwnd, MAX_WINDOW), 1),
		.ssthresh = tp->snd_ssthresh,
		.fraction = state->fraction,
	};
	return round;
}

static __always_inline void apply_round(struct tcp_sock *tp, struct law_state *state,
					const struct law_round *round)
{
	tp->snd_cwnd = larger(smaller(round->window, tp->snd_cwnd_clamp), 1);
	tp->snd_ssthresh = round->ssthresh;
	state->fraction = 0;
	change_window(tp, state, round->fraction);
}
#endif

#ifdef EXPECTED_BY_WINDOW
static __always_inline void limit_window(struct tcp_sock *tp, struct law_state *state, u64 bps)
{
	struct law_round round = latest_round(tp, state);
	if (!bps)
		return;
	limit_round(&round, &state->expected, bps);
	apply_round(tp, state, &round);
}
#endif
