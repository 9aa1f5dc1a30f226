// The traffic on the form that starts a run: an entry for each thing that a user does, which can be
// changed, added and removed.
import { element } from "./app.js";
import { bounds, input, option, typed, words } from "./fields.js";

const ALL = "all";
const PLAIN = "bulk"; // an entry without a kind
const MEANING = {
  bulk: "sends as much as it can",
  file: "a file",
  rate: "a steady rate",
  on_off: "a rate with pauses",
  udp: "a rate without feedback (UDP)",
  workload: "many short flows",
  rpc: "requests and answers",
  web: "web pages",
  video: "a video",
  call: "a telephone call",
};

// The keys in words, where their names say too little.
const LABELS = {
  adapts_by: "bitrate chosen by",
  answer_kb: "size of an answer",
  bitrates_mbps: "bitrates to choose from",
  buffer_s: "playback buffer",
  chunk_s: "length of a chunk",
  connections: "parallel connections",
  load: "or: load of a link",
  link: "and this link",
  objects: "objects of a page",
  packet_bytes: "payload of a packet",
  packet_ms: "time between packets",
  playout_ms: "playout delay",
  request_kb: "size of a request",
  requests_per_s: "or: requests, in a Poisson process",
  size_scale: "all sizes times",
  sizes: "sizes in kB",
  think_s: "mean think time",
};
const OF_KIND = {
  rpc: { think_s: "either: mean think time after an answer" },
  workload: { rate_mbps: "either: mean rate of each user" },
  web: { sizes: "sizes of objects in kB", think_s: "mean think time between pages" },
};

const TEXTS = {
  sizes: "web_search, data_mining, or points such as [[10, 0.5], [50, 1]]: half are up to 10 kB, all up to 50 kB.",
  bitrates_mbps: "Ascending, in brackets, such as [2, 5].",
  requests_per_s: "Instead of a think time, which is then left as it is. Empty: each request follows an answer.",
  load: "Part of the link's rate that all users of this entry offer together, instead of a rate. 0 to 2.",
  interface: "Of the user, such as wlan0. Empty: the first.",
  link: "The link whose load is meant. Only with a load.",
};

// Entries of all users that are otherwise equal, as one for all of them.
export function together(entries, users) {
  const texts = new Set(entries.map((entry) => JSON.stringify({ ...entry, user: ALL })));
  const isOfAll = entries.length === users.length && users.every((user) => entries.some((entry) => entry.user === user));
  return users.length > 1 && texts.size === 1 && isOfAll ? [JSON.parse([...texts][0])] : entries;
}

export class TrafficForm {
  // `users()` are those that the network has now.
  constructor({ box, entries, kinds, users }) {
    Object.assign(this, { kinds, users, list: element("div", { class: "entries" }) });
    const add = element("button", { type: "button", id: "add-flow" }, "Add traffic");
    add.addEventListener("click", () => {
      const entry = this.entries().at(-1) ?? { user: this.users()[0] ?? ALL };
      const row = this.add(entry);
      row.node.querySelector("select").focus();
      this.changed();
    });
    this.rows = [];
    for (const entry of entries) this.add(entry);
    box.replaceChildren(this.list, add);
    box.closest("details").addEventListener("toggle", () => this.offerUsers());
  }

  entries() {
    return this.rows.map((row) => row.entry());
  }

  add(entry) {
    const row = new Flow(entry, this, this.made = (this.made ?? 0) + 1);
    this.rows.push(row);
    this.list.append(row.node);
    return row;
  }

  remove(row) {
    this.rows = this.rows.filter((each) => each !== row);
    row.node.remove();
    this.changed();
  }

  offerUsers() {
    for (const row of this.rows) row.offerUsers();
  }

  // An error of the server about one of the entries that were sent, with the entry as the form shows
  // it. The field that is meant is marked.
  explained(text, sent) {
    const [named, n, key] = /traffic\[(\d+)\](?:\.(\w+))?/.exec(text) ?? [];
    const entry = sent?.[n - 1];
    if (!entry) return text;
    const kind = entry.kind ?? PLAIN;
    const row = sent.length === this.rows.length ? this.rows[n - 1] : null;
    const wrong = row?.shown.find((each) => each.row.name === key);
    wrong?.mark();
    const what = wrong?.label ?? key;
    const name = `Traffic of ${entry.user === ALL ? "all users" : entry.user} (${kind}: ${MEANING[kind]})${what ? `, ${what}` : ""}`;
    return text.slice(text.indexOf(named)).replace(named, name);
  }

