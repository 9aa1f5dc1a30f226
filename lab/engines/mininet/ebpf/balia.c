// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// BALIA, balanced linked adaptation (Peng et al., 2016; draft-walid-mptcp-congestion-control-04):
//     alpha_r = max_p x_p / x_r,  x = w / rtt
//     per acknowledged packet   w_r += x_r / (rtt_r (sum_p x_p)^2) (1 + alpha_r)/2 (4 + alpha_r)/5
//     loss                      w_r -= w_r / 2 * min(alpha_r, 1.5)
// As in the multipath-tcp.org kernel, the decrease rounds alpha_r down to an integer: below 2 it
// halves the window. In the code, w is the window of path 0, `top` the largest scaled window (see
// law.h) and `sum` the sum of all scaled windows. The increase is then
// (w + top)/sum * (4w + top)/sum / (10 w). The first two factors are at most 5.
#include "coupled.h"

#define FACTOR_BITS 16

static inline u64 largest_scaled_window(const struct law_view *view)
{
	u64 found = 0;
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++)
		found = larger(found, scaled_window(&view->path[p], &view->path[0]));
	return found;
}

LAW s64 increase(const struct law_view *view)
{
	const struct law_path *own = &view->path[0];
	u64 window = (u64)own->window << SCALED_WINDOW_BITS, top = largest_scaled_window(view);
	u64 sum = sum_of_scaled_windows(view, own);
	u64 first = ((window + top) << FACTOR_BITS) / sum;
	u64 second = ((4 * window + top) << FACTOR_BITS) / sum;
	return (first * second << (PACKET_BITS - 2 * FACTOR_BITS)) / (10 * (u64)own->window);
}

LAW u32 after_loss(const struct law_view *view)
{
	u32 window = view->path[0].window, cut = window >> 1;
	if (largest_scaled_window(view) >= (u64)window << (SCALED_WINDOW_BITS + 1))
		cut = cut * 3 >> 1;
	return larger(window - cut, 1);
}

CONGESTION_CONTROL(bpf_balia);
