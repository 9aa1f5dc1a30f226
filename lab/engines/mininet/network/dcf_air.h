/* SPDX-License-Identifier: GPL-2.0-only */
// When frames leave in a WiFi cell with `air: dcf`. Include cell.h first. Compiles for the kernel
// and for user space.
//
// A departure is computed when the frame arrives, so nobody draws backoffs: an access takes the
// mean time that Bianchi's model gives for the number of contenders (lab/radio/contention.py).
// Contenders are access points and stations; one contends until its latest frame has left.
//
//     access = idle slots + collisions + DIFS or AIFS + frame + SIFS + acknowledgement
//     round = own access + one access of every other contender
//
// 1) A contender has one access per round: the frame leaves one round after the one before it.
// 2) All departures together take the time of all accesses. `next_free_ns` is when the last access
//    ends. No frame leaves later, and what leaves last leaves then. So the contender with the
//    longest queue has what the others leave, and what they have taken from its earlier frames.
// 3) In 802.11n a frame joins the receiver's A-MPDU that has not begun. That of a station can be
//    joined until it ends, because TCP gives its own host's queue only a few segments at a time.

#define MOST_CONTENDERS 264
#define SERVICE_BITS 22 // service field and tail
#define OLD_ACCESSES 3  // weight of the mean cost before, of 4, when an access is added to it

struct contender {
	__u64 until_ns;          // when its latest access ends
	__u64 cost_ns, frame_ns; // of its accesses, smoothed: the whole time, and that of the frames
};

// Means for one number of contenders.
struct means {
	__u64 idle_slots_ppm, collisions_ppm; // before a success, in millionths
	__u64 abandoned_ppm;                  // frames that are lost because each attempt collided
};

// Of the other contenders, when an access begins: their accesses, the longer one of their frame and
// this access's, and the last departure. `sending` counts this contender, too.
struct sums {
	__u64 sending, others_ns, longest_ns, latest_ns;
};

// The value of the map `channels`. Times are in ns.
struct channel {
	__u64 slot_ns, access_ns, preamble_ns, symbol_ns, longest_ns; // as in lab/radio/dcf.py
	__u64 mac_bytes, aggregated;
	__u64 loss_ppm;          // by other causes than collisions
	__u64 group, groups;     // a queue holds `groups` times `group` packets
	__u64 contender_count;   // entries of `contenders` that have been used
	struct means means[MOST_CONTENDERS + 1];
	struct contender contenders[MOST_CONTENDERS];
	struct sums sums;        // of the latest access
};

// One direction between a station and its access point, and its latest access.
struct way {
	__u64 symbol_microbits, answer_ns, block_answer_ns; // as in lab/radio/dcf.py
	__u64 start_ns, frame_ns, cost_ns; // when its frames begin, how long they and all of it take
	__u64 bytes, frames;               // in its A-MPDU
};

static __always_inline __u64 duration_ns(const struct channel *channel, const struct way *way,
					 __u64 bytes)
{
	__u64 symbol = later(way->symbol_microbits, 1);
	__u64 symbols = ((SERVICE_BITS + 8 * bytes) * 1000000 + symbol - 1) / symbol;
	return channel->preamble_ns + symbols * channel->symbol_ns;
}

// Return the bytes of a frame in an A-MPDU: with a delimiter, in words of 4 bytes.
static __always_inline __u64 in_aggregate(const struct channel *channel, __u64 length)
{
	return 4 + (length + channel->mac_bytes + 3) / 4 * 4;
}

// Count the contenders, `own` among them, and sum up the accesses of the others. The sums are in
// the map and volatile, so that the verifier has no more than one state to follow in the loop.
static __always_inline void look(struct channel *channel, struct contender *own, __u64 frame_ns,
				 __u64 now_ns)
{
	volatile struct sums *sums = &channel->sums;
	__u64 until_ns = own->until_ns;
	own->until_ns = 0; // not one of the others
	sums->sending = 1;
	sums->others_ns = sums->longest_ns = sums->latest_ns = 0;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < MOST_CONTENDERS; n++) {
		if (n >= channel->contender_count)
			break;
		struct contender *other = &channel->contenders[n];
		if (other->until_ns <= now_ns)
			continue;
		sums->sending += 1;
		sums->others_ns += other->cost_ns;
		sums->longest_ns += later(frame_ns, other->frame_ns);
		sums->latest_ns = later(sums->latest_ns, other->until_ns);
	}
	own->until_ns = until_ns;
}

