// The path of each subflow and the links that are down, as in lab/results/explain/paths.py.
export class Paths {
  constructor(drawing) {
    this.drawing = drawing;
    this.down = new Set(); // links
    this.off = new Set(); // links whose interface at the user is off
    this.rates = new Map(); // of the links whose rate was changed: from a to b and back, in Mb/s
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
    const [, changed, way] = /^link\.(.+?)(?:\.(up|down))?\.rate_mbps$/.exec(facts?.target ?? "") ?? [];
    if (changed) this.rates.set(changed, this.changedRates(changed, way, facts.value));
    const link = /^link\.(.+)\.up$/.exec(facts?.target ?? "")?.[1];
    if (link) this.down[facts.value ? "delete" : "add"](link);
    const own = facts?.target && this.drawing.lines.find((line) => line.interface === facts.target);
    if (own) this.off[facts.value ? "delete" : "add"](own.id);
  }

  // The rate of a link from its end a to its end b, and the one back, or null if it is the same.
  ratesOf(line) {
    const [ab, ba] = this.rates.get(line.id) ?? [line.rate_mbps, line.rate_back_mbps ?? line.rate_mbps];
    return { rate_mbps: ab, rate_back_mbps: ab === ba ? null : ba };
  }

  changedRates(id, way, value) {
    const line = this.drawing.lines.find((each) => each.id === id);
    if (!way || !line) return [value, value];
    const { rate_mbps, rate_back_mbps } = this.ratesOf(line);
    const back = rate_back_mbps ?? rate_mbps;
    return (line.down === "ab") === (way === "down") ? [value, back] : [rate_mbps, value];
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
