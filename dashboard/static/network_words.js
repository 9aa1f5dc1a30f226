// The figures of a drawn network in words: for the line below the drawing, and for its table.
import { number } from "./app.js";

const percent = (part) => `${Number((100 * part).toPrecision(2))} %`;
const list = (parts) => parts.filter(Boolean).join(", ");

// As in dashboard/network/svg.py.
export function linkText(line, sample) {
  const { mbps } = sample;
  const measured = mbps !== null && mbps !== undefined;
  const back = (line.rate_back_mbps ?? null) === null ? "" : ` and ${Number(line.rate_back_mbps.toPrecision(3))}`;
  const rate = line.rate_mbps === null ? "" : `${Number(line.rate_mbps.toPrecision(3))}${back} Mb/s`;
  const text = !measured ? rate : rate ? `${number(mbps, 1)} of ${rate}` : `${number(mbps, 1)} Mb/s`;
  const loss = measured ? sample.loss : line.loss;
  return list([text, loss ? `${percent(loss)} lost` : ""]);
}

// One row for each link, node and subflow: {kind, id, name, where, figures}.
export function describe(drawing, frame, paths, state) {
  const rows = drawing.lines.map((line) => ({
    kind: "link",
    id: line.id,
    name: `${line.air ? "Air" : "Link"} ${line.id.replace("~", " to ")}`,
    where: line.words || `${line.a} to ${line.b}`,
    figures: linkFigures(line, frame?.link?.[line.id] ?? {}, state.isDown(line.id)),
  }));
  for (const node of drawing.nodes) rows.push(nodeRow(node, frame));
  for (const [name, path] of paths ?? []) {
    const each = frame.sf[name];
    rows.push({
      kind: "sf",
      id: name,
      name: `Subflow ${name}`,
      where: path.join(" → "),
      figures: list([
        `${number(each.mbps)} Mb/s`,
        each.rtt_ms ? `RTT ${number(each.rtt_ms, 0)} ms` : "",
        each.cwnd ? `congestion window ${each.cwnd} packets` : "",
        each.backup ? "backup" : "",
      ]),
    });
  }
  return rows;
}

function linkFigures(line, sample, down) {
  if (down) return "down";
  return (
    list([
      linkText(line, sample),
      line.delay_ms ? `${number(line.delay_ms, 0)} ms one way` : "",
      sample.backlog ? `${sample.backlog} packets in the queue` : "",
    ]) || "not limited"
  );
}

function nodeRow(node, frame) {
  const ap = frame?.ap?.[node.id],
    user = frame?.user?.[node.id];
  const moves = user && user.x_m !== undefined && user.x_m !== null;
  if (["wifi", "lte"].includes(node.kind))
    return {
      kind: "ap",
      id: node.id,
      name: `${node.kind === "wifi" ? "WiFi access point" : "LTE base station"} ${node.id}`,
      where: ap ? `${ap.stations} stations` : "its cell",
      figures: ap
        ? list([
            ap.mac_occupancy === null ? "" : `queue ${percent(ap.mac_occupancy)} full`,
            `Tier 1 ${number(ap.tier1_mbps, 1)} Mb/s`,
            `Tier 2 ${number(ap.tier2_mbps, 1)} Mb/s`,
            ap.meter_mbps === null ? "" : `limited to ${number(ap.meter_mbps, 1)} Mb/s`,
          ])
        : "idle",
    };
  if (node.kind === "user")
    return {
      kind: "user",
      id: node.id,
      name: `User ${node.id}`,
      where: moves ? `at ${number(user.x_m, 0)} m, ${number(user.y_m, 0)} m` : "fixed",
      figures: user ? `receives ${number(user.mbps)} Mb/s` : "idle",
    };
  const kind = node.kind === "server" ? "Server" : "Switch";
  return { kind: "node", id: node.id, name: `${kind} ${node.id}`, where: "fixed", figures: "in use" };
}
