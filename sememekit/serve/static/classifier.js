// A classifier: its label, which words and sememes moved it, and an attack that replaces words while one watches.
import { barsPicture, tokensPicture } from "./draw.js";
import { announce, button, card, columnHead, el, problem, remarksOf, sememeChip, shareOf, table, textInput, wordButton } from "./parts.js";
import { percent, say, signed } from "./say.js";
import { ask, latest, stream } from "./server.js";
import { info, served, state, writeLink } from "./state.js";

const textsOf = (run) => {
  const given = state.example.split("\t"), names = info(run).texts;
  return names.map((_, place) => given[place] ?? "");
};

export function classifierView(place, runs) {
  const names = info(runs[0]).texts;
  const columns = runs.map(() => ({ answer: el("div"), attack: el("div") }));
  const draw = latest(async () => {
    const texts = textsOf(runs[0]);
    if (!texts.every((text) => text.trim())) return columns.forEach((column) => column.answer.replaceChildren());
    try {
      const answers = await Promise.all(runs.map((run) => ask("explain", { run, text: textsOf(run)[0], others: textsOf(run).slice(1) })));
      problem(null);
      answers.forEach((answer, index) => drawColumn(columns[index].answer, answer, runs[index], runs.length > 1));
    } catch (error) {
      columns.forEach((column) => column.answer.replaceChildren());
      problem(error);
    }
  });
  const inputs = names.map((name, at) => textInput(names.length > 1 ? name : say("yourText"), textsOf(runs[0])[at], (value) => {
    const texts = textsOf(runs[0]);
    texts[at] = value.replaceAll("\t", " ");
    state.example = texts.join("\t");
    writeLink();
    draw();
  }, { id: `example-${at}` }));
  place.replaceChildren(el("p", { class: "lead" }, say("classifierLead")), ...inputs, el("div", { class: `columns ${runs.length > 1 ? "two" : ""}` },
    columns.map((column, index) => el("section", {}, attackForm(column.attack, runs[index]), column.attack, column.answer))));
  draw();
}

function drawColumn(column, answer, run, two) {
  const { labels, label, texts, sememes, no_sememes: none } = answer.result, detail = el("div", { "aria-live": "polite" });
  const most = Math.max(...texts.flatMap((text) => text.words.map((word) => Math.abs(word.effect ?? 0))), 1e-9);
  const effect = (value, of) => shareOf(Math.abs(value) / of, { kind: value < 0 ? "against" : "", shown: signed(value) });
  const showWord = (word) => detail.replaceChildren(el("h3", {}, wordButton(word.word, run), ` ${word.effect === null ? "" : signed(word.effect)}`),
    word.sememes.length ? table([say("sememe"), `${say("label")}: ${label}`], word.sememes.map((one) => [el("ul", { class: "chips" }, sememeChip(one.name, run)), effect(one.effect, Math.abs(word.sememes[0].effect) || 1)]))
      : el("p", { class: "faint" }, word.known ? "–" : say("notAnnotated")));
  const heat = texts.map((text) => el("p", { class: "heat" }, text.words.map((word) => button(word.word, () => showWord(word), {
    class: `token ${word.known ? "" : "unknown"}`, "--heat": `${(100 * Math.abs(word.effect ?? 0)) / most}%`, "--tint": (word.effect ?? 0) < 0 ? "var(--warm)" : "var(--cool)",
    "aria-label": word.effect === null ? word.word : `${word.word}, ${signed(word.effect)}`,
  }))));
  const ranked = Object.entries(labels);
  const left = [
    card(say("label"), table([say("label"), say("probability")], ranked.map(([name, value]) => [name === label ? el("strong", {}, name) : name, shareOf(value)])), {
      name: `labels-${run}`, rows: () => [["label", "probability"], ...ranked], draw: () => barsPicture(say("label"), ranked.map(([name, value]) => [name, value, percent(value)])),
    }),
    card(`${say("moved")}: ${label}`, [...heat, detail], {
      name: `words-${run}`,
      rows: () => [["text", "word", "read as", "effect"], ...texts.flatMap((text) => text.words.map((word) => [text.name, word.word, word.read_as, word.effect]))],
      draw: () => tokensPicture(`${label} ${percent(labels[label])}`, texts.map((text) => text.words.map((word) => [word.word, -(word.effect ?? 0) / most]))),
    }),
  ];
  const right = none ? el("p", { class: "faint small" }, none) : card(say("strong"), table([say("sememe"), say("word"), label], sememes.map((one) => [
    el("ul", { class: "chips" }, sememeChip(one.name, run)), wordButton(one.word, run), effect(one.effect, Math.abs(sememes[0].effect) || 1)]), { stacked: true }), {
    name: `sememes-${run}`, rows: () => [["sememe", "word", "place", "effect"], ...sememes.map((one) => [one.name, one.word, one.place, one.effect])],
    draw: () => barsPicture(label, sememes.map((one) => [`${one.name} (${one.word})`, one.effect, signed(one.effect)])),
  });
  column.replaceChildren(...[columnHead(run, two), ...remarksOf(answer), el("div", { class: "split" }, el("div", {}, left), right)].filter(Boolean));
}

