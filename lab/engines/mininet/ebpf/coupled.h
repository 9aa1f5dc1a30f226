// A coupled law as a congestion control of the kernel (struct_ops `tcp_congestion_ops`): everything but the law itself.
//
// 1) the paths of a view are read from the connection's own list of subflows, so a closed one is gone at once
// 2) closed, backup, stale and unmeasured subflows, and those under another law, are not in it
// 3) a subflow in recovery counts with its slow start threshold
// 4) slow start is Reno's, and so is everything where there is one path: plain TCP, a fallback, the last subflow
// 5) the window moves by whole packets; what is left over is kept
#pragma once

#include "law.h"

#ifdef __bpf__
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#define NON_RESTRICTED 1 // TCP_CONG_NON_RESTRICTED: every user and every namespace may choose it
#define READ_ONLY(type, pointer) ((struct type *)bpf_rdonly_cast((void *)(pointer), bpf_core_type_id_kernel(struct type)))

// In icsk_ca_priv of each socket, which the kernel clears when the law is chosen.
struct law_state {
	s64 fraction;      // of a packet, not yet in the window
	u64 latest_loss;   // bytes_acked then
	u64 previous_loss;
};

static __always_inline int in_recovery(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_Recovery;
}

static __always_inline void put(struct law_path *path, const struct tcp_sock *tp, u32 window)
{
	const struct law_state *state = (const void *)tp->inet_conn.icsk_ca_priv;
	u64 since = tp->bytes_acked - state->latest_loss, between = state->latest_loss - state->previous_loss;
	path->window = larger(smaller(window, MAX_WINDOW), 1);
	path->rtt_us = larger(smaller(tp->srtt_us >> 3, MAX_RTT_US), 1);
	path->bytes = smaller(larger(since, between), MAX_BYTES);
}

static __always_inline int is_backup(const struct mptcp_subflow_context *subflow)
{
	return BPF_CORE_READ_BITFIELD(subflow, backup) || BPF_CORE_READ_BITFIELD(subflow, request_bkup);
}

static __always_inline int can_send(const struct mptcp_subflow_context *subflow, const struct tcp_sock *tp)
{
	u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	int open = state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
	return open && tp->srtt_us && !is_backup(subflow) && !BPF_CORE_READ_BITFIELD(subflow, stale);
}

struct sight {
	u64 sk; // an address
	struct law_view view;
};

// Global functions: the verifier looks at them once, whatever was known to their callers. It wants the pointers tested.
__noinline int look(struct sight *sight) // 1
{
	if (!sight)
		return 0;
	struct law_view *view = &sight->view;
	struct tcp_sock *tp = READ_ONLY(tcp_sock, sight->sk);
	struct inet_connection_sock *icsk = &tp->inet_conn;
	put(&view->path[0], tp, tp->snd_cwnd);
	view->count = 1;
	if (!tp->is_mptcp)
		return 1;
	struct mptcp_subflow_context *own = READ_ONLY(mptcp_subflow_context, icsk->icsk_ulp_data);
	if (is_backup(own))
		return 1;
	struct list_head *end = &READ_ONLY(mptcp_sock, own->conn)->conn_list, *node = end->next;
	for (u32 n = 0; n < MAX_PATHS && node && node != end; n++) {
		struct mptcp_subflow_context *subflow =
			READ_ONLY(mptcp_subflow_context, (void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node));
		struct tcp_sock *other = READ_ONLY(tcp_sock, subflow->tcp_sock);
		node = subflow->node.next;
		if (other == tp || other->inet_conn.icsk_ca_ops != icsk->icsk_ca_ops || !can_send(subflow, other)) // 2
			continue;
		if (view->count >= MAX_PATHS)
			break;
		put(&view->path[view->count], other, in_recovery(other) ? other->snd_ssthresh : other->snd_cwnd); // 3
		view->count++;
	}
	return view->count;
}

__noinline s64 increase_of(const struct law_view *view)
{
	return view ? increase(view) : 0;
}

__noinline u32 window_after_loss(const struct law_view *view)
{
	return view ? after_loss(view) : 0;
}

static __always_inline void move_window(struct tcp_sock *tp, struct law_state *state, s64 change) // 5
{
	s64 left = state->fraction + change;
	if (left >= ONE_PACKET) {
		u32 window = tp->snd_cwnd + (left >> PACKET_BITS);
		tp->snd_cwnd = smaller(window, tp->snd_cwnd_clamp);
		left &= ONE_PACKET - 1;
	} else if (left <= -ONE_PACKET) {
		u32 down = -left >> PACKET_BITS;
		u32 window = tp->snd_cwnd > down ? tp->snd_cwnd - down : 1;
		tp->snd_cwnd = window;
		tp->snd_ssthresh = smaller(tp->snd_ssthresh, window); // or slow start would begin again
		left = -(-left & (ONE_PACKET - 1));
	}
	state->fraction = left;
}

static __always_inline int window_is_used(const struct tcp_sock *tp)
{
	int slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || (slow_start && tp->snd_cwnd < 2 * tp->max_packets_out);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct sight sight = { .sk = (u64)sk };
	if (!window_is_used(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) { // 4
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (look(&sight) == 1)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	else
		move_window(tp, (void *)tp->inet_conn.icsk_ca_priv, increase_of(&sight.view) * acked);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct sight sight = { .sk = (u64)sk };
	return look(&sight) == 1 ? tcp_reno_ssthresh(sk) : window_after_loss(&sight.view);
}

// Remembers where losses were; a timeout that follows a loss belongs to it.
SEC("struct_ops/set_state")
void BPF_PROG(set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_state *state = (void *)tp->inet_conn.icsk_ca_priv;
	if (new_state < TCP_CA_CWR || tp->inet_conn.icsk_retransmits || tp->bytes_acked == state->latest_loss)
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
		.flags = NON_RESTRICTED,          \
		.name = #its_name,                \
	}
#endif
