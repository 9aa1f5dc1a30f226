// Subflows that share a link are parallel lanes, as in dashboard/network/svg.py.
const LETTER = 3; // half the width of a letter of a link's name, in pixels
const BETWEEN = 1.4; // pixels between two lanes
const [IDLE, WIDEST] = [1.4, 8]; // width of a subflow in pixels, without traffic and at full rate

export function normal(a, b) {
  const x = b[0] - a[0],
    y = b[1] - a[1];
  const length = Math.hypot(x, y) || 1;
  return [-y / length, x / length];
}

export const ends = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

// The width of a subflow. It grows with the root of the rate, so that a tenth of `fullMbps` can be
// told from nothing.
export const widthOf = (mbps, fullMbps) =>
  IDLE + (WIDEST - IDLE) * Math.sqrt(Math.min(1, Math.max(0, mbps ?? 0) / fullMbps));

// How far the middle of a text is from a point of the link from `a` to `b`, so that the text lies
// above a link that is `width` pixels wide if `side` is 1, below it if -1.
export function beside(a, b, width, letters, side) {
  const [x, y] = normal(a, b).map((each, _, [, down]) => (down > 0 ? -each : each));
  const away = side * (width / 2 + 3 + Math.abs(x) * LETTER * letters + Math.abs(y) * 4);
  return [x * away, y * away + 4];
}

// `paths` maps a subflow to its nodes, `widths` to its width. Returns `widths`, the width of all
// lanes of each link, and `offset(link, subflow)` from the middle of the link.
export function lanes(paths, widths, ribbon) {
  const sharing = new Map();
  for (const [name, path] of paths)
    for (let i = 1; i < path.length; i++) {
      const link = ends(path[i - 1], path[i]);
      if (!sharing.has(link)) sharing.set(link, []);
      sharing.get(link).push(name);
    }
  const totals = new Map(),
    offsets = new Map();
  for (const [link, names] of sharing) {
    const total = names.reduce((sum, name) => sum + widths.get(name), BETWEEN * (names.length - 1));
    const squeeze = Math.min(1, ribbon / total);
    let begin = -total / 2;
    totals.set(link, total * squeeze);
    for (const name of names) {
      offsets.set(`${link} ${name}`, (begin + widths.get(name) / 2) * squeeze);
      begin += widths.get(name) + BETWEEN;
    }
  }
  return { widths: totals, offset: (link, name) => offsets.get(`${link} ${name}`) };
}

// The points of each path, as pairs. `places` maps a node to its place.
export function polylines(paths, places, where) {
  const found = new Map();
  for (const [name, path] of paths) {
    const points = [];
    for (let i = 1; i < path.length; i++) {
      const [a, b] = [path[i - 1], path[i]];
      const offset = where.offset(ends(a, b), name);
      const [dx, dy] = a < b ? normal(places[a], places[b]) : normal(places[b], places[a]);
      for (const end of [a, b]) points.push([places[end][0] + dx * offset, places[end][1] + dy * offset]);
    }
    found.set(name, points);
  }
  return found;
}
