// The parameters of a topology on the form that starts a run: numbers, choices and lists. A list of
// objects, such as users or paths, is a table whose rows can be added and removed.
import { element } from "./app.js";
import { bounds, input, typed, words } from "./fields.js";

const LONGEST_UNIT = 8; // a longer one, "fraction from 0 to 1", would take the room of the numbers
const ALL = "all"; // in the place of a user: each of them
const MULTIPATH = "multipath"; // has checkboxes of its own, one for each user

export class TopologyForm {
  constructor({ box, multipathBox, params }) {
    Object.assign(this, { box, multipathBox });
    this.fields = new Map();
    for (const param of params)
      if (param.name !== MULTIPATH) {
        const field = param.type === "array" ? listField(param) : plainField(param);
        this.fields.set(param.name, field);
        box.append(field.node);
      }
    this.multipath = params.find((param) => param.name === MULTIPATH);
    this.chosen = new Set(this.multipath?.value);
    this.first = Object.fromEntries([...this.fields].map(([name, field]) => [name, text(field.value())]));
    this.firstUsers = this.users();
    this.firstMultipath = this.multipathUsers();
    box.addEventListener("change", () => this.showMultipath());
    this.showMultipath();
  }

  // The users that the lists of the form name; empty if the topology makes its users itself.
  users() {
    const of = (name) => this.fields.get(name)?.value() ?? [];
    const listed = Array.isArray(of("users")) ? of("users").map((user) => user.id) : [];
    return [...listed, ...(listed.length ? of("wired") : [])];
  }

  multipathUsers() {
    return this.users().filter((user) => this.chosen.has(user));
  }

  showMultipath() {
    if (!this.multipath) return;
    const listed = (this.fields.get("users")?.value() ?? []).map((user) => user.id);
    this.multipathBox.parentElement.hidden = false;
    this.multipathBox.replaceChildren(
      ...listed.map((user) => {
        const box = element("input", { type: "checkbox", value: user, checked: this.chosen.has(user) });
        box.addEventListener("change", () => this.chosen[box.checked ? "add" : "delete"](user));
        return element("label", {}, box, ` ${user}`);
      }),
    );
  }

  // What differs from the scenario, as settings such as {"topology.k": 6}.
  settings() {
    const found = {};
    for (const [name, field] of this.fields)
      if (text(field.value()) !== this.first[name]) found[`topology.${name}`] = field.value();
    const multipath = this.multipathUsers();
    if (text(multipath) !== text(this.firstMultipath)) found["topology.multipath"] = multipath;
    return found;
  }

  hasOtherUsers() {
    return text(this.users()) !== text(this.firstUsers);
  }

  // Entries of traffic without those of users that are gone; a new user without any has those of the
  // last one.
  trafficOf(entries) {
    const users = this.users();
    if (!this.hasOtherUsers()) return entries;
    const last = entries.at(-1)?.user;
    const isServed = (user) => entries.some((flow) => [user, ALL].includes(flow.user));
    const added = users.filter((user) => !this.firstUsers.includes(user) && !isServed(user));
    return [
      ...entries.filter((flow) => [...users, ALL].includes(flow.user)),
      ...added.flatMap((user) =>
        entries.filter((flow) => flow.user === last).map((flow) => ({ ...flow, user })),
      ),
    ];
  }
}

const text = (value) => JSON.stringify(value);

function labelled(param, id, ...content) {
  return element(
    "div",
    { class: "field" },
    element("label", { for: id }, words(param.name, param.unit)),
    element("span", { class: "unit-box" }, ...content),
  );
}

function plainField(param) {
  const id = `topology-${param.name}`;
  const field = input(id, param, param.value);
  const node = labelled(param, id, field, element("span", {}, param.unit));
  node.append(element("p", { class: "help", id: `${id}-help` }, bounds(param)));
  return { node, value: () => typed(field) };
}

function listField(param) {
  return param.items === "object" ? tableField(param) : wordsField(param);
}

// A list of numbers or names in one field, separated by commas.
function wordsField(param) {
  const id = `topology-${param.name}`;
  const field = element("input", { id, value: param.value.join(", "), "aria-describedby": `${id}-help` });
  const node = labelled(param, id, field, element("span", {}, param.unit));
  node.append(element("p", { class: "help", id: `${id}-help` }, "Separated by commas."));
  const parts = () => field.value.split(",").map((part) => part.trim()).filter(Boolean);
  const number = (part) => (Number.isNaN(Number(part)) ? part : Number(part));
  return { node, value: () => (param.items === "number" ? parts().map(number) : parts()) };
}

function tableField(param) {
  const body = element("tbody");
  const row = (entry) => tableRow(param, entry, body);
  for (const entry of param.value) body.append(row(entry));
  const add = element("button", { type: "button" }, `Add to ${words(param.name)}`);
  add.addEventListener("click", () => {
    const entries = [...body.rows].map(entryOf);
    body.append(row({ ...entries.at(-1), ...nextId(entries) }));
    changed(body);
  });
  const heads = param.fields.map((each) =>
    element(
      "th",
      { title: each.unit || null },
      words(each.name, each.unit),
      each.unit.length > LONGEST_UNIT ? null : element("small", {}, ` ${each.unit}`),
    ),
  );
  const table = element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...heads, element("th", {}, ""))),
    body,
  );
  const node = element(
    "fieldset",
    { class: "field list", id: `topology-${param.name}` },
    element("legend", {}, words(param.name)),
    element("div", { class: "scroll" }, table),
    add,
  );
  return { node, value: () => [...body.rows].map(entryOf) };
}

function tableRow(param, entry, body) {
  const cells = param.fields.map((each) => {
    const label = `${words(each.name)} of ${words(param.name)}, row ${body.rows.length + 1}`;
    const value = each.name.split(".").reduce((part, key) => part?.[key], entry);
    return element("td", {}, input(null, each, value, { "aria-label": label }));
  });
  const remove = element("button", { type: "button", class: "quiet", "aria-label": "Remove this row" }, "×");
  const made = element("tr", {}, ...cells, element("td", {}, remove));
  notDrawn.set(made, Object.fromEntries(Object.entries(entry).filter(([, value]) => isObject(value))));
  remove.addEventListener("click", () => {
    made.remove();
    changed(body);
  });
  return made;
}

// Of each row, the keys that are objects: they have no field of their own, and stay as they are.
const notDrawn = new WeakMap();
const isObject = (value) => typeof value === "object" && value !== null;

// An entry of a list, without its empty fields. A field such as queue.kind is inside an object.
function entryOf(row) {
  const entry = structuredClone(notDrawn.get(row));
  for (const field of row.querySelectorAll("input, select")) {
    const value = typed(field);
    const [name, inner] = field.name.split(".");
    if (value === null || value === "") continue;
    if (inner) (entry[name] ??= {})[inner] = value;
    else entry[name] = value;
  }
  return entry;
}

// The id of one more entry: ue5 after ue4.
function nextId(entries) {
  const last = entries.at(-1)?.id;
  if (last === undefined) return {};
  const [, stem, digits] = /^(.*?)(\d*)$/.exec(last);
  let n = Number(digits || 1);
  const known = new Set(entries.map((entry) => entry.id));
  while (known.has(`${stem}${n}`)) n++;
  return { id: `${stem}${n}` };
}

const changed = (node) => node.dispatchEvent(new Event("change", { bubbles: true }));
