// Which users have finished their transfers, and when: for the charts and the page.
import { number } from "./app.js";

const NAMED = 6; // with more users, the first and the last one are named

export class Transfers {
  // `expected` is the part `transfers` of a run: the number of transfers of each user.
  constructor(expected) {
    this.expected = expected;
    this.clear();
  }

  clear() {
    this.left = new Map(Object.entries(this.expected.users));
    this.ends = new Map(); // by user: the time of the last transfer in s
  }

  // A row of the event log has arrived.
  event({ kind, t, facts }) {
    const left = kind === "completion" ? this.left.get(facts.user) : undefined;
    if (left === undefined) return;
    this.left.set(facts.user, left - 1);
    if (left === 1) this.ends.set(facts.user, t);
  }

  // Take the users that are finished, from the summary of a run.
  set(finished) {
    for (const { user, t } of finished) this.ends.set(user, t);
  }

  // When the related users were finished, or all users without a selection; null while one is not.
  doneAt(related) {
    const chosen = related?.user?.size ? [...related.user] : null;
    if (!chosen && !this.expected.all) return null;
    const ends = (chosen ?? [...this.left.keys()]).map((user) => this.ends.get(user));
    return ends.length && ends.every((end) => end !== undefined) ? Math.max(...ends) : null;
  }

  of(user) {
    const end = this.ends.get(user);
    return end === undefined ? "" : finishedAt(end);
  }

  words() {
    const ends = [...this.ends].sort((a, b) => a[1] - b[1]);
    if (ends.length <= NAMED) return ends.map(([user, t]) => `${user} ${finishedAt(t)}`).join(" · ");
    const [[first, began], [last, ended]] = [ends[0], ends.at(-1)];
    const count = `${ends.length} of ${this.left.size} users have finished`;
    return `${count}: ${first} first, at ${number(began, 1)} s, ${last} last, at ${number(ended, 1)} s`;
  }
}

export const finishedAt = (t) => `finished at ${number(t, 1)} s`;
