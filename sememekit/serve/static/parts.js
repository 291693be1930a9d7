// Parts that several views are made of. Text of models and users only ever becomes text nodes.
import { percent, say } from "./say.js";
import { openPanel } from "./panel.js";
import { ask, latest } from "./server.js";

export function el(name, attributes = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) node.style.setProperty(key, value);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...inside.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

export const button = (text, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, text);

export function announce(text) {
  document.getElementById("status").textContent = text;
}

export function problem(error) {
  const place = document.getElementById("problem");
  const known = { lost: "lost" }[error?.message] ?? (error?.status === 401 ? "token" : null);
  place.textContent = error ? (known ? say(known) : error.message ?? String(error)) : "";
  place.hidden = !error;
}

// A bar of a share; the number stands beside it, so that a screen reader can skip the bar.
export function bar(share, { kind = "", even } = {}) {
  const part = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("span", { class: `bar ${kind}`, "aria-hidden": "true" }, el("i", { "--part": part }),
    even === undefined ? null : el("b", { "--even": `${even * 100}%` }));
}

export const shareOf = (value, options = {}) =>
  el("span", { class: "share" }, bar(options.of ? value / options.of : value, options), options.shown ?? percent(value));

// A button that opens the panel of a sememe or a word.
export const sememeChip = (name, run) => el("li", {}, button(name, (event) => openPanel({ sememe: name, run }, event.target), { class: "chip" }));
export const chips = (names, run) => el("ul", { class: "chips" }, names.map((name) => sememeChip(name, run)));
export const wordButton = (word, run) => button(word, (event) => openPanel({ word, run }, event.target), { class: "plain" });

export function senseLines(senses, run) {
  return senses.map((sense) => el("div", { class: "sense-line" },
    senses.length > 1 ? [shareOf(sense.share ?? sense.probability, { kind: "sense", even: 1 / senses.length }), " "] : null,
    titleOf(sense) ? [el("span", { class: "faint small" }, titleOf(sense)), " "] : null,
    chips(sense.sememes.map((item) => item.name ?? item), run)));
}

const PARTS = { n: "noun", v: "verb", a: "adjective", d: "adverb", p: "preposition", c: "conjunction", u: "particle", w: "mark", q: "classifier_", r: "pronoun",
  m: "number", N: "noun", V: "verb", ADJ: "adjective", ADV: "adverb" };
export function titleOf(sense) {
  const names = sense.sememes.map((item) => item.name ?? item);
  const [first, ...rest] = sense.label.split(" ");
  return sense.label === names.join(" ") ? "" : [PARTS[first] ? say(PARTS[first]) : "", ...(PARTS[first] ? rest : [first, ...rest])].join(" ").trim();
}

export function table(columns, rows, { numbers = [], stacked = false, spare } = {}) {
  const mark = (place) => (numbers.includes(place) ? `number${place === spare ? " spare" : ""}` : stacked && place >= 2 ? "whole" : null);
  return el("div", { class: "scroll" }, el("table", { class: stacked ? "stacked" : null },
    el("thead", {}, el("tr", {}, columns.map((name, place) => el("th", { scope: "col", class: mark(place) }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, place) =>
      place ? el("td", { class: mark(place) }, cell) : el("th", { scope: "row" }, cell)))))));
}

// A part of a view with a heading and what of it can be downloaded: rows as CSV, a drawing as SVG, PDF and PNG.
export function card(title, inside, { rows, draw, name } = {}) {
  const links = el("span", { class: "downloads" });
  const add = (kind, work) => links.append(button(kind, work, { class: "plain", "aria-label": `${kind}: ${title}` }));
  if (draw) {
    add("SVG", () => keep(`${name}.svg`, new Blob([svgText(draw())], { type: "image/svg+xml" })));
    add("PDF", async () => {
      try {
        const { result } = await ask("pdf", drawing(draw()));
        keep(`${name}.pdf`, new Blob([Uint8Array.from(atob(result), (one) => one.charCodeAt(0))], { type: "application/pdf" }));
      } catch (error) {
        problem(error);
      }
    });
    add("PNG", async () => keep(`${name}.png`, await raster(draw())));
  }
  if (rows) add("CSV", () => keep(`${name}.csv`, new Blob(["\ufeff", csv(rows())], { type: "text/csv" })));
  return el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, title), links), inside);
}

