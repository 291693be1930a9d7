// The page: which view is open, with which models, in which language.
import { annotationView } from "./annotation.js";
import { classifierView } from "./classifier.js";
import { contextView } from "./context.js";
import { latticeView } from "./lattice.js";
import { closePanel } from "./panel.js";
import { announce, el, problem } from "./parts.js";
import { say, setLanguage } from "./say.js";
import { get } from "./server.js";
import { fitting, readLink, served, shown, state, writeLink } from "./state.js";
import { textView } from "./text.js";
import { writingView } from "./writing.js";

const VIEWS = { context: contextView, text: textView, annotation: annotationView, lattice: latticeView, classifier: classifierView, writing: writingView };
const NEEDS = { context: "needsWords", text: "needsWords", annotation: "noOverlay", lattice: "needsLattice", classifier: "needsClassifier", writing: "needsWriting" };
const byId = (id) => document.getElementById(id);

function drawTabs() {
  byId("tabs").setAttribute("aria-label", "sememekit");
  byId("tabs").replaceChildren(...Object.keys(VIEWS).map((name) => el("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === state.view), "aria-controls": "view",
    tabindex: name === state.view ? "0" : "-1", onclick: () => open(name),
  }, say(name))));
  byId("view").setAttribute("aria-labelledby", `tab-${state.view}`);
  byId("tabs").scrollLeft = byId(`tab-${state.view}`).offsetLeft - 40; // on a phone not all tabs are in sight
  document.title = `${say(state.view)} · sememekit`;
}

function drawModels() {
  const option = (name, chosen) => el("option", { value: name, selected: name === chosen }, name || say("none"));
  const [first, second] = shown();
  const fit = fitting().map((run) => run.name);
  byId("run").replaceChildren(...fit.map((name) => option(name, first)));
  byId("beside").replaceChildren(...["", ...fit.filter((name) => name !== first)].map((name) => option(name, second ?? "")));
  byId("beside").disabled = fit.length < 2 || state.view === "annotation";
  byId("run").disabled = !fit.length;
}

function draw() {
  drawTabs();
  drawModels();
  problem(null);
  const view = byId("view"), runs = shown();
  if (runs.length) VIEWS[state.view](view, runs);
  else view.replaceChildren(el("p", { class: "lead" }, state.view === "annotation" ? say("noOverlay") :
    [say("needs"), " ", el("code", {}, "sememekit serve RUN"), ": ", say(NEEDS[state.view])]));
}

function open(name) {
  if (!(name in VIEWS)) return;
  state.view = name;
  closePanel();
  writeLink(true);
  draw();
}
document.addEventListener("open-view", (event) => open(event.detail));

byId("tabs").addEventListener("keydown", (event) => {
  const names = Object.keys(VIEWS), place = names.indexOf(state.view);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: names.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  open(names[(next + names.length) % names.length]);
  byId(`tab-${state.view}`).focus();
});
byId("run").addEventListener("change", (event) => {
  state.run = event.target.value;
  state.changes = [];
  writeLink();
  closePanel();
  draw();
});
byId("beside").addEventListener("change", (event) => { state.beside = event.target.value; writeLink(); draw(); });
byId("lang").addEventListener("change", (event) => {
  state.lang = event.target.value;
  setLanguage(state.lang);
  writeLink();
  closePanel();
  draw();
});
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // no clipboard without https, or it was refused
    window.prompt(say("copy"), location.href);
    return;
  }
  byId("copy").textContent = say("copied");
  announce(say("copied"));
  setTimeout(() => { byId("copy").textContent = say("copy"); }, 2000);
});
byId("print").addEventListener("click", () => window.print());

function begin() {
  readLink();
  state.lang ||= navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
  if (!(state.view in VIEWS)) state.view = "context";
  byId("lang").value = state.lang;
  setLanguage(state.lang);
  draw();
}

addEventListener("popstate", begin);
try {
  Object.assign(served, (await get("runs")).result);
  begin();
} catch (error) {
  setLanguage(navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
  problem(error);
}
