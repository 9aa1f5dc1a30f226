// The part of a finished run's page that says what came out, and what can be done next.
import { $, css, api, element, number, toast } from "./app.js";
import { showCaptured } from "./captured.js";
import { showCompletion } from "./completion.js";
import { differing, settingsOf } from "./run_words.js";
import { showStretches } from "./stretches.js";
import { twoSentences } from "./happened.js";
import { showMeans } from "./tiles.js";

const MOST_RUNS = 500; // whose settings are looked up

export class Finished {
  // `onTransfers` gets the users that are finished. `atEnd()`: the page shows the end of the run, and
  // no earlier time. `showLast()` shows the last sample. `again(request)` makes the run once more.
  constructor(path, { onTransfers, atEnd, showLast, again }) {
    Object.assign(this, { path, onTransfers, atEnd, showLast });
    this.loaded = false;
    $("again-flips").addEventListener("click", () => again({ with_flips: true }));
    $("baseline").addEventListener("click", () => this.markBaseline());
    $("figures-svg").addEventListener("click", saveFigures);
    $("figures-pdf").addEventListener("click", () => window.print());
    $("compare-with").addEventListener("change", () => {
      const other = $("compare-with").value;
      if (other)
        location.href = `/compare?runs=${[other, this.run.id].map(encodeURIComponent).join(",")}`;
    });
  }

  async show(run) {
    this.run = run;
    $("finished-card").hidden = $("next").hidden = !run.state.over;
    $("log").parentElement.classList.toggle("whole", run.state.over);
    if (run.state.over && $("expect")) $("expect").open = true;
    if (!run.state.over || this.loaded) return;
    this.loaded = true;
    try {
      const stretches = await api(`${this.path}/stretches`);
      showStretches(stretches);
      this.changed = stretches.length > 1;
      this.draw(await api(`${this.path}/summary`));
    } catch (error) {
      toast(error.message, true);
    }
  }

  draw(summary) {
    this.summary = summary;
    const verdict = summary.verdict || "This run has no result: nothing was measured.";
    $("outcome").replaceChildren(...verdict.split("\n").map((line) => element("span", {}, line)));
    $("outcome-short").textContent = twoSentences(verdict);
    if (this.atEnd()) this.showTiles();
    this.onTransfers(summary.finished);
    showCompletion(summary.completion);
    showCaptured(summary.captured);
    const { baseline } = summary;
    const change = baseline?.change_percent;
    $("against").replaceChildren();
    if (summary.is_baseline) $("against").append("This run is the baseline of its scenario.");
    else if (baseline)
      $("against").append(
        change === null ? "Baseline: " : `${change > 0 ? "+" : ""}${number(change, 1)} % against `,
        element("a", { href: `/runs/${baseline.id}` }, `the baseline (${baseline.strategy})`),
      );
    $("baseline").textContent = summary.is_baseline ? "No longer the baseline" : "Make it the baseline";
    $("again-flips").hidden = !this.run.flips?.length;
    $("compare-with").hidden = !summary.others.length;
    this.offer(summary.others);
  }

  // The runs to compare with, each with its settings from the list of runs.
  async offer(others) {
    const address = `/api/runs?scenario=${encodeURIComponent(this.run.scenario)}&limit=${MOST_RUNS}`;
    const known = new Map((await api(address).catch(() => [])).map((doc) => [doc.id, doc]));
    const docs = others.map((each) => known.get(each.id) ?? { scenario: this.run.scenario, ...each });
    const more = differing(docs);
    $("compare-with").replaceChildren(
      element("option", { value: "" }, "Compare with …"),
      ...docs.map((each) =>
        element(
          "option",
          { value: each.id },
          `${settingsOf(each, this.run, more)}, ${number(each.throughput_mbps)} Mb/s (${each.id})`,
        ),
      ),
    );
  }

  // Means of the whole run would mix the parts of a run that was changed.
  showTiles() {
    if (!this.summary) return;
    if (Object.keys(this.summary.means).length && !this.changed) showMeans(this.summary, this.run);
    else this.showLast();
  }

  // A scenario has one baseline: the tag is taken from its other runs.
  async markBaseline() {
    const marked = this.summary.is_baseline;
    const tagged = async (id, wanted) => {
      const path = `/api/runs/${encodeURIComponent(id)}`;
      const { tags } = await api(path);
      const others = tags.filter((tag) => tag !== "baseline");
      const body = { tags: wanted ? [...others, "baseline"] : others };
      await api(path, { method: "PATCH", body });
    };
    try {
      if (!marked && this.summary.baseline) await tagged(this.summary.baseline.id, false);
      await tagged(this.run.id, !marked);
      this.draw(await api(`${this.path}/summary`));
    } catch (error) {
      toast(error.message, true);
    }
  }
}

const LEGEND_PX = 60;

async function saveFigures() {
  for (const card of document.querySelectorAll(".chart")) {
    const plot = card.querySelector(".plot");
    if (plot?.layout)
      await Plotly.downloadImage(withLegend(plot), {
        format: "svg",
        filename: card.id.replace("chart-", ""),
        width: plot.clientWidth || 700,
        height: (plot.clientHeight || 330) + LEGEND_PX,
      });
  }
}

// A figure of its own needs the legend that the page shows above the plot.
function withLegend({ data, layout }) {
  const margin = { ...layout.margin, t: 26 + LEGEND_PX };
  return { data, layout: { ...layout, showlegend: true, margin, paper_bgcolor: css("--card") } };
}
