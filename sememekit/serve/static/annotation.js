// The annotation of words: sememes switched on and off, what that does to probabilities and perplexity, and saving it.
import { barsPicture } from "./draw.js";
import { announce, button, card, chips, el, problem, shareOf, table, textInput, titleOf, wordButton } from "./parts.js";
import { number, percent, say } from "./say.js";
import { ask, latest } from "./server.js";
import { info, served, state, toggle, writeLink } from "./state.js";

export async function annotationView(place, [run]) {
  state.context ||= info(run).start;
  state.text ||= state.context;
  const tray = el("section", { class: "tray", "aria-labelledby": "changes-head" }), words = el("div"), effects = el("div", { "aria-live": "polite" });
  const open = el("div"), all = el("datalist", { id: "sememes" }, info(run).sememes.map((name) => el("option", { value: name })));
  const refresh = () => {
    writeLink();
    drawTray(tray, run, refresh);
    showWord();
    measure();
  };
  const showWord = latest(() => drawWord(words, run, refresh));
  const measure = latest(() => drawEffects(effects, run));
  const word = el("input", { type: "text", id: "word", value: state.word, autocomplete: "off", spellcheck: "false" });
  const look = el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); state.word = word.value.trim(); writeLink(); showWord(); } },
    el("label", { class: "field" }, say("lookUp"), word), el("button", { type: "submit" }, say("show")));
  const set = (key) => (value) => { state[key] = value; writeLink(); measure(); };
  place.replaceChildren(el("p", { class: "lead" }, say("annotationLead")), all, tray,
    el("div", { class: "columns" },
      el("div", {}, look, words, open),
      el("div", {}, textInput(say("yourContext"), state.context, set("context"), { id: "context", rows: 1 }),
        el("div", { class: "row" }, textInput(say("measured"), state.text, set("text"), { id: "text", rows: 3 })), effects)));
  refresh();
  try {
    await drawUnannotated(open, run, refresh);
  } catch (error) {
    problem(error);
  }
}

const signed = (change) => [change.add.map((name) => el("span", { class: "plus" }, ` +${name}`)), change.remove.map((name) => el("span", { class: "minus" }, ` −${name}`))];

function drawTray(tray, run, refresh) {
  const saved = el("p", { class: "remark", role: "status" });
  const drop = (kept) => { state.changes = kept; refresh(); };
  const save = async () => {
    try {
      const { result } = await ask("save", { run, changes: state.changes });
      saved.textContent = `${say("savedIn")} ${result.folder}: ${result.files.join(", ")}`;
    } catch (error) {
      saved.textContent = error.message;
    }
  };
  tray.replaceChildren(el("h2", { id: "changes-head" }, say("changes")), state.changes.length ? el("ul", {}, state.changes.map((change) => el("li", {},
    el("strong", {}, change.sense), el("span", {}, signed(change)),
    button(say("undo"), () => drop(state.changes.filter((one) => one !== change)), { class: "plain small faint", "aria-label": `${say("undo")} ${change.sense}` }))))
    : el("p", { class: "faint small" }, say("noChanges")),
  state.changes.length ? el("div", { class: "row" }, served.saves ? button(say("save"), save, { class: "main" }) : null,
    button(say("undoAll"), () => drop([]))) : "", saved);
}

async function drawWord(place, run, refresh) {
  if (!state.word) return place.replaceChildren();
  let now, before;
  try {
    before = (await ask("word", { run, word: state.word })).result;
    now = state.changes.length ? (await ask("word", { run, word: state.word, changes: state.changes })).result : before;
  } catch (error) {
    return place.replaceChildren(el("p", { class: "problem" }, error.message));
  }
  const note = el("p", { class: "remark", role: "status" });
  const sense = (one) => {
    const key = `${now.word}#${one.sense}`, had = before.senses[one.sense - 1].sememes.filter((name) => now.annotated || name !== "<unk>");
    const every = [...new Set([...had, ...one.sememes])].filter((name) => before.annotated || name !== "<unk>");
    const flip = (name) => {
      if (one.sememes.includes(name) && one.sememes.length === 1) { note.textContent = say("addFirst"); return; }
      toggle(key, name, one.sememes.includes(name));
      refresh();
    };
    const input = el("input", { type: "text", list: "sememes", id: `add-${one.sense}`, autocomplete: "off", spellcheck: "false" });
    const add = (event) => { event.preventDefault(); const name = input.value.trim(); if (name && !one.sememes.includes(name)) { toggle(key, name, false); refresh(); } };
    return el("fieldset", {}, el("legend", {}, key), el("span", { class: "faint small" }, titleOf({ label: one.label, sememes: one.sememes })),
      el("p", {}, el("ul", { class: "chips" }, every.map((name) => el("li", {}, button(name, () => flip(name), { class: "chip", "aria-pressed": String(one.sememes.includes(name)) }))))),
      el("form", { class: "row", onsubmit: add }, el("label", { class: "field" }, say("addSememe"), input), el("button", { type: "submit" }, say("add"))));
  };
  place.replaceChildren(el("section", { class: "card" }, el("h2", {}, now.word, " ", el("span", { class: "faint small" }, before.annotated ? now.source : say("notAnnotated"))),
    now.senses.map(sense), el("p", { class: "faint small" }, say("oneSense")), note));
}

