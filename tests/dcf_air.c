// SPDX-License-Identifier: GPL-2.0-only
// A WiFi cell with `air: dcf` for user space, see engines/mininet/test_dcf_air.py.
#include <linux/types.h>
#undef __always_inline
#define __always_inline inline
struct bpf_spin_lock { __u32 value; };
#include "cell.h"
#include "dcf_air.h"

__u64 depart(struct cell *cell, struct channel *channel, struct way *way, __u32 number, int is_up,
	     __u64 length, __u64 now_ns)
{
	return departure_of(cell, channel, way, number, is_up, length, now_ns);
}

__u64 sizes(int number)
{
	return (__u64[]){sizeof(struct cell), sizeof(struct channel), sizeof(struct way)}[number];
}
