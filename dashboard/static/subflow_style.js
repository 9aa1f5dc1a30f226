// The line of a subflow, in the drawing and in charts, as in dashboard/palette.py.
const DASHES = ["solid", "dash", "dashdot", "longdash", "longdashdot"];

// From 1, which is solid. At access points, Tier 1 is solid: that is what the controller calls it
// now. Without access points, it is the first subflow of each connection.
export function styleOf(name, frame) {
  const number = Math.max(1, Number(name.split("/").at(-1)) || 1);
  if (!Object.keys(frame.ap ?? {}).length) return Math.min(number, DASHES.length);
  return (frame.sf[name].tier ?? 1) === 1 ? 1 : Math.min(Math.max(2, number), DASHES.length);
}

export const dashOf = (name, frame) => DASHES[styleOf(name, frame) - 1];