static __always_inline const struct means *means_now(const struct channel *channel)
{
	__u64 sending = channel->sums.sending;
	return &channel->means[sending < MOST_CONTENDERS ? sending : MOST_CONTENDERS];
}

static __always_inline __u64 smoothed(__u64 before, __u64 latest)
{
	return before ? (OLD_ACCESSES * before + latest) / (OLD_ACCESSES + 1) : latest;
}

// Add a frame to the latest access of `way`. Return its departure, or 0 if it cannot be added.
static __always_inline __u64 join(struct cell *cell, struct channel *channel, struct way *way,
				  struct contender *own, int is_up, __u64 length, __u64 now_ns)
{
	int is_open = way->start_ns > now_ns || (is_up && own->until_ns > now_ns);
	if (!way->frames || way->frames >= channel->aggregated || !is_open)
		return 0;
	__u64 bytes = way->bytes + in_aggregate(channel, length);
	__u64 frame_ns = duration_ns(channel, way, bytes);
	if (frame_ns > channel->longest_ns)
		return 0;
	__u64 before_ns = way->frame_ns + (way->frames == 1 ? way->answer_ns : way->block_answer_ns);
	__u64 longer_ns = frame_ns + way->block_answer_ns - before_ns;
	way->bytes = bytes;
	way->frames++;
	way->frame_ns = frame_ns;
	way->cost_ns += longer_ns;
	own->until_ns += longer_ns;
	cell->next_free_ns += longer_ns;
	cell->busy_ns += longer_ns;
	return way->start_ns + frame_ns;
}

// Give the frame an access of its own. Return its departure.
static __always_inline __u64 open_access(struct cell *cell, struct channel *channel,
					 struct way *way, struct contender *own, __u64 length,
					 __u64 now_ns)
{
	const struct means *means = means_now(channel);
	__u64 frame_ns = duration_ns(channel, way, length + channel->mac_bytes);
	__u64 collision_ns = channel->access_ns;
	if (channel->sums.sending > 1)
		collision_ns += channel->sums.longest_ns / (channel->sums.sending - 1);
	__u64 cost_ns = means->idle_slots_ppm * channel->slot_ns / 1000000 +
			means->collisions_ppm * collision_ns / 1000000 + channel->access_ns +
			frame_ns + way->answer_ns;
	__u64 free_ns = later(now_ns, cell->next_free_ns) + cost_ns;
	__u64 end_ns = later(now_ns, own->until_ns) + channel->sums.others_ns + cost_ns; // 1
	if (end_ns >= channel->sums.latest_ns || end_ns > free_ns)
		end_ns = free_ns; // 2
	way->start_ns = end_ns - way->answer_ns - frame_ns;
	way->frame_ns = frame_ns;
	way->cost_ns = cost_ns;
	way->bytes = in_aggregate(channel, length);
	way->frames = 1;
	own->until_ns = end_ns;
	cell->next_free_ns = free_ns;
	cell->busy_ns += cost_ns;
	return end_ns - way->answer_ns;
}

// Return when a frame of `length` bytes (Ethernet) of contender number `number` leaves.
static __always_inline __u64 departure_of(struct cell *cell, struct channel *channel,
					  struct way *way, __u32 number, int is_up, __u64 length,
					  __u64 now_ns)
{
	if (number >= MOST_CONTENDERS)
		return now_ns;
	struct contender *own = &channel->contenders[number];
	if (number >= channel->contender_count)
		channel->contender_count = number + 1;
	cell->sent++;
	__u64 departure_ns = join(cell, channel, way, own, is_up, length, now_ns); // 3
	if (departure_ns)
		return departure_ns;
	if (way->frames) {
		own->cost_ns = smoothed(own->cost_ns, way->cost_ns);
		own->frame_ns = smoothed(own->frame_ns, way->frame_ns);
	}
	__u64 one_ns = duration_ns(channel, way, length + channel->mac_bytes);
	look(channel, own, later(one_ns, own->frame_ns), now_ns);
	departure_ns = open_access(cell, channel, way, own, length, now_ns);
	if (!own->cost_ns) {
		own->cost_ns = way->cost_ns;
		own->frame_ns = way->frame_ns;
	}
	if (is_up)
		cell->uplink_free_ns = later(cell->uplink_free_ns, own->until_ns);
	return departure_ns;
}
