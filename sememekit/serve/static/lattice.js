// Raw characters as a lattice of words with their probabilities; a cut shows what else may end or go across there.
import { shape, sheet, widthOf } from "./draw.js";
import { asking, card, columnHead, el, remarksOf, shareOf, table, textInput } from "./parts.js";
import { percent, say } from "./say.js";
import { state, writeLink } from "./state.js";

export function latticeView(place, runs) {
  const columns = runs.map(() => el("section", {}));
  const draw = asking("explain", runs, columns, drawColumn);
  const input = textInput(say("yourRaw"), state.raw, (value) => { state.raw = value; writeLink(); draw(value); }, { id: "raw" });
  place.replaceChildren(el("p", { class: "lead" }, say("latticeLead")), input, el("div", { class: "columns" }, columns));
  draw(state.raw);
}

function drawColumn(column, answer, run, two) {
  column.replaceChildren(...[columnHead(run, two), ...remarksOf(answer), ...answer.result.sentences.map((sentence, at) => {
    const detail = el("div", { "aria-live": "polite" });
    const cuts = (place) => drawCut(detail, sentence, place);
    return card(`${say("bestPath")}: ${sentence.viterbi.join(" ")}`, [el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": say("lattice") }, picture(sentence, cuts)), detail], {
      name: `lattice-${run}-${at + 1}`,
      draw: () => picture(sentence),
      rows: () => [["begin", "end", "word", "probability", "listed", "best"], ...sentence.edges.map((one) => [one.begin, one.end, one.text, one.probability, one.listed, one.best])],
    });
  })].filter(Boolean));
}

// Tokens on a line, words as arcs above it; `cuts` is called with the place of a cut that is chosen.
function picture({ tokens, edges }, cuts) {
  const step = Math.max(46, ...tokens.map((token) => widthOf(token.text, 20) + 22));
  const longest = Math.max(1, ...edges.map((edge) => edge.end - edge.begin));
  const base = 44 + longest * 34, x = (place) => 24 + place * step, width = x(tokens.length) + 24;
  const strongest = new Map();
  for (const edge of edges) {
    const key = `${edge.begin}-${edge.end}`, one = strongest.get(key);
    strongest.set(key, { ...edge, best: edge.best || Boolean(one?.best), probability: Math.min(1, edge.probability + (one?.probability ?? 0)) });
  }
  const ink = cuts ? "var(--ink)" : "#1c2024", faint = cuts ? "var(--faint)" : "#5b636b", first = cuts ? "var(--first)" : "#0b62c4";
  const arcs = [...strongest.values()].sort((one, other) => one.probability - other.probability).map((edge) => {
    const [from, to] = [x(edge.begin), x(edge.end)], height = 20 + (edge.end - edge.begin - 1) * 34, top = base - 24 - height;
    const label = `${percent(edge.probability)}`, strong = edge.best || edge.probability >= 0.1;
    const path = `M ${from} ${base - 18} C ${from + 6} ${top}, ${to - 6} ${top}, ${to} ${base - 18}`;
    return shape("g", {}, shape("title", {}, `${edge.text} ${label}`),
      shape("path", { d: path, fill: "none", stroke: edge.best ? first : faint, "stroke-width": 0.8 + 4.2 * edge.probability, "stroke-opacity": 0.35 + 0.65 * edge.probability }),
      strong ? shape("text", { x: (from + to) / 2, y: top + (base - 18 - top) * 0.25 - 6, "text-anchor": "middle", "font-size": 11, fill: faint, stroke: cuts ? "var(--paper)" : "#ffffff", "stroke-width": 3, "paint-order": "stroke" }, label) : "");
  });
  const words = tokens.map((token, place) => shape("text", { x: x(place) + step / 2, y: base + 10, "text-anchor": "middle", "font-size": 20, fill: ink }, token.text));
  const dots = tokens.slice(0, -1).map((token, place) => {
    const at = place + 1, told = `${say("cutAfter")} ${token.text}: ${percent(token.boundary)}`;
    const dot = [shape("title", {}, told), shape("circle", { cx: x(at), cy: base + 2, r: 12, fill: "transparent" }),
      shape("circle", { cx: x(at), cy: base + 2, r: 2.5 + 4.5 * token.boundary, fill: token.boundary >= 0.5 ? first : cuts ? "var(--field)" : "#868e96" })];
    if (!cuts) return shape("g", {}, dot);
    const node = shape("g", { class: "cut", role: "button", tabindex: "0", "aria-label": told }, dot);
    node.addEventListener("click", () => cuts(at));
    node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); cuts(at); } });
    return node;
  });
  if (!cuts) return sheet(width, base + 30, arcs, words, dots);
  return shape("svg", { class: "lattice", width, height: base + 30, viewBox: `0 0 ${width} ${base + 30}` }, arcs, words, dots);
}

function drawCut(place, { tokens, edges }, at) {
  const near = edges.filter((edge) => edge.end === at || (edge.begin < at && edge.end > at)).sort((one, other) => other.probability - one.probability);
  const rows = near.map((edge) => [edge.text + (edge.copy_number > 1 ? ` (${edge.copy_number})` : ""), say(edge.end === at ? "ends" : "crosses"), shareOf(edge.probability)]);
  place.replaceChildren(el("h3", {}, `${say("alternatives")}: ${tokens[at - 1].text} | ${tokens[at].text}, ${percent(tokens[at - 1].boundary)}`),
    el("div", { class: "narrow" }, table([say("word"), say("cut"), say("probability")], rows)));
}