async function drawEffects(place, run) {
  if (!state.changes.length) return place.replaceChildren();
  const changes = state.changes;
  try {
    const parts = [];
    if (state.text.trim()) {
      const { result } = await ask("score", { run, text: state.text, changes });
      parts.push(el("dl", { class: "figures" }, [[`${say("perplexity")}, ${say("before")}`, result.perplexity.toPrecision(5)], [say("after"), result.perplexity_overlay.toPrecision(5)]]
        .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
      announce(`${say("perplexity")}: ${number(result.perplexity)}, ${number(result.perplexity_overlay)}`);
    }
    let rows = null, words = [];
    if (state.context.trim()) {
      const { result, remarks } = await ask("explain", { run, text: state.context, changes });
      words = result.changed_words;
      const most = Math.max(...words.flatMap((one) => [one.before.probability, one.after.probability]));
      parts.push(el("h3", {}, say("changedWords")), table([say("word"), say("before"), say("after"), say("rank")], words.map((one) => [wordButton(one.after.word, run),
        shareOf(one.before.probability, { of: most, kind: "sense" }), shareOf(one.after.probability, { of: most, kind: "sense" }), `${one.rank_before} → ${one.rank_after}`]), { numbers: [3] }));
      parts.push(...remarks.map((text) => el("p", { class: "remark" }, text)));
      rows = () => [["word", "before", "after", "rank before", "rank after"], ...words.map((one) => [one.after.word, one.before.probability, one.after.probability, one.rank_before, one.rank_after])];
    }
    problem(null);
    const draw = words.length ? () => barsPicture(`${state.context} …`, words.flatMap((one) => [["before", one.before], ["after", one.after]].map(([when, side]) =>
      [`${side.word} (${say(when)})`, side.probability, percent(side.probability)]))) : null;
    place.replaceChildren(card(say("effect"), parts, { rows, draw, name: `changes-${run}` }));
  } catch (error) {
    place.replaceChildren(el("p", { class: "problem" }, error.message));
  }
}

async function drawUnannotated(place, run, refresh) {
  if (!info(run).unannotated) return place.replaceChildren(el("p", { class: "faint small" }, say("allAnnotated")));
  const { result } = await ask("unannotated", { run, top: 20 });
  const known = (one) => one.sememes.filter((item) => !one.by_frequency && item.score >= 0.5 && info(run).sememes.includes(item.sememe)).map((item) => item.sememe);
  const accept = (word, sememes) => {
    state.changes = [...state.changes.filter((one) => one.sense !== `${word}#1`), { sense: `${word}#1`, add: sememes, remove: [] }];
    state.word = word;
    document.getElementById("word").value = word;
    refresh();
  };
  const rows = result.words.map((one) => [one.word, one.count.toLocaleString("en"),
    known(one).length ? [chips(known(one), run), " ", button(say("accept"), () => accept(one.word, known(one)), { "aria-label": `${say("accept")}: ${one.word}`, title: one.sememes[0].evidence.join("; ") })] : "–"]);
  place.replaceChildren(card(`${say("unannotated")} (${result.total.toLocaleString("en")})`, table([say("word"), say("count"), say("sememes")], rows, { stacked: true }), {
    name: `unannotated-${run}`,
    rows: () => [["word", "count", "sememes", "evidence"], ...result.words.map((one) => [one.word, one.count, known(one).join(" "), one.sememes[0]?.evidence.join("; ")])],
  }));
}
