// The texts that a person grades: one form for each, those without points first.
import { api, element, toast } from "./app.js";
import { attempt, namesOf } from "./class_link.js";

export class Texts {
  constructor(box) {
    this.box = box;
  }

  async load() {
    const found = await api("/api/instructor/texts").catch((error) => toast(error.message, true));
    if (!found) return;
    const open = (each) => each.points === null;
    const rows = [...found.filter(open), ...found.filter((each) => !open(each))];
    this.box.replaceChildren(...(rows.length ? rows.map((each) => this.form(each)) : [element("p", { class: "muted" }, "No texts yet.")]));
  }

  form(each) {
    const id = `grade-${each.seat}-${each.worksheet}-${each.step}`;
    const points = element("input", { id, type: "number", min: 0, max: each.of, step: 1, value: each.points, required: true });
    const comment = element("input", { id: `${id}-comment`, value: each.comment ?? "", maxlength: 500 });
    const status = element("span", { class: "meta", role: "status" }, each.points === null ? "" : "Graded.");
    const form = element(
      "form",
      { class: "text-to-grade" },
      element("h3", {}, namesOf(each), element("span", { class: "muted" }, ` · ${each.worksheet}`)),
      element("p", { class: "muted" }, each.ask),
      element("blockquote", {}, String(each.answer)),
      element("div", { class: "row" }, element("div", { class: "field few" }, element("label", { for: id }, `Points of ${each.of}`), points), element("div", { class: "field grow" }, element("label", { for: `${id}-comment` }, "Comment for the student"), comment), element("button", { type: "submit" }, "Save"), status),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!points.reportValidity()) return;
      status.textContent = "Saving …";
      const body = { seat: each.seat, worksheet: each.worksheet, step: each.step, points: points.valueAsNumber, comment: comment.value };
      status.textContent = (await attempt("/api/instructor/grades", body)) ? "Graded." : "Not saved.";
    });
    return form;
  }
}
