// What all pages of documents share. A page defines open(number), which shows a document, and figure(), its picture.
const narrow = matchMedia("(max-width: 56rem)");
const plot = {wide: 312, high: 76};

// The document that is shown, the elements of its text in reading order, and which of them are on the screen.
let data, spans = [], seen = [0, 0];

function begin() {
  for (const [name, value] of Object.entries(all.settings))
    byId("settings").append(made("dt", {textContent: name}), made("dd", {textContent: value, dir: "auto"}));
  byId("left-out").textContent = all.left_out
    ? `This page is full: ${many(all.left_out, "document")} of the same call ${all.left_out === 1 ? "is" : "are"} not on it, or not to the end.` : "";
  byId("more").open = !narrow.matches;
  byId("chooser").hidden = all.documents.length < 2;
  byId("choose").append(...all.documents.map(({name, query}, value) => made("option", {value, textContent: query ? `${name}: ${query}` : name})));
  byId("choose").addEventListener("change", () => {
    open(Number(byId("choose").value));
    scrollTo(0, 0);
  });
  if (all.documents.length) open(0);
  document.documentElement.dataset.ready = "yes";
}

function quoted(text) {
  // Isolated, so that words of a language that runs the other way do not turn the sentence around.
  return `“\u2068${text.trim() || "¶"}\u2069”`;
}

// Charts are drawn in a bounded number of steps.
function binned(bins, length, entries, mean) {
  const sums = new Float64Array(bins), sizes = new Float64Array(bins);
  for (let i = 0; i < length; i++) sizes[Math.floor(i * bins / length)] += 1;
  for (const [i, value] of entries) sums[Math.floor(i * bins / length)] += value;
  return Array.from(sums, (sum, bin) => mean ? sum / sizes[bin] : sum);
}
function steps(heights) {
  const top = Math.max(...heights) || 1, width = plot.wide / heights.length;
  return heights.map((h, i) => {
    const y = (plot.high - plot.high * h / top).toFixed(2);
    return `L${(i * width).toFixed(2)} ${y}L${((i + 1) * width).toFixed(2)} ${y}`;
  }).join("");
}

// What of the document is on the screen.
function firstBelow(y) {
  let low = 0, high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle].getBoundingClientRect().bottom > y) high = middle;
    else low = middle + 1;
  }
  return low;
}
function panelEnd() {
  const stuck = [...document.querySelectorAll(".panel, .strip")].filter(element => getComputedStyle(element).position === "sticky");
  return Math.max(0, ...stuck.map(element => element.getBoundingClientRect().bottom));
}
const onScreen = () => [firstBelow(panelEnd()), firstBelow(innerHeight)];

