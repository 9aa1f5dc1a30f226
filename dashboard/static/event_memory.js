// How many events a page keeps. A page that is open for hours keeps the latest ones of each kind; the
// page of a finished run keeps them all.
const MOST = 500; // of each kind

export function keep(events, event, live) {
  events.push(event);
  if (!live) return;
  const same = (each) => each.kind === event.kind;
  if (events.filter(same).length > MOST) events.splice(events.findIndex(same), 1);
}
