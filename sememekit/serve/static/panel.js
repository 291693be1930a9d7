// The panel beside the view: a sememe with its words, its count and its neighbours, or a word with its annotation.
import { button, chips, el, titleOf, wordButton } from "./parts.js";
import { say } from "./say.js";
import { ask } from "./server.js";
import { info, state, writeLink } from "./state.js";

const panel = () => document.getElementById("panel");
let opener = null;

export function closePanel() {
  panel().hidden = true;
  opener?.isConnected && opener.focus();
  opener = null;
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel().hidden) closePanel(); });

export async function openPanel(what, from) {
  const inside = panel().contains(from);
  if (!inside) opener = from;
  const changes = info(what.run).overlays ? state.changes : [];
  let parts;
  try {
    const { result } = await ask(what.word === undefined ? "sememe" : "word", { ...what, changes });
    parts = what.word === undefined ? ofSememe(result, what.run) : ofWord(result, what.run);
  } catch (error) {
    parts = [el("p", { class: "problem" }, error.message)];
  }
  const title = el("h2", { tabindex: "-1" }, what.word ?? what.sememe);
  panel().setAttribute("aria-label", what.word ?? what.sememe);
  panel().replaceChildren(el("div", { class: "head" }, title, button(say("close"), closePanel)), ...parts);
  panel().hidden = false;
  panel().scrollTop = 0;
  title.focus();
}

const pairs = (...rows) => el("dl", { class: "pairs" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

function ofSememe(one, run) {
  const words = new Map(one.words.map((item) => [item.word, item]));
  return [
    pairs([say("count"), one.count.toLocaleString("en")], [say("words"), one.num_words.toLocaleString("en")]),
    el("h3", {}, say("wordsWith")),
    el("p", { class: "heat" }, [...words.keys()].map((word) => [wordButton(word, run), "  "])),
    el("h3", {}, say("neighbours")),
    el("p", {}, chips(one.neighbours.map((item) => item.name), run)),
  ];
}

function ofWord(one, run) {
  const edit = () => {
    state.word = one.word;
    writeLink();
    document.dispatchEvent(new CustomEvent("open-view", { detail: "annotation" }));
  };
  return [
    pairs([say("count"), one.count.toLocaleString("en")], [say("source"), one.source]),
    one.annotated ? null : el("p", { class: "faint" }, say("notAnnotated")),
    el("h3", {}, say("senses")),
    ...one.senses.map((sense) => el("div", { class: "sense-line" }, el("span", { class: "faint small" }, `${sense.sense}  ${titleOf(sense)} `), chips(sense.sememes, run))),
    info(run).overlays ? el("div", { class: "row" }, button(say("edit"), edit)) : null,
  ].filter(Boolean);
}
