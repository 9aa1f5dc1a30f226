// BALIA, balanced linked adaptation (Peng et al., 2016; draft-walid-mptcp-congestion-control-04):
//     alpha_r = max_p x_p / x_r,  x = w / rtt
//     per acknowledged packet   w_r += x_r / (rtt_r (sum_p x_p)^2) (1 + alpha_r)/2 (4 + alpha_r)/5
//     loss                      w_r -= w_r / 2 * min(alpha_r, 1.5)
// As in the multipath-tcp.org kernel, the decrease takes alpha_r as an integer: below 2 it halves the window.
// With the fastest path's y the increase is (w + y)/sum * (4w + y)/sum / (10 w), whose factors stay below 5.
#include "coupled.h"

#define FACTOR_BITS 16

static inline u64 fastest(const struct law_view *view)
{
	u64 found = 0;
	for (u32 p = 0; p < MAX_PATHS && p < view->count; p++)
		found = larger(found, y(&view->path[p], &view->path[0]));
	return found;
}

LAW s64 increase(const struct law_view *view)
{
	const struct law_path *own = &view->path[0];
	u64 window = (u64)own->window << Y_BITS, top = fastest(view), sum = sum_of_y(view, own);
	u64 first = ((window + top) << FACTOR_BITS) / sum, second = ((4 * window + top) << FACTOR_BITS) / sum;
	return (first * second << (PACKET_BITS - 2 * FACTOR_BITS)) / (10 * (u64)own->window);
}

LAW u32 after_loss(const struct law_view *view)
{
	u32 window = view->path[0].window, cut = window >> 1;
	if (fastest(view) >= (u64)window << (Y_BITS + 1))
		cut = cut * 3 >> 1;
	return larger(window - cut, 1);
}

CONGESTION_CONTROL(bpf_balia);
