// SPDX-License-Identifier: GPL-2.0-only
//
// Registers a law as a congestion control of the kernel (struct_ops `tcp_congestion_ops`). A law's
// file includes this header, defines `increase` and `after_loss` (law.h) and ends with
// CONGESTION_CONTROL(bpf_NAME). Connections with a single path use Reno instead of the law, unless
// the law's file has `#define UNCOUPLED` before the include.
//
// 1) The paths of a view are read from the kernel's list of the subflows of the connection. So a
//    closed subflow disappears from the view immediately.
// 2) The view leaves out subflows that are closed, backup, stale or not yet measured, and subflows
//    under another congestion control.
// 3) For another subflow in recovery, the view has its slow-start threshold instead of its window.
// 4) Slow start is Reno's. A connection with a single path uses Reno for everything (see above):
//    plain TCP, a fallback to plain TCP, or the last open subflow.
// 5) A round trip ends when a packet is acknowledged that was sent after its beginning. Samples of
//    the round-trip time come from each acknowledgement, those of the paths' view from the kernel's
//    smoothed value.
#pragma once

#include "law.h"

#ifdef __bpf__
#include "socket.h"

#ifdef UNCOUPLED
#define RENO_ON_ONE_PATH 0
#else
#define RENO_ON_ONE_PATH 1
#endif

static __always_inline void fill_path(struct law_path *path, const struct tcp_sock *tp, u32 window)
{
	const struct law_state *state = (const void *)tp->inet_conn.icsk_ca_priv;
	path->window = larger(smaller(window, MAX_WINDOW), 1);
	path->rtt_us = larger(smaller(tp->srtt_us >> 3, MAX_RTT_US), 1);
#ifdef PER_ROUND
	path->bytes = state->memory[0];
#else
	u64 since = tp->bytes_acked - state->latest_loss;
	u64 between = state->latest_loss - state->previous_loss;
	path->bytes = smaller(larger(since, between), MAX_BYTES);
#endif
}

static __always_inline int is_backup(const struct mptcp_subflow_context *subflow)
{
	return BPF_CORE_READ_BITFIELD(subflow, backup) || BPF_CORE_READ_BITFIELD(subflow, request_bkup);
}

static __always_inline int can_send(const struct mptcp_subflow_context *subflow,
				    const struct tcp_sock *tp)
{
	u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	int open = state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
	int stale = BPF_CORE_READ_BITFIELD(subflow, stale);
	return open && tp->srtt_us && !is_backup(subflow) && !stale;
}

struct socket_view {
	u64 sk; // the socket's address
	struct law_view view;
};

// Fills the view of the socket `sk` and returns the number of paths in it. The kernel's verifier
// checks a function that is not inlined only once, independently of its callers. So it requires a
// test of each pointer argument, here and in the next two functions.
__noinline int read_view(struct socket_view *socket) // 1
{
	if (!socket)
		return 0;
	struct law_view *view = &socket->view;
	struct tcp_sock *tp = READ_ONLY(tcp_sock, socket->sk);
	struct inet_connection_sock *icsk = &tp->inet_conn;
	u32 count = 1;
	fill_path(&view->path[0], tp, tp->snd_cwnd);
	view->count = count;
	if (!tp->is_mptcp)
		return 1;
	struct mptcp_subflow_context *own = READ_ONLY(mptcp_subflow_context, icsk->icsk_ulp_data);
	if (is_backup(own))
		return 1;
	struct list_head *end = &READ_ONLY(mptcp_sock, own->conn)->conn_list, *node = end->next;
	for (u32 n = 0; n < MAX_PATHS && node && node != end; n++) {
		void *entry = (void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node);
		struct mptcp_subflow_context *subflow = READ_ONLY(mptcp_subflow_context, entry);
		struct tcp_sock *other = READ_ONLY(tcp_sock, subflow->tcp_sock);
		node = subflow->node.next;
		if (other == tp || other->inet_conn.icsk_ca_ops != icsk->icsk_ca_ops) // 2
			continue;
		if (!can_send(subflow, other))
			continue;
		if (count >= MAX_PATHS)
			break;
		u32 window = in_recovery(other) ? other->snd_ssthresh : other->snd_cwnd; // 3
		fill_path(&view->path[count], other, window);
		count++;
	}
	view->count = count;
	return count;
}

