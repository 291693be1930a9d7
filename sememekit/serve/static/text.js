// A text as a heat map of surprisal; a token opens its senses in the sentence and what was expected instead.
import { tokensPicture } from "./draw.js";
import { asking, button, card, columnHead, el, firstOf, lastOf, remarksOf, senseLines, shareOf, table, textInput, wordButton } from "./parts.js";
import { number, percent, say } from "./say.js";
import { ask } from "./server.js";
import { info, state, writeLink } from "./state.js";

const MOST = 12; // nats of the strongest colour

export function textView(place, runs) {
  state.text ||= state.context || info(runs[0]).start;
  const columns = runs.map(() => el("section", {}));
  const draw = asking("score", runs, columns, drawColumn);
  const input = textInput(say("yourText"), state.text, (value) => { state.text = value; writeLink(); draw(value); }, { id: "text", rows: 3 });
  const legend = el("p", { class: "legend" }, say("expected"), el("i", { "aria-hidden": "true" }), say("surprising"));
  place.replaceChildren(el("p", { class: "lead" }, say("textLead")), input, legend, el("div", { class: `columns ${runs.length > 1 ? "two" : ""}` }, columns));
  draw(state.text);
}

function linesOf(tokens) {
  const lines = new Map();
  for (const token of tokens) lines.set(token.sentence, [...(lines.get(token.sentence) ?? []), token]);
  return [...lines.values()];
}

function drawColumn(column, answer, run, two) {
  const { tokens, perplexity } = answer.result;
  const lines = linesOf(tokens), detail = el("div", { "aria-live": "polite" });
  const strength = (token) => Math.min((token.nats ?? 0) / MOST, 1);
  const heat = el("div", { class: "heat" }, lines.map((line) => el("p", {}, line.map((token, at) => button(token.token, (event) => {
    heat.querySelectorAll("[aria-pressed=true]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    event.target.setAttribute("aria-pressed", "true");
    drawToken(detail, line, at, run);
  }, {
    class: token.token === token.read_as || token.read_as !== "<unk>" ? "token" : "token unknown", "--heat": `${100 * strength(token)}%`, "aria-pressed": "false",
    "aria-label": token.nats === null ? token.token : `${token.token}, ${number(token.nats)} ${say("nats")}`,
    title: token.nats === null ? say("nothingBefore") : `${number(token.nats)} ${say("nats")}, ${percent(Math.exp(-token.nats))}`,
  })))));
  heat.addEventListener("keydown", (event) => {
    const all = [...heat.querySelectorAll(".token")], next = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (next) all[all.indexOf(event.target) + next]?.focus();
  });
  const predicted = tokens.filter((token) => token.nats !== null).length;
  const figures = el("dl", { class: "figures" }, [[say("perplexity"), number(perplexity)], [say("words"), predicted.toLocaleString("en")]]
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  column.replaceChildren(...[columnHead(run, two), ...remarksOf(answer), el("div", { class: "split" }, card(say("surprisal"), [figures, heat], {
    name: `surprisal-${run}`,
    rows: () => [["sentence", "position", "token", "read_as", "nats"], ...tokens.map((one) => [one.sentence, one.position, one.token, one.read_as, one.nats])],
    draw: () => tokensPicture(`${run}: ${say("perplexity")} ${number(perplexity)}`, lines.map((line) => line.map((token) => [token.token, strength(token)]))),
  }), detail)].filter(Boolean));
}

async function drawToken(place, line, at, run) {
  const token = line[at], context = line.slice(0, at).map((one) => one.token).join(" ");
  if (!context) return place.replaceChildren(el("p", { class: "faint" }, say("nothingBefore")));
  const known = token.read_as !== "<unk>" && !(at === line.length - 1 && token.read_as === "<eos>");
  const right = line.slice(at + 1).filter((one) => one.read_as !== "<eos>").map((one) => one.token).join(" ");
  try {
    const { result } = await ask("explain", { run, text: lastOf(context), top: 6, ...(known ? { word: token.read_as, right: firstOf(right) } : {}) });
    const most = result.words[0].probability, asked = result.asked;
    place.replaceChildren(...[
      el("h2", {}, token.token, " ", el("span", { class: "faint small" }, `${number(token.nats)} ${say("nats")}, ${percent(Math.exp(-token.nats))}`,
        asked ? `, ${say("rank")} ${asked.rank.toLocaleString("en")}` : "")),
      asked?.tags.length ? [el("h3", {}, say("sensesHere")), ...senseLines(asked.tags, run),
        asked.tags.length > 1 ? el("p", { class: "remark" }, say("evenMark")) : ""] : info(run).decoder.includes("sdlm") ? "" : el("p", { class: "faint" }, say("noSenses")),
      el("h3", {}, say("insteadOf")),
      table([say("word"), say("probability")], result.words.map((one) => [wordButton(one.word, run), shareOf(one.probability, { of: most })])),
    ].flat());
  } catch (error) {
    place.replaceChildren(el("p", { class: "problem" }, error.message));
  }
}