  changed() {
    this.list.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

class Flow {
  constructor(entry, form, n) {
    Object.assign(this, { of: entry, form, n });
    this.user = element("select", { id: `flow-${n}-user`, "aria-label": `User of traffic ${n}` });
    this.kind = element(
      "select",
      { id: `flow-${n}-kind`, "aria-label": `Kind of traffic ${n}` },
      ...form.kinds.map(({ kind }) => option(kind, `${kind}: ${MEANING[kind] ?? ""}`, kind === (entry.kind ?? PLAIN))),
    );
    this.kind.addEventListener("change", () => this.change());
    const remove = element("button", { type: "button", "aria-label": `Remove traffic ${n}`, title: "Remove" }, "×");
    remove.addEventListener("click", () => form.remove(this));
    this.fields = element("div", {});
    this.node = element("div", { class: "entry" }, element("div", { class: "entry-head" }, this.user, this.kind, remove), this.fields);
    this.offerUsers();
    this.show();
  }

  offerUsers() {
    const chosen = this.user.value || this.of.user;
    const names = [...new Set([...this.form.users(), ALL, chosen])];
    this.user.replaceChildren(...names.map((name) => option(name, name === ALL ? "all users" : name, name === chosen)));
  }

  // Another kind begins with the values that it needs, and with the same times.
  change() {
    const { user, start_s, stop_s } = this.entry();
    const { first } = this.form.kinds.find(({ kind }) => kind === this.kind.value);
    this.of = clean({ user, kind: this.kind.value === PLAIN ? undefined : this.kind.value, start_s, stop_s, ...first });
    this.show();
  }

  show() {
    const { fields } = this.form.kinds.find(({ kind }) => kind === this.kind.value);
    this.shown = fields.map((row) => new Key(this.kind.value, row, this.of[row.name], `flow-${this.n}-${row.name}`));
    const made = (isFurther) => element("div", { class: "row" }, ...this.shown.filter(({ row }) => row.is_further === isFurther).map(({ node }) => node));
    const own = fields.some((row) => !row.is_further) ? [made(false)] : [];
    this.fields.replaceChildren(...own, element("details", {}, element("summary", {}, "When it starts, and more"), made(true)));
  }

  // The entry as a scenario file has it: what nobody touched stays as it was.
  entry() {
    const found = { ...this.of, user: this.user.value };
    for (const key of this.shown) key.into(found);
    return found;
  }
}

// One key of an entry. A list, such as sizes, is written as in a scenario file.
class Key {
  constructor(kind, row, value, id) {
    const isPlain = row.choices || ["number", "integer", "boolean"].includes(row.type);
    const shown = value ?? row.default ?? "";
    Object.assign(this, { row, isPlain });
    this.field = input(id, isPlain ? row : { ...row, type: "text" }, isPlain || typeof shown === "string" ? shown : JSON.stringify(shown));
    this.first = this.field.value;
    this.label = OF_KIND[kind]?.[row.name] ?? LABELS[row.name] ?? words(row.name, row.unit);
    this.node = element(
      "div",
      { class: isPlain ? "field" : "field whole" },
      element("label", { for: id }, this.label),
      element("span", { class: "unit-box" }, this.field, element("span", {}, row.unit)),
      element("p", { class: "help", id: `${id}-help` }, TEXTS[row.name] ?? bounds(row)),
    );
  }

  mark() {
    this.field.setAttribute("aria-invalid", "true");
    for (let box = this.field.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    this.field.focus();
  }

  into(entry) {
    if (this.field.value === this.first) return;
    const value = this.isPlain ? typed(this.field) : written(this.field.value);
    if (value === null || value === "" || value === this.row.default) delete entry[this.row.name];
    else entry[this.row.name] = value;
  }
}

const clean = (entry) => Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));

function written(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}
