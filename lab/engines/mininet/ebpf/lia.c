// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// LIA, linked increases (RFC 6356):
//     per acknowledged packet   w_r += min(max_p (w_p / rtt_p^2) / (sum_p w_p / rtt_p)^2, 1 / w_r)
//     loss                      w_r = w_r / 2
// RFC 6356 writes the first term as alpha / (sum of all w).
#include "coupled.h"

LAW s64 increase(const struct law_view *view)
{
	struct law_path best = view->path[0]; // the path with the largest w / rtt^2
	for (u32 p = 1; p < MAX_PATHS && p < view->count; p++) {
		const struct law_path *path = &view->path[p];
		u64 its_share = (u64)path->window * best.rtt_us * best.rtt_us;
		if (its_share > (u64)best.window * path->rtt_us * path->rtt_us)
			best = *path;
	}
	return smaller(linked_increase(view, &best), ONE_PACKET / view->path[0].window);
}

LAW u32 after_loss(const struct law_view *view)
{
	return half(view->path[0].window);
}

CONGESTION_CONTROL(bpf_lia);
