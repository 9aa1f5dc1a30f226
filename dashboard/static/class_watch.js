// The page of one run of a class: the network and its charts, with predictions over them.
import { $, data, toast } from "./app.js";
import { follow, showClass } from "./class_link.js";
import { LiveRun } from "./class_run.js";
import { NetworkMap } from "./network_map.js";

// Show a run with its network; return the function that shows another one. `few` is that of
// `LiveRun`; `onDrawn(live)` is called when the charts have got more.
export function watch({ few = false, onDrawn = () => null } = {}) {
  const map = new NetworkMap({ box: $("drawing"), readout: $("readout"), table: $("network-table") });
  const live = new LiveRun($("live"), {
    all: !few,
    few,
    predictions: (run) => run.predictions ?? [],
    onBegun: (path) => map.load(`${path}/network`).catch((error) => ($("drawing").textContent = error.message)),
    onFrame: (frame) => {
      if (map.drawing) map.show(frame);
      onDrawn(live);
    },
    onEvent: (event) => map.drawing && map.follow(event),
    onLoad: (found) => map.drawing && map.restart(found.events),
  });
  return async (id) => {
    await live.show(id);
    return live;
  };
}

const about = $("about") ? data("about") : null;
if (about) {
  const show = watch();
  $("labels").addEventListener("click", () => {
    const shown = $("drawing").firstElementChild?.classList.toggle("labelled");
    $("labels").setAttribute("aria-pressed", String(Boolean(shown)));
  });
  show(about.id).catch((error) => toast(error.message, true));
  if (about.seat) follow("/api/class/stream", "seat", (seat) => showClass(seat));
}
