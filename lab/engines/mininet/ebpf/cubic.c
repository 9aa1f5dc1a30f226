// SPDX-License-Identifier: GPL-2.0-only
//
// Cubic (RFC 9438) for subflows whose windows are limited to expected rates (expected.h): the
// kernel's own Cubic, with the limit around it. Only compiled with EXPECTED_BY_WINDOW; it is no law
// in the sense of law.h, because the kernel's functions change the window themselves.
#ifdef __bpf__
#define KERNEL_LAW
#include "socket.h"

extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	cubictcp_init(sk);
}

// Lets Cubic change the window. Outside of slow start, growth counts as far as the expected rate
// allows.
static __always_inline void grow(struct sock *sk, struct law_state *state, u32 ack, u32 acked,
				 u64 bps)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	end_slow_start(tp, bps);
	u32 before = tp->snd_cwnd, slow_start = before < tp->snd_ssthresh;
	cubictcp_cong_avoid(sk, ack, acked);
	u32 after = tp->snd_cwnd, divisor = growth_divisor(&state->expected, bps);
	if (slow_start || divisor == 1 || after <= before)
		return;
	tp->snd_cwnd = before;
	change_window(tp, state, (s64)smaller(after - before, MAX_WINDOW) * ONE_PACKET / divisor);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct law_state *state = (void *)tp->inet_conn.icsk_ca_priv;
	int used = window_is_used(tp);
	u64 bps = expected_bps(tp);
	if (used)
		grow(sk, state, ack, acked, bps);
	if (!round_is_over(state, ack))
		return;
	if (used && round_counts(tp, state))
		limit_window(tp, state, bps);
	begin_round(tp, state);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops/set_state")
void BPF_PROG(set_state, struct sock *sk, __u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
	add_sample((void *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv, sample);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_cubic = {
	.init = (void *)init,
	.cong_avoid = (void *)cong_avoid,
	.ssthresh = (void *)ssthresh,
	.set_state = (void *)set_state,
	.cwnd_event = (void *)cwnd_event,
	.pkts_acked = (void *)pkts_acked,
	.undo_cwnd = (void *)undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "bpf_cubic",
};
#endif
