// What distinguishes runs in lists, in words.

const LETTERS = 6; // of the digest of all settings

// The settings of a run; `run` is the run of the page, whose scenario is not named. `more` is what
// `differing` found.
export function settingsOf({ id, scenario, strategy, cc, seed, duration_s, changed }, run, more = new Map()) {
  const parts = [
    scenario === run.scenario ? "" : scenario,
    strategy,
    `seed ${seed ?? "…"}`,
    ...(more.get(id) ?? []),
    cc,
    duration_s ? `${duration_s} s` : "",
    changed,
  ];
  return parts.filter(Boolean).join(", ");
}

// For each run the settings in which runs of its scenario and strategy differ, by id: parameters of
// the strategy by name, other keys of the scenario by the digest of all settings.
export function differing(docs) {
  const found = new Map();
  for (const alike of groups(docs, ({ scenario, strategy }) => [scenario, strategy])) {
    const names = new Set(alike.flatMap(({ params }) => Object.keys(params ?? {})));
    const varied = [...names].filter((name) => kinds(alike, ({ params }) => params?.[name]) > 1);
    for (const doc of alike)
      found.set(doc.id, varied.filter((name) => doc.params?.[name] !== undefined).map((name) => `${name} ${doc.params[name]}`));
  }
  const shown = (doc) => [doc.scenario, doc.engine, doc.rate_scale, settingsOf(doc, {}, found)];
  for (const alike of groups(docs, shown))
    if (kinds(alike, ({ experiment }) => experiment) > 1)
      for (const { id, experiment } of alike)
        found.get(id).push(`other settings (${String(experiment ?? "unknown").slice(0, LETTERS)})`);
  return found;
}

const groups = (docs, key) => [...Map.groupBy(docs, (doc) => JSON.stringify(key(doc))).values()];
const kinds = (docs, value) => new Set(docs.map((doc) => JSON.stringify(value(doc)))).size;
