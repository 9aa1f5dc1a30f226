// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Scalable TCP (Kelly, CCR 33(2), 2003): a hundredth of a packet for each acknowledged packet, an
// eighth less after a loss.
#define UNCOUPLED
#include "coupled.h"

LAW s64 increase(const struct law_view *view)
{
	return ONE_PACKET / 100;
}

LAW u32 after_loss(const struct law_view *view)
{
	u32 window = view->path[0].window;
	return larger(window - (window >> 3), 2);
}

CONGESTION_CONTROL(bpf_scalable);
