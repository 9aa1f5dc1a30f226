// The home page: running runs and the latest runs.
import { $, api, element, number, pill, started } from "./app.js";

// The title of the scenario, from its card on this page.
const titleOf = ({ scenario, id }) =>
  document.querySelector(`.cards a[href="/scenarios/${CSS.escape(scenario)}"]`)?.textContent ?? (scenario || id);

function row(doc) {
  return element(
    "tr",
    {},
    element("td", {}, element("a", { href: `/runs/${doc.id}` }, doc.scenario || doc.id)),
    element("td", {}, doc.strategy),
    element("td", {}, doc.engine),
    element("td", { class: "num" }, number(doc.throughput_mbps)),
    element("td", {}, pill(doc.status)),
    element("td", {}, started(doc.started)),
  );
}

async function refresh() {
  try {
    const runs = await api("/api/runs?limit=50");
    const live = runs.filter((doc) => ["running", "starting"].includes(doc.status));
    $("live").hidden = !live.length;
    $("live-runs").replaceChildren(
      ...live.map((doc) =>
        element(
          "article",
          { class: "card scenario" },
          element("h3", {}, element("a", { href: `/runs/${doc.id}` }, titleOf(doc))),
          element("p", { class: "question" }, `${doc.strategy} · engine ${doc.engine || "…"}`),
          element("p", { class: "meta" }, pill(doc.status)),
        ),
      ),
    );
    const empty = element(
      "tr",
      {},
      element("td", { colspan: 6, class: "muted" }, "No runs yet. Choose a scenario above."),
    );
    $("recent").tBodies[0].replaceChildren(...(runs.length ? runs.slice(0, 8).map(row) : [empty]));
  } catch (error) {
    $("recent").tBodies[0].replaceChildren(
      element("tr", {}, element("td", { colspan: 6, class: "bad" }, error.message)),
    );
  }
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}
refresh();