__noinline s64 increase_of(const struct law_view *view)
{
	return view ? increase(view) : 0;
}

__noinline u32 window_after_loss(const struct law_view *view)
{
	return view ? larger(after_loss(view), 1) : 1;
}

static __always_inline void grow(struct tcp_sock *tp, struct law_state *state,
				 struct socket_view *socket, u32 acked, u64 bps)
{
	u32 divisor = 1;
#ifdef EXPECTED_BY_WINDOW
	divisor = growth_divisor(&state->expected, bps);
	end_slow_start(tp, bps);
#endif
	if (tp->snd_cwnd < tp->snd_ssthresh) { // 4
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (read_view(socket) == 1 && RENO_ON_ONE_PATH) {
		tcp_cong_avoid_ai(tp, tp->snd_cwnd * divisor, acked);
		return;
	}
	s64 by = increase_of(&socket->view) * acked;
	change_window(tp, state, by > 0 ? by / divisor : by);
}

#ifdef PER_ROUND
__noinline int apply_law(const struct law_view *view, struct law_round *round)
{
	if (!view || !round)
		return 0;
	on_round(view, round);
	return 1;
}

static __always_inline void act_on_round(struct tcp_sock *tp, struct law_state *state,
					 struct socket_view *socket)
{
	struct law_round round = latest_round(tp, state);
	__builtin_memcpy(round.memory, state->memory, sizeof(round.memory));
	read_view(socket);
	apply_law(&socket->view, &round);
	__builtin_memcpy(state->memory, round.memory, sizeof(round.memory));
	apply_round(tp, state, &round);
}
#endif

#ifdef ROUNDS
SEC("struct_ops/pkts_acked")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	add_sample((void *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv, sample);
}
#define ROUND_CALLBACKS .pkts_acked = (void *)pkts_acked,
#else
#define ROUND_CALLBACKS
#endif

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_state *state = (void *)tp->inet_conn.icsk_ca_priv;
	struct socket_view socket = { .sk = (u64)sk };
	int used = window_is_used(tp);
	u64 bps = expected_bps(tp);
	if (used)
		grow(tp, state, &socket, acked, bps);
#ifdef ROUNDS
	if (!round_is_over(state, ack)) // 5
		return;
	if (used && round_counts(tp, state)) {
#ifdef PER_ROUND
		act_on_round(tp, state, &socket);
#else
		limit_window(tp, state, bps);
#endif
	}
	begin_round(tp, state);
#endif
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct socket_view socket = { .sk = (u64)sk };
#ifdef PER_ROUND
	struct law_state *state = (void *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv;
	__builtin_memset(state->memory, 0, sizeof(state->memory));
#endif
	if (read_view(&socket) == 1 && RENO_ON_ONE_PATH)
		return tcp_reno_ssthresh(sk);
	return window_after_loss(&socket.view);
}

// Records the value of bytes_acked at each loss. A timeout counts as part of the loss before it if
// no data was acknowledged in between.
SEC("struct_ops/set_state")
void BPF_PROG(set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_state *state = (void *)tp->inet_conn.icsk_ca_priv;
	int recorded = tp->bytes_acked == state->latest_loss;
	if (new_state < TCP_CA_CWR || tp->inet_conn.icsk_retransmits || recorded)
		return;
	state->previous_loss = state->latest_loss;
	state->latest_loss = tp->bytes_acked;
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

#define CONGESTION_CONTROL(its_name)              \
	SEC(".struct_ops")                        \
	struct tcp_congestion_ops its_name = {    \
		.cong_avoid = (void *)cong_avoid, \
		.ssthresh = (void *)ssthresh,     \
		.set_state = (void *)set_state,   \
		.undo_cwnd = (void *)undo_cwnd,   \
		ROUND_CALLBACKS                   \
		.flags = NON_RESTRICTED,          \
		.name = #its_name,                \
	}
#endif
