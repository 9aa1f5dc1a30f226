// What is selected on the page: a link, an access point, a user, a subflow or another node.
// Every part of the page listens to the event "select" of the document.
let chosen = null;

export const selected = () => chosen; // null or {kind, id}

export function choose(wanted) {
  if (chosen?.kind === wanted?.kind && chosen?.id === wanted?.id) return;
  chosen = wanted;
  document.dispatchEvent(new CustomEvent("select", { detail: chosen }));
}

// Select something; what is selected already is no longer selected.
export function toggle(kind, id) {
  choose(chosen?.kind === kind && chosen.id === id ? null : { kind, id });
}
