// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Reno (RFC 5681), for subflows whose windows are limited to expected rates (expected.h); without
// expected rates the kernel's own Reno is used:
//     per acknowledged packet   w += 1 / w
//     loss                      w = w / 2
#define UNCOUPLED
#include "coupled.h"

LAW s64 increase(const struct law_view *view)
{
	return ONE_PACKET / view->path[0].window;
}

LAW u32 after_loss(const struct law_view *view)
{
	return half(view->path[0].window);
}

CONGESTION_CONTROL(bpf_reno);
