// Pictures that are downloaded: bars, and words on tinted ground. On white, for papers.
const SPACE = "http://www.w3.org/2000/svg";
const FONT = "system-ui, 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'WenQuanYi Micro Hei', sans-serif";
const pen = document.createElement("canvas").getContext("2d");

export function shape(name, attributes = {}, ...inside) {
  const node = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside.flat(2));
  return node;
}

export function sheet(width, height, ...inside) {
  return shape("svg", { xmlns: SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": 14, fill: "#1c2024" },
    shape("rect", { width, height, fill: "#ffffff" }), ...inside);
}

export function widthOf(text, size = 14) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
}

// rows: [name, value, shown]; values below 0 are drawn in the second colour.
export function barsPicture(title, rows) {
  const left = Math.max(60, ...rows.map(([name]) => widthOf(name))) + 24, width = left + 420, height = 46 + rows.length * 24;
  const most = Math.max(...rows.map(([, value]) => Math.abs(value)), 1e-12);
  return sheet(width, height, shape("text", { x: 12, y: 24, "font-weight": 600 }, title), rows.map(([name, value, shown], place) => {
    const y = 56 + place * 24, length = (260 * Math.abs(value)) / most;
    return [shape("text", { x: left - 10, y, "text-anchor": "end" }, name),
      shape("rect", { x: left, y: y - 11, width: Math.max(length, 0.5), height: 13, fill: value < 0 ? "#b1490b" : "#0b62c4" }),
      shape("text", { x: left + length + 8, y, fill: "#5b636b", "font-size": 12 }, shown)];
  }));
}

// lines: rows of [text, strength from -1 to 1].
export function tokensPicture(title, lines) {
  const width = 760, parts = [shape("text", { x: 16, y: 26, "font-weight": 600 }, title)];
  let y = 62;
  for (const line of lines) {
    let x = 16;
    for (const [text, strength] of line) {
      const size = widthOf(text, 17) + 10;
      if (x + size > width - 16 && x > 16) { x = 16; y += 32; }
      parts.push(shape("rect", { x, y: y - 19, width: size, height: 26, rx: 4, fill: strength < 0 ? "#0b62c4" : "#e8772e", "fill-opacity": Math.abs(strength) * 0.55 }),
        shape("text", { x: x + 5, y, "font-size": 17 }, text));
      x += size + 4;
    }
    y += 34;
  }
  return sheet(width, y - 10, parts);
}
