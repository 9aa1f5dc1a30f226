// One cursor and one zoom for all charts: `attach` joins a chart to the view.
import { element, number } from "./app.js";

const CLICK_PX = 4; // a longer movement is a zoom

export function attach(card, view, live) {
  const { plot } = card;
  card.cursor = element("div", { class: "cursor", "aria-hidden": "true" }, element("b"));
  card.future = element("div", { class: "future", "aria-hidden": "true" });
  plot.parentElement.append(card.future, card.cursor);
  const timeAt = (event) => {
    const axis = plot._fullLayout?.xaxis;
    if (!axis) return null;
    const x = event.clientX - plot.getBoundingClientRect().left - axis._offset;
    return x < 0 || x > axis._length ? null : Math.max(0, axis.p2l(x));
  };
  plot.addEventListener("pointermove", (event) => view.point(timeAt(event)));
  plot.addEventListener("pointerleave", () => view.point(null));
  let began = null;
  plot.addEventListener("pointerdown", (event) => (began = event), true);
  document.addEventListener("pointerup", (event) => {
    if (!began) return;
    const moved = Math.hypot(event.clientX - began.clientX, event.clientY - began.clientY);
    if (moved < CLICK_PX && began.target.closest(".draglayer")) view.go(timeAt(event));
    began = null;
  });
  plot.on("plotly_relayout", (change) => {
    const span = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    const [from, to] = card.layout.xaxis.range;
    if (change["xaxis.autorange"] || (span[0] <= from && span[1] >= to)) view.zoomTo(null);
    else if (span[0] !== undefined) view.zoomTo([Math.max(0, span[0]), span[1]]);
  });
  plot.on("plotly_doubleclick", () => view.zoomTo(null));
  card.placeCursor = () => place(card, view, live());
}

function place({ plot, cursor, future }, view, live) {
  const layout = plot._fullLayout;
  const axis = layout?.xaxis;
  const t = view.pointed ?? view.t;
  if (!axis) return;
  if (plot.hidden) {
    for (const each of [cursor, future]) each.style.display = "none"; // the table is shown
    return;
  }
  const { t: top, h: height } = layout._size;
  const px = (time) => axis._offset + axis.l2p(time);
  const inside = (time) => time !== null && time !== undefined && axis.l2p(time) >= -1 && axis.l2p(time) <= axis._length + 1;
  cursor.style.display = inside(t) ? "block" : "none";
  cursor.classList.toggle("pinned", t === view.t);
  if (inside(t)) {
    Object.assign(cursor.style, { left: `${px(t)}px`, top: `${top}px`, height: `${height}px` });
    const label = cursor.firstChild;
    label.textContent = `${number(t, 1)} s`;
    label.style.left = axis.l2p(t) > axis._length - 60 ? "-3.6rem" : "3px";
  }
  const hide = view.t !== null && !live && inside(view.t) && view.playing;
  future.style.display = hide ? "block" : "none";
  if (hide)
    Object.assign(future.style, {
      left: `${px(view.t) + 1}px`,
      width: `${Math.max(0, axis._length - axis.l2p(view.t))}px`,
      top: `${top}px`,
      height: `${height}px`,
    });
}