function attackForm(place, run) {
  const search = el("select", { id: `search-${run}` }, ["greedy", "genetic", "pso", "random"].map((name) => el("option", { value: name }, name)));
  let stopping = null;
  const go = button(say("attack"), async () => {
    if (stopping) { stopping.abort(); return; }
    if (!textsOf(run).every((text) => text.trim())) return;
    stopping = new AbortController();
    go.textContent = say("stop");
    try {
      await liveAttack(place, run, search.value, stopping.signal);
    } catch (error) {
      if (error.name !== "AbortError") place.replaceChildren(el("p", { class: "problem" }, error.message));
    } finally {
      stopping = null;
      go.textContent = say("attack");
    }
  }, { class: "main" });
  return el("div", { class: "row" }, go, el("label", { class: "small faint" }, `${say("search")} `, search));
}

async function liveAttack(place, run, search, signal) {
  const live = el("div", { class: "live" }), told = el("p", { class: "faint small" }, say("wait")), texts = textsOf(run);
  place.replaceChildren(el("section", { class: "card" }, told, live));
  const draw = (fields) => live.replaceChildren(...fields.map((pieces) => el("p", {}, pieces.map((piece) => (piece.old === undefined ? piece.text
    : [piece.old ? el("del", {}, piece.old) : "", piece.text ? el("ins", { class: "changed" }, piece.text) : ""])))));
  await stream("attack", { run, texts, search }, (event) => {
    if (event.error) throw new Error(event.error);
    if (event.step) {
      draw(event.step.fields);
      told.textContent = `${event.step.queries.toLocaleString("en")} ${say("queries")}, ${percent(event.step.probability)}`;
    } else drawResult(place, live, told, run, event);
  }, signal);
}

function drawResult(place, live, told, run, { result }) {
  const won = result.outcome === "success";
  told.textContent = won ? `${say("success")} ${result.label} → ${result.adversarial_prediction}, ${result.queries.toLocaleString("en")} ${say("queries")}`
    : `${say("failed")} ${result.reason ?? ""} ${result.queries.toLocaleString("en")} ${say("queries")}`;
  announce(told.textContent);
  if (won) place.append(ratings(result, run));
}

function ratings(result, run) {
  const rating = (change, at) => {
    const told = el("span", { class: "faint small", role: "status" }), choice = (name) => el("label", { class: "small" }, el("input", { type: "checkbox", name }), " ", say(name));
    const [same, fluent] = [choice("same"), choice("fluent")];
    const send = async () => {
      try {
        const { result: answer } = await ask("rate", { run, text: result.fields.join("\n"), changed: result.adversarial.join("\n"), old: change.old, new: change.new,
          same_meaning: same.firstChild.checked, fluent: fluent.firstChild.checked });
        told.textContent = `${answer.ratings} ${say("ratings")} ${answer.file}`;
      } catch (error) {
        told.textContent = error.message;
      }
    };
    return el("div", { class: "row", role: "group", "aria-label": `${change.old} → ${change.new}`, "data-rating": at },
      el("span", {}, el("del", {}, change.old), " → ", el("strong", {}, change.new)), same, fluent, button(say("saveRating"), send), told);
  };
  const rows = () => [["word", "substitute", "text", "changed", "label", "became"], ...result.changes.map((one) => [one.old, one.new, result.fields.join(" / "), result.adversarial.join(" / "), result.label, result.adversarial_prediction])];
  return card(say("rate"), served.saves ? result.changes.map(rating) : result.changes.map((one) => el("p", {}, `${one.old} → ${one.new}`)), { rows, name: `attack-${run}` });
}
