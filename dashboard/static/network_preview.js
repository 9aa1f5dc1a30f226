// The network of a scenario beside the form that starts a run. A form that changes parameters of
// the topology dispatches the event "topology" with its settings, such as {"topology.k": 6}.
import { $ } from "./app.js";
import { NetworkMap } from "./network_map.js";

const map = new NetworkMap({ box: $("drawing"), readout: $("readout"), table: $("network-table") });
const path = `/api/scenarios/${encodeURIComponent($("network").dataset.scenario)}/network`;
let newest = 0;

async function draw(settings) {
  const mine = ++newest;
  try {
    await map.load(`${path}?set=${encodeURIComponent(JSON.stringify(settings))}`);
    $("drawing").hidden = false;
  } catch (error) {
    if (mine !== newest) return;
    $("drawing").hidden = true;
    $("readout").textContent = error.message;
  }
}

document.addEventListener("topology", ({ detail: settings }) => draw(settings));
draw({});