// A figure is drawn anew as SVG: what is on the screen of the text, the summary, the chart, and how they came about.
const EDGE = 24, SANS = "system-ui, sans-serif";
const canvas = document.createElement("canvas").getContext("2d");
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// The words below the text are given as {text, apart: a space precedes, ground: its colour, if any}.
function drawFigure({note, shown, words, heading = "Summary"}) {
  const column = byId("document").getBoundingClientRect(), wide = Math.max(column.width, 340);
  const svg = drawn("svg", {width: wide + 2 * EDGE}), serif = getComputedStyle(document.body).fontFamily;
  svg.append(drawn("rect", {width: "100%", height: "100%", fill: colour("--paper")}));
  let y = EDGE;
  // Words, some of them on a ground, are set in lines.
  const lines = (words, size, family, fill) => {
    canvas.font = `${size}px ${family}`;
    const space = canvas.measureText(" ").width;
    let x = 0;
    y += size * 1.5;
    for (const {text, apart, ground} of words) {
      const width = canvas.measureText(text).width;
      if (x > 0 && apart) x += space;
      if (x > 0 && x + width > wide) {
        x = 0;
        y += size * 1.5;
      }
      if (ground) svg.append(drawn("rect", {x: EDGE + x - 2, y: y - size * 1.35, width: width + 4, height: size * 1.4, rx: 3, fill: ground}));
      svg.append(drawn("text", {x: EDGE + x, y: y - .3 * size, "font-size": size, "font-family": family, fill}, text));
      x += width;
    }
  };
  lines(apart(data.name), 19, serif, colour("--ink"));
  lines(apart(note), 13, SANS, colour("--quiet"));
  y += excerpt(svg, shown, column, y + 10, serif) + 20;
  y += 13 * 1.4;
  svg.append(drawn("text", {x: EDGE, y: y - .35 * 13, "font-size": 13, "font-family": SANS, fill: colour("--quiet"), "font-weight": 600}, heading));
  lines(words, 16, serif, colour("--ink"));
  y += 14;
  const chart = paintedChart(), box = byId("curve").viewBox.baseVal, width = Math.min(wide, Math.max(480, box.width)), height = width * box.height / box.width;
  for (const [name, value] of Object.entries({x: EDGE, y, width, height})) chart.setAttribute(name, value);
  svg.append(chart);
  y += height + 10;
  const settings = Object.entries(all.settings).map(([name, value]) => `${name}: ${value}`).join("; ");
  if (settings) lines(apart(settings), 12, SANS, colour("--quiet"));
  y += EDGE;
  svg.setAttribute("height", y);
  svg.setAttribute("viewBox", `0 0 ${wide + 2 * EDGE} ${y}`);
  return svg;
}
const apart = text => text.split(" ").map(text => ({text, apart: true}));
// Elements of the text, where they stand on the screen; returns the height that they take.
function excerpt(svg, elements, column, top, family) {
  if (!elements.length) return 0;
  const first = elements[0].getBoundingClientRect().top;
  canvas.font = `16px ${family}`;
  let height = 0;
  for (const element of elements) {
    const style = getComputedStyle(element), rule = parseFloat(style.borderBottomWidth), side = parseFloat(style.borderRightWidth), pad = parseFloat(style.paddingLeft);
    for (const {text, box} of boxes(element)) {
      const x = EDGE + box.left - column.left, y = top + box.top - first;
      svg.append(drawn("rect", {x, y, width: box.width, height: box.height, rx: 2, fill: style.backgroundColor}));
      if (rule) svg.append(drawn("rect", {x, y: y + box.height - rule, width: box.width, height: rule, fill: style.borderBottomColor}));
      if (side) svg.append(drawn("rect", {x: x + box.width - side, y, width: side, height: box.height, fill: style.borderRightColor}));
      svg.append(drawn("text", {x: x + pad, y: y + box.height * .78, "font-size": parseFloat(style.fontSize), "font-weight": style.fontWeight,
        "font-family": family, fill: style.color, textLength: box.width - 2 * pad - side, lengthAdjust: "spacingAndGlyphs"}, text));
      height = Math.max(height, y + box.height - top);
    }
  }
  return height;
}
// An element that goes over the end of a line has a box on either.
function boxes(span) {
  const rects = span.getClientRects();
  if (rects.length < 2) return Array.from(rects, box => ({text: span.textContent, box}));
  const range = document.createRange(), found = [];
  for (let i = 0; i < span.textContent.length; i++) {
    range.setStart(span.firstChild, i);
    range.setEnd(span.firstChild, i + 1);
    const box = range.getBoundingClientRect(), at = Array.from(rects).findIndex(rect => Math.abs(rect.top - box.top) < 3);
    if (at < 0) continue;
    found[at] ??= {text: "", box: rects[at]};
    found[at].text += span.textContent[i];
  }
  return found.filter(Boolean);
}
function paintedChart() {
  const chart = byId("curve").cloneNode(true), originals = [byId("curve"), ...byId("curve").querySelectorAll("*")];
  [chart, ...chart.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of ["fill", "stroke", "stroke-width", "paint-order", "opacity", "text-anchor", "font-size", "font-weight", "font-family"])
      element.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["id", "class", "role", "aria-labelledby"]) element.removeAttribute(name);
  });
  return chart;
}
function save(blob, ending) {
  const link = made("a", {href: URL.createObjectURL(blob), download: `${data.name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "figure"}.${ending}`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
const written = svg => new XMLSerializer().serializeToString(svg);
byId("save-svg").addEventListener("click", () => save(new Blob([written(figure())], {type: "image/svg+xml"}), "svg"));
byId("save-png").addEventListener("click", () => {
  const svg = figure(), image = new Image();
  image.addEventListener("load", () => {
    const picture = made("canvas", {width: 2 * image.width, height: 2 * image.height});
    picture.getContext("2d").drawImage(image, 0, 0, picture.width, picture.height);
    picture.toBlob(blob => save(blob, "png"));
  });
  image.setAttribute("src", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(written(svg))}`);
});
