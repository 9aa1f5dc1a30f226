// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// OLIA, opportunistic linked increases (Khalili et al., CoNEXT 2012;
// draft-khalili-mptcp-congestion-control-05):
//     per acknowledged packet   w_r += (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r
//     loss                      w_r = w_r / 2
// M: the paths with the largest window. B: the paths with the largest l / rtt^2, where l is the
// number of bytes between losses (the measure of the paper and of the multipath-tcp.org kernel; the
// draft has l^2 / rtt). C = B without M. n: the number of paths.
//     alpha_r = 1 / (n |C|) for r in C;  -1 / (n |M|) for r in M, if C is not empty;  0 otherwise
#include "coupled.h"

// Returns whether l_a / rtt_a^2 < l_b / rtt_b^2. The products have 76 bits, so the last factor is
// multiplied in two halves.
static inline int worse(const struct law_path *a, const struct law_path *b)
{
	u64 left = a->bytes * b->rtt_us, right = b->bytes * a->rtt_us;
	u64 left_low = (left & 0xffffffff) * b->rtt_us, right_low = (right & 0xffffffff) * a->rtt_us;
	u64 left_high = (left >> 32) * b->rtt_us + (left_low >> 32);
	u64 right_high = (right >> 32) * a->rtt_us + (right_low >> 32);
	return left_high != right_high ? left_high < right_high : (u32)left_low < (u32)right_low;
}

LAW s64 increase(const struct law_view *view)
{
	const struct law_path *own = &view->path[0];
	struct law_path best = *own;
	u32 largest_window = 0, in_m = 0, in_c = 0;
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++) {
		largest_window = larger(largest_window, view->path[p].window);
		if (worse(&best, &view->path[p]))
			best = view->path[p];
	}
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++) {
		if (view->path[p].window == largest_window)
			in_m++;
		else if (!worse(&view->path[p], &best))
			in_c++;
	}
	s64 linked = linked_increase(view, own);
	if (in_c == 0)
		return linked;
	if (own->window == largest_window)
		return linked - (s64)(ONE_PACKET / ((u64)view->count * in_m * own->window));
	if (!worse(own, &best))
		return linked + (s64)(ONE_PACKET / ((u64)view->count * in_c * own->window));
	return linked;
}

LAW u32 after_loss(const struct law_view *view)
{
	return half(view->path[0].window);
}

CONGESTION_CONTROL(bpf_olia);
