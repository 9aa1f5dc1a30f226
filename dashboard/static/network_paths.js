// The path of each subflow and the links that are down, as in lab/results/explain/paths.py.
export class Paths {
  constructor(drawing) {
    this.drawing = drawing;
    this.down = new Set(); // links
    this.off = new Set(); // links whose interface at the user is off
    this.rates = new Map(); // of the links whose rate was changed, in Mb/s
    this.reported = new Map();
    this.connections = new Map();
  }

  follow({ kind, facts }) {
    if (kind === "subflow") {
      const known = this.connections.get(facts.user) ?? [];
      if (!known.includes(facts.connection)) known.push(facts.connection);
      this.connections.set(facts.user, known);
      this.reported.set(`${facts.connection}/${facts.subflow}`, facts.path ?? []);
      return;
    }
    const changed = /^link\.(.+)\.rate_mbps$/.exec(facts?.target ?? "")?.[1];
    if (changed) this.rates.set(changed, facts.value);
    const link = /^link\.(.+)\.up$/.exec(facts?.target ?? "")?.[1];
    if (link) this.down[facts.value ? "delete" : "add"](link);
    const own = facts?.target && this.drawing.lines.find((line) => line.interface === facts.target);
    if (own) this.off[facts.value ? "delete" : "add"](own.id);
  }

  isDown(link) {
    return this.down.has(link) || this.off.has(link);
  }

  // The nodes of a subflow's path from its server to its user; empty if the user is not known.
  of(name, sample) {
    const { server_of, home_of, doors, reach } = this.drawing;
    const { user, ordinal } = owner(name, sample);
    const server = server_of[user];
    if (!server) return [];
    const number = name.slice(name.lastIndexOf("/") + 1);
    const token = this.connections.get(user)?.[ordinal - 1];
    let path = this.reported.get(name) ?? (token && this.reported.get(`${token}/${number}`));
    const here = sample.ap ?? "";
    const door = doors[here] ?? here;
    if (path?.length && door && reach[server][door] && path.at(-1) !== door) path = null;
    if (!path?.length) path = reach[server][door || (doors[home_of[user]] ?? home_of[user])] ?? [];
    return path.length ? [server, ...path, user] : [];
  }
}

export function owner(name, sample) {
  const connection = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : name;
  const [, user, ordinal] = /^(.*)-(\d+)$/.exec(connection) ?? [null, connection, "1"];
  return { user: sample.user || user, ordinal: Number(ordinal) };
}
