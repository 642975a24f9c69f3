// A figure is drawn anew as SVG: what is on the screen of the text, the items, the chart, and how they came about.
const EDGE = 24;
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const apart = text => text.split(" ").map(text => ({text, apart: true}));
function figure() {
  const column = byId("document").getBoundingClientRect(), wide = Math.max(column.width, 340), serif = getComputedStyle(document.body).fontFamily;
  const svg = drawn("svg", {width: wide + 2 * EDGE});
  svg.append(drawn("rect", {width: "100%", height: "100%", fill: colour("--paper")}));
  let y = EDGE;
  // Words, given as {text, apart: a space precedes, ground: its colour, if any}, are set in lines.
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
  const about = [data.query && `Query: ${data.query}`, data.about, byId("layers").hidden ? "" : `${byId("layer-label").textContent}.`, kind.figure,
    isAbout.words && shown !== null ? `Orange: what ${quoted(data.items[shown].text)} drew on.` : ""];
  lines(apart(data.name), 19, serif, colour("--ink"));
  lines(apart(about.filter(Boolean).join(" ")), 13, SANS, colour("--quiet"));
  y += excerpt(svg, column, y + 10, serif) + 20;
  lines(apart(kind.heading), 13, SANS, colour("--quiet"));
  lines(itemsOfFigure(), 16, serif, colour("--ink"));
  y += 14;
  const chart = paintedChart(), box = byId("curve").viewBox.baseVal, width = Math.min(wide, Math.max(480, box.width)), height = width * box.height / box.width;
  for (const [name, value] of Object.entries({x: EDGE, y, width, height})) chart.setAttribute(name, value);
  svg.append(chart);
  y += height + 10;
  const settings = Object.entries(all.settings).map(([name, value]) => `${name}: ${value}`).join("; ");
  if (settings) lines(apart(settings), 12, SANS, colour("--quiet"));
  svg.setAttribute("height", y + EDGE);
  svg.setAttribute("viewBox", `0 0 ${wide + 2 * EDGE} ${y + EDGE}`);
  return svg;
}
function itemsOfFigure() {
  const ground = `rgba(${colour("--orange")}, .5)`;
  return data.items.flatMap(({text, note}, k) => {
    const [first, ...more] = apart(text.trim());
    return [...(isAbout.sentences ? [{text: String(k + 1), apart: true, ground}] : []), {...first, apart: !isAbout.words || text.startsWith(" "), ground: k === shown || note ? ground : ""}, ...more, ...(note ? apart(note) : [])];
  });
}
// What of the text is on the screen, where it stands there; returns the height that it takes.
function excerpt(svg, column, top, family) {
  const [from, to] = seen[0] < seen[1] ? seen : [0, Math.min(300, spans.length)], inside = spans.slice(from, to);
  if (!inside.length) return 0;
  const badge = span => span.previousElementSibling?.matches(".n") ? [span.previousElementSibling] : [];
  const headings = [...document.querySelectorAll("#document h2 span, #document h3 span")].filter(heading =>
    heading.compareDocumentPosition(inside[0]) & Node.DOCUMENT_POSITION_PRECEDING && heading.compareDocumentPosition(inside.at(-1)) & Node.DOCUMENT_POSITION_FOLLOWING);
  const elements = [...headings, ...inside.flatMap(span => [...badge(span), span])];
  const first = Math.min(...elements.slice(0, headings.length + 2).map(element => element.getBoundingClientRect().top));
  let height = 0;
  canvas.font = `16px ${family}`;
  for (const element of elements) {
    const style = getComputedStyle(element), rule = parseFloat(style.borderBottomWidth), pad = parseFloat(style.paddingLeft);
    for (const {text, box} of boxes(element)) {
      const x = EDGE + box.left - column.left, y = top + box.top - first;
      svg.append(drawn("rect", {x, y, width: box.width, height: box.height, rx: 2, fill: style.backgroundColor}));
      if (rule) svg.append(drawn("rect", {x, y: y + box.height - rule, width: box.width, height: rule, fill: style.borderBottomColor}));
      svg.append(drawn("text", {x: x + pad, y: y + box.height * .78, "font-size": parseFloat(style.fontSize), "font-weight": style.fontWeight,
        "font-family": family, fill: style.color, textLength: box.width - 2 * pad, lengthAdjust: "spacingAndGlyphs"}, text));
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
const written = svg => new XMLSerializer().serializeToString(svg);
function save(blob, ending) {
  const link = made("a", {href: URL.createObjectURL(blob), download: `${data.name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "figure"}.${ending}`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
function savePicture() {
  const svg = figure(), image = new Image();
  image.addEventListener("load", () => {
    const picture = made("canvas", {width: 2 * image.width, height: 2 * image.height});
    picture.getContext("2d").drawImage(image, 0, 0, picture.width, picture.height);
    picture.toBlob(blob => save(blob, "png"));
  });
  image.setAttribute("src", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(written(svg))}`);
}

begin();
document.documentElement.dataset.ready = "yes";
