// Endpoints and limits on the form that starts a run: what each interface of a host is for.
import { element } from "./app.js";
import { bounds, input, option, typed } from "./fields.js";

const MEANING = {
  subflow: "opens a subflow",
  "subflow fullmesh": "opens one to each address of the server",
  backup: "opens a backup",
  "backup fullmesh": "opens a backup to each address of the server",
  signal: "is announced",
  "signal backup": "is announced as a backup",
};

const LIMITS = { subflows: "Subflows beyond the first", add_addr_accepted: "Announced addresses used" };

export class EndpointsForm {
  constructor({ box, endpoints, limits }) {
    this.selects = endpoints.map((each) => [each, choice(each)]);
    this.limits = limits.map((each) => {
      const id = `limit-${each.name}`;
      return [each, input(id, { ...each, type: "integer" }, each.value), id];
    });
    const rows = this.selects.map(([each, node]) =>
      element("div", { class: "field" }, element("label", { for: node.id }, `${each.host} ${each.interface} (${each.link})`), node),
    );
    const fields = this.limits.map(([each, node, id]) =>
      element(
        "div",
        { class: "field" },
        element("label", { for: id }, LIMITS[each.name]),
        node,
        element("p", { class: "help", id: `${id}-help` }, bounds(each) + (each.default === null ? " Empty: no limit." : "")),
      ),
    );
    box.replaceChildren(...rows, element("div", { class: "row" }, ...fields));
  }

  // What differs from the scenario. The list of endpoints is always whole, as a file has it.
  settings() {
    const found = {};
    if (this.selects.some(([each, node]) => node.value !== each.flags))
      found["multipath.endpoints"] = this.selects
        .filter(([each, node]) => node.value !== each.usual)
        .map(([{ host, interface: name }, node]) => ({ host, interface: name, flags: node.value.split(" ").filter(Boolean) }));
    for (const [each, node] of this.limits)
      if (typed(node) !== each.value) found[`multipath.limits.${each.name}`] = typed(node) ?? each.default;
    return found;
  }
}

function choice(each) {
  const none = each.usual === "" ? "is not announced" : "opens no subflow";
  const made = (flags) => option(flags, MEANING[flags] ?? none, flags === each.flags);
  return element("select", { id: `endpoint-${each.host}-${each.interface}` }, ...each.choices.map(made));
}
