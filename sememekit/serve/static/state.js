// The state of the page. All of it stands in the link.
const DEFAULTS = { view: "context", run: "", beside: "", lang: "", context: "", text: "", raw: "去年美国贸易逆差增长", example: "", label: "", word: "", source: "" };
export const state = { ...DEFAULTS, changes: [] };

export function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [key, usual] of Object.entries(DEFAULTS)) state[key] = given.get(key) ?? usual;
  try {
    const changes = JSON.parse(given.get("changes") ?? "[]");
    const names = (list) => Array.isArray(list) && list.every((one) => typeof one === "string");
    state.changes = Array.isArray(changes) ? changes.filter((one) => typeof one?.sense === "string" && names(one.add) && names(one.remove)) : [];
  } catch {
    state.changes = [];
  }
}

export function writeLink(push = false) {
  const given = new URLSearchParams();
  for (const [key, usual] of Object.entries(DEFAULTS)) if (state[key] !== usual || key === "view") given.set(key, state[key]);
  if (state.changes.length) given.set("changes", JSON.stringify(state.changes));
  history[push ? "pushState" : "replaceState"](null, "", `#${given}`);
}

// Served runs, as GET /v1/runs tells them.
export const served = { runs: [], saves: false };
export const info = (name) => served.runs.find((run) => run.name === name);

const FITS = {
  context: (run) => run.kinds.includes("words"), text: (run) => run.kinds.includes("words"), annotation: (run) => run.overlays,
  lattice: (run) => run.kinds.includes("lattices"), classifier: (run) => run.kinds.includes("labels"),
  writing: (run) => run.kinds.includes("texts"),
};
export const fitting = (view = state.view) => served.runs.filter(FITS[view]);

// The runs that a view shows: the chosen one, or the first that fits, and the one beside it.
export function shown(view = state.view) {
  const fit = fitting(view).map((run) => run.name);
  const first = fit.includes(state.run) ? state.run : fit[0];
  return first === undefined ? [] : [first, ...(fit.includes(state.beside) && state.beside !== first ? [state.beside] : [])];
}

// Switch a sememe of a sense on or off: changes of a sense are kept as one.
export function toggle(sense, name, has) {
  let change = state.changes.find((one) => one.sense === sense);
  if (!change) state.changes.push(change = { sense, add: [], remove: [] });
  const [undone, done] = has ? [change.add, change.remove] : [change.remove, change.add];
  if (undone.includes(name)) undone.splice(undone.indexOf(name), 1);
  else if (!done.includes(name)) done.push(name);
  state.changes = state.changes.filter((one) => one.add.length || one.remove.length);
  writeLink();
}
