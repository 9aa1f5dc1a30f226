// Subflows that share a link are parallel lanes, as in dashboard/network/svg.py.
const LANE = 4;

export function normal(a, b) {
  const x = b[0] - a[0],
    y = b[1] - a[1];
  const length = Math.hypot(x, y) || 1;
  return [-y / length, x / length];
}

// The points of each path. `paths` maps a subflow to its nodes, `places` a node to its place.
export function polylines(paths, places, ribbon) {
  const sharing = new Map();
  const key = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);
  for (const [name, path] of paths)
    for (let i = 1; i < path.length; i++) {
      const link = key(path[i - 1], path[i]);
      if (!sharing.has(link)) sharing.set(link, []);
      sharing.get(link).push(name);
    }
  const found = new Map();
  for (const [name, path] of paths) {
    const points = [];
    for (let i = 1; i < path.length; i++) {
      const [a, b] = [path[i - 1], path[i]];
      const names = sharing.get(key(a, b));
      const gap = Math.min(LANE, ribbon / names.length);
      const offset = (names.indexOf(name) - (names.length - 1) / 2) * gap;
      const [dx, dy] = a < b ? normal(places[a], places[b]) : normal(places[b], places[a]);
      for (const end of [a, b])
        points.push(
          `${(places[end][0] + dx * offset).toFixed(1)},${(places[end][1] + dy * offset).toFixed(1)}`,
        );
    }
    found.set(name, points.join(" "));
  }
  return found;
}
