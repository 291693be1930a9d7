// Headlines and dialogue: a source, the text that the model writes for it, and the other texts that its search found.
import { barsPicture, tokensPicture } from "./draw.js";
import { button, card, columnHead, el, problem, remarksOf, sememeChip, senseLines, shareOf, table, textInput } from "./parts.js";
import { number, percent, say } from "./say.js";
import { ask, latest, stream } from "./server.js";
import { state, writeLink } from "./state.js";

const BEST = 5; // texts that are shown

async function found(run, prompt) {
  let report;
  await stream("generate", { run, prompt, num_best: BEST }, (event) => {
    if (event.error) throw new Error(event.error);
    report = event.report ?? report;
  });
  return [report.best, ...report.others];
}

export function writingView(place, runs) {
  const columns = runs.map(() => el("section", {}));
  const draw = latest(async (text) => {
    if (!text.trim()) return columns.forEach((column) => column.replaceChildren());
    try {
      const answers = await Promise.all(runs.map(async (run) => [await ask("explain", { run, text }), await found(run, text)]));
      problem(null);
      answers.forEach(([answer, texts], index) => drawColumn(columns[index], answer, texts, runs[index], runs.length > 1));
    } catch (error) {
      columns.forEach((column) => column.replaceChildren());
      problem(error);
    }
  });
  const input = textInput(say("yourSource"), state.source, (value) => { state.source = value; writeLink(); draw(value); }, { id: "source", rows: 4 });
  place.replaceChildren(el("p", { class: "lead" }, say("writingLead")), input, el("div", { class: `columns ${runs.length > 1 ? "two" : ""}` }, columns));
  draw(state.source);
}

function drawColumn(column, answer, texts, run, two) {
  const { words, source, nats } = answer.result, detail = el("div", { "aria-live": "polite" });
  const written = el("p", { class: "heat" }, words.map((word) => button(word.word, (event) => {
    written.querySelectorAll("[aria-pressed=true]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    event.target.setAttribute("aria-pressed", "true");
    drawWord(detail, word, source, run);
  }, { class: "token", "--heat": `${100 * (1 - word.probability)}%`, "aria-pressed": "false", "aria-label": `${word.word}, ${percent(word.probability)}` })));
  column.replaceChildren(...[columnHead(run, two), ...remarksOf(answer), el("div", { class: "split" }, el("div", {}, [
    card(say("written"), words.length ? [written, el("p", { class: "remark" }, `${number(nats)} ${say("nats")}`)] : el("p", { class: "faint" }, say("writtenNothing")), {
      name: `written-${run}`,
      rows: () => [["word", "probability", ...source], ...words.map((word) => [word.word, word.probability, ...word.attention])],
      draw: () => tokensPicture(`${run}: ${number(nats)} ${say("nats")}`, [words.map((word) => [word.word, 1 - word.probability])]),
    }),
    card(say("alternatives_"), table([say("written"), say("nats")], texts.map((one) => [one.text || "–", number(one.nats)]), { numbers: [1] }), {
      name: `texts-${run}`, rows: () => [["text", "score", "nats", "ended"], ...texts.map((one) => [one.text, one.score, one.nats, String(one.ended)])],
      draw: () => barsPicture(say("nats"), texts.map((one) => [one.text, one.nats, number(one.nats)])),
    }),
  ]), detail)].filter(Boolean));
}

// A word of the text: where in the source the attention lay, and the sememes that were expected there.
function drawWord(place, word, source, run) {
  const most = Math.max(...word.attention, 1e-9);
  place.replaceChildren(...[el("h2", {}, word.word, " ", el("span", { class: "faint small" }, percent(word.probability))),
    el("h3", {}, say("lookedAt")), el("p", { class: "heat" }, source.slice(0, word.attention.length).map((one, at) => el("span", { class: "token",
      "--heat": `${(100 * word.attention[at]) / most}%`, "--tint": "var(--cool)", title: percent(word.attention[at]) }, one))),
    word.senses.length ? [el("h3", {}, say("senses")), ...senseLines(word.senses, run)] : "",
    word.expected.length ? [el("h3", {}, say("raisedSememes")), table([say("sememe"), say("probability")], word.expected.map((one) =>
      [el("ul", { class: "chips" }, sememeChip(one.name, run)), shareOf(one.mass, { of: word.expected[0].mass })]))] : ""].flat());
}
