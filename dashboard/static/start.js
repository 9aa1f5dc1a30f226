// The form that starts a run.
import { $, api, data, element, toast } from "./app.js";
import { EndpointsForm } from "./endpoints_form.js";
import { bounds, grouped, input, option, typed, words } from "./fields.js";
import { Several } from "./several.js";
import { Beside } from "./start_beside.js";
import { TopologyForm } from "./topology_form.js";
import { TrafficForm, together } from "./traffic_form.js";

const { scenario, strategies, meant, engines, cc, topology, traffic, kinds, users, endpoints, limits } = data("about");

const ownTraffic = together(traffic, users);

function fillStrategies() {
  const made = (name) => {
    const { unfit } = strategies.find((each) => each.name === name);
    return option(name, unfit ? `${name} (does not fit this network)` : name, name === scenario.strategy);
  };
  $("strategy").append(...grouped(strategies.map((each) => each.name), made, meant));
  $("strategy").addEventListener("change", fillParams);
  fillParams();
}

// The scenario's own parameters, for every form of its strategy: NAME and NAME/improved.
function ownParams(chosen) {
  const own = strategies.find((each) => each.name === scenario.strategy);
  if (chosen === own) return scenario.params;
  if (chosen.name.split("/")[0] !== scenario.strategy.split("/")[0]) return {};
  const changed = own.params.filter((each) => scenario.params[each.name] !== each.default);
  return Object.fromEntries(changed.map((each) => [each.name, scenario.params[each.name]]));
}

function fillParams() {
  const chosen = strategies.find((each) => each.name === $("strategy").value);
  const given = ownParams(chosen);
  $("strategy-help").textContent = chosen.unfit
    ? `This strategy does not fit this network: ${chosen.unfit}.`
    : chosen.help;
  $("params-box").hidden = !chosen.params.length;
  $("params").replaceChildren(
    ...chosen.params.map((param) => {
      const id = `param-${param.name}`;
      const unit = ["choice", "switch", "1"].includes(param.unit) ? "" : param.unit;
      return element(
        "div",
        { class: "field" },
        element("label", { for: id }, param.words || words(param.name, unit)),
        element(
          "span",
          { class: "unit-box" },
          input(id, param, given[param.name] ?? param.default),
          element("span", {}, unit),
        ),
        element("p", { class: "help", id: `${id}-help` }, `${param.help}.${bounds(param)}`),
      );
    }),
  );
}

function fillEngines() {
  const kinds = { sim: "simulation", mininet: "emulation" };
  const ordered = [...engines].sort((a, b) => Number(a.real_time) - Number(b.real_time));
  $("engine").append(
    ...ordered.map((each) =>
      option(each.name, `${each.name}${kinds[each.name] ? `: ${kinds[each.name]}` : ""}`, false),
    ),
  );
  const follow = () => {
    const engine = engines.find((each) => each.name === $("engine").value);
    $("speed-box").hidden = engine.real_time;
    $("vm-box").hidden = !engine.real_time;
    $("cc").replaceChildren(
      ...cc
        .filter((name) => engine.cc.includes(name))
        .map((name) => option(name, name, name === scenario.cc)),
    );
  };
  $("engine").addEventListener("change", follow);
  follow();
}

function request() {
  const engine = engines.find((each) => each.name === $("engine").value);
  const chosen = strategies.find((each) => each.name === $("strategy").value);
  const params = {};
  for (const param of chosen.params) {
    const value = typed($(`param-${param.name}`));
    if (value !== param.default) params[param.name] = value;
  }
  const body = {
    scenario: scenario.name,
    strategy: chosen.name,
    params,
    cc: $("cc").value,
    engine: engine.name,
    seed: Number($("seed").value),
    duration_s: Number($("duration").value),
    set: {},
  };
  if (engine.real_time) body.vm = $("vm").checked;
  else body.speed = $("speed").value === "max" ? "max" : Number($("speed").value);
  Object.assign(body.set, form.settings(), endpointsForm.settings());
  const entries = form.trafficOf(trafficForm.entries());
  if (form.hasOtherUsers() || JSON.stringify(entries) !== JSON.stringify(ownTraffic)) body.set.traffic = entries;
  return body;
}

$("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = $("start-button");
  const label = button.textContent;
  button.disabled = true;
  button.textContent = "Starting …";
  several.forget();
  try {
    if (several.isWanted()) {
      several.rest();
      await api("/api/batches", { method: "POST", body: several.body() });
      location.href = "/runs";
      return;
    }
    const { id } = await api("/api/runs", { method: "POST", body: request() });
    location.href = `/runs/${id}`;
  } catch (error) {
    error.message = trafficForm.explained(error.message, request().set.traffic);
    several.complain(error);
    button.disabled = false;
    button.textContent = label;
  }
});
fillStrategies();
fillEngines();
$("topology-box").hidden = !topology.length;
const form = new TopologyForm({
  box: $("topology-params"),
  multipathBox: $("multipath"),
  params: topology,
});
const trafficForm = new TrafficForm({ box: $("traffic"), entries: ownTraffic, kinds, users: () => (form.users().length ? form.users() : users) });
$("endpoints-box").hidden = !endpoints.length;
const endpointsForm = new EndpointsForm({ box: $("endpoints"), endpoints, limits });
const several = new Several(data("about"), request);
new Beside(data("about"), request, async (path, body, before = () => null) => {
  try {
    const answer = await api(path, { method: "POST", body });
    before(answer);
    location.href = answer.url;
  } catch (error) {
    toast(error.message, true);
  }
});

// The drawing follows the parameters of the topology and the seed, which may place the users.
let drawn = "{}";
$("start").addEventListener("change", () => {
  trafficForm.offerUsers();
  const { set, seed } = request();
  const settings = seed === scenario.seed ? set : { ...set, seed };
  if (JSON.stringify(settings) === drawn) return;
  drawn = JSON.stringify(settings);
  document.dispatchEvent(new CustomEvent("topology", { detail: settings }));
});
