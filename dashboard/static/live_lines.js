// Move the lines of a live chart. Plotly needs about 20 ms to lay out a chart, most of it for axes and
// labels. Between two layouts only the paths of the lines change, and this file writes them.

const GAP = null;

// The part of a line inside a range of time, and one point before it.
export function windowed(trace, [from, to]) {
  const { x, y } = trace;
  const first = Math.max(0, x.findIndex((t) => t >= from) - 1);
  let end = x.length;
  while (end > first && x[end - 1] > to) end--;
  return first === 0 && end === x.length
    ? trace
    : { ...trace, x: x.slice(first, end), y: y.slice(first, end) };
}

// Write the paths of `traces`, which are those of the last layout with other points. Return false if
// a new layout is needed: a value is outside its axis, or a line appears.
export function moveLines(plot, traces) {
  const drawn = new Map(
    [...plot.querySelectorAll(".scatterlayer .trace")].map((each) => [each.__data__[0].trace.index, each]),
  );
  const paths = [];
  for (const [n, trace] of traces.entries()) {
    if (trace.visible === false || (!trace.meta.key.length && !trace.meta.band)) continue;
    if (trace.y.every((value) => value === GAP)) continue;
    const axes = axesOf(plot, trace);
    if (!axes || trace.y.some((value) => value > axes.y.range[1])) return false;
    const [line, ...more] = drawn.get(n)?.querySelectorAll(".js-line") ?? [];
    if (!line) return false;
    paths.push([line, path(trace, axes)], ...more.map((each) => [each, "M0,0"]));
    if (trace.fill !== "tonexty") continue;
    const area = drawn.get(n - 1)?.querySelector(".js-fill"); // Plotly draws it behind both lines
    if (!area) return false;
    const back = { ...traces[n - 1], x: [...traces[n - 1].x].reverse(), y: [...traces[n - 1].y].reverse() };
    paths.push([area, `${path(trace, axes)}${path(back, axes).replace("M", "L")}Z`]);
  }
  for (const [element, d] of paths) element.setAttribute("d", d);
  return true;
}

function axesOf(plot, trace) {
  const layout = plot._fullLayout;
  const y = layout?.[(trace.yaxis ?? "y").replace("y", "yaxis")];
  return y && { x: layout.xaxis, y };
}

// The points as an SVG path. A gap begins a new line, unless the gaps are bridged.
function path(trace, { x, y }) {
  const steps = trace.line?.shape === "hv";
  let made = "",
    apart = true;
  for (const [n, value] of trace.y.entries()) {
    if (value === GAP) {
      apart ||= !trace.connectgaps;
      continue;
    }
    const [px, py] = [x.l2p(trace.x[n]).toFixed(1), y.l2p(value).toFixed(1)];
    made += apart ? `M${px},${py}` : steps ? `H${px}V${py}` : `L${px},${py}`;
    apart = false;
  }
  return made;
}