// A cell that a spreadsheet would take for a formula gets a quote before it.
const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

function keep(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A drawing as outlines and texts, for the server: it has the fonts that a PDF needs.
function drawing(svg) {
  svg.setAttribute("class", "unseen"); // outlines are measured in a document alone
  document.body.append(svg);
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const shapes = [...svg.querySelectorAll("rect, path, circle, text")].map((node) => {
    const of = (name, usual) => node.closest(`[${name}]`)?.getAttribute(name) ?? usual;
    const [x, y, wide, high] = ["x", "y", "width", "height"].map((name) => Number(node.getAttribute(name)));
    const outline = () => Array.from({ length: 33 }, (_, at) => node.getPointAtLength((node.getTotalLength() * at) / 32)).flatMap((one) => [one.x, one.y]);
    if (node.tagName === "text") {
      const anchor = { start: "left", middle: "center", end: "right" }[of("text-anchor", "start")];
      return { points: [x, y], text: node.textContent, size: Number(of("font-size")), anchor, colour: of("fill") };
    }
    const line = of("fill") === "none", points = node.tagName === "rect" ? [x, y, x + wide, y, x + wide, y + high, x, y + high] : outline();
    return { points, size: line ? Number(of("stroke-width")) : 0, colour: of(line ? "stroke" : "fill"), opacity: Number(of(line ? "stroke-opacity" : "fill-opacity", 1)) };
  });
  svg.remove();
  return { width, height, shapes: shapes.filter((one) => one.colour !== "transparent") };
}

const svgText = (svg) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;

async function raster(svg) {
  const picture = new Image(), scale = 2;
  picture.src = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  await picture.decode();
  const canvas = el("canvas", { width: svg.getAttribute("width") * scale, height: svg.getAttribute("height") * scale });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.drawImage(picture, 0, 0);
  URL.revokeObjectURL(picture.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function textInput(label, value, oninput, { rows = 2, id } = {}) {
  return el("label", { class: "field" }, label, el("textarea", { rows, id, spellcheck: "false", oninput: (event) => oninput(event.target.value), value }));
}

// What stands above a column of one of two models.
export const columnHead = (run, two) => (two ? el("h2", {}, run) : null);
export const remarksOf = (answer) => answer.remarks.map((text) => el("p", { class: "remark" }, text));

// The end of a context, or the beginning of a text, as long as the server takes it.
const MOST = { explain: 2_000, score: 20_000 };
export const lastOf = (text) => (text.length > MOST.explain ? text.slice(-MOST.explain).replace(/^\S+\s+/u, "") : text);
export const firstOf = (text, most = MOST.explain) => (text.length > most ? text.slice(0, most).replace(/\s+\S+$/u, "") : text);

// A function of a text that asks every run, and draws each answer into its column; nothing is told about an empty text.
export const asking = (question, runs, columns, drawColumn, { afterwards = () => {}, ofEnd = false } = {}) => latest(async (text) => {
  try {
    const asked = ofEnd ? lastOf(text) : firstOf(text, MOST[question]);
    const cut = asked === text ? [] : [say(ofEnd ? "lastAsked" : "firstAsked").replace("N", asked.length.toLocaleString("en"))];
    const answers = await Promise.all(runs.map((run) => ask(question, { run, text: asked })));
    problem(null);
    answers.forEach((answer, index) => drawColumn(columns[index], { ...answer, remarks: [...cut, ...answer.remarks] }, runs[index], runs.length > 1));
    afterwards(answers);
  } catch (error) {
    columns.forEach((column) => column.replaceChildren());
    problem(text.trim() ? error : null);
  }
});
