// The chart along the document: scores or what is left, what the marked item drew on, what is chosen, where sections begin.
const xOf = i => plot.left + plot.wide * i / Math.max(1, data.segments.length);
function binned(length, entries, mean) {
  const bins = Math.max(1, Math.min(length, BANDS)), sums = new Float64Array(bins), sizes = new Float64Array(bins);
  const binOf = i => Math.floor(i * bins / length);
  for (let i = 0; i < length; i++) sizes[binOf(i)] += 1;
  for (const [i, value] of entries) sums[binOf(i)] += value;
  return Array.from(sums, (total, bin) => mean ? total / (sizes[bin] || 1) : total);
}
function steps(heights) {
  const top = Math.max(...heights) || 1, width = plot.wide / heights.length;
  return heights.map((h, i) => {
    const y = (plot.high - plot.high * h / top).toFixed(2);
    return `L${(i * width).toFixed(2)} ${y}L${((i + 1) * width).toFixed(2)} ${y}`;
  }).join("");
}
function share(value) {
  const top = 100 * value;
  return value ? `${top >= 99.95 ? 100 : top >= 1 ? top.toFixed(1) : top.toPrecision(2)}%` : "0";
}
function profile() {
  const values = data.scores ?? valuesOf(data, layer()), told = data.scores ? rounded : share;
  if (!values) return {heights: [], top: "", bottom: ""};
  const known = data.scores?.filter(score => score !== null) ?? [0, 1000];
  const low = known.reduce((least, score) => Math.min(least, score), 0), high = known.reduce((most, score) => Math.max(most, score), -Infinity);
  const level = value => value === null || high === low ? 0 : (value - low) / (high - low), scale = data.scores ? 1 : 1000;
  const heights = binned(values.length, values.map(level).entries(), true);
  return {heights, top: known.length ? told((low + (high - low) * Math.max(...heights)) / scale) : "0", bottom: told(low / scale)};
}
function drawChart() {
  const svg = byId("curve"), {heights, top, bottom} = data.profile ??= profile(), {length} = data.segments, link = isAbout.words && shown !== null ? linkOf(shown) : null;
  if (narrow.matches) byId("panel").append(byId("strip"));
  else byId("main").prepend(byId("strip"));
  canvas.font = LABEL;
  plot.high = narrow.matches ? 64 : 48;
  plot.left = Math.ceil(Math.max(...[top, bottom].map(text => canvas.measureText(text).width))) + 6;
  const right = isAbout.words ? 44 : 8;
  plot.wide = Math.max(100, svg.clientWidth - plot.left - right);
  const low = TOP + plot.high, labels = sectionLabels(plot.left + plot.wide + right), rows = Math.max(1, ...labels.map(({row}) => row + 1));
  const height = low + 3 + LINE * rows, shapes = [byId("curve-label")];
  const at = (tag, attributes, text) => shapes.push(drawn(tag, attributes, text));
  const inPlot = {transform: `translate(${plot.left} ${TOP})`};
  svg.setAttribute("viewBox", `0 0 ${plot.left + plot.wide + right} ${height}`);
  at("text", {class: "left", x: 0, y: TOP - 5}, kind.caption);
  at("text", {class: "left end", id: "top", x: plot.left - 4, y: TOP + 9}, top);
  at("text", {class: "left end", x: plot.left - 4, y: low}, bottom);
  at("rect", {class: "seen", id: "seen", y: TOP, height: plot.high});
  if (heights.length) at("path", {class: "area", id: "area", ...inPlot, d: `M0 ${plot.high}${steps(heights)}L${plot.wide} ${plot.high}Z`});
  if (link) {
    const drew = binned(length, link.to.map((i, rank) => [i, link.shares[rank] / 1e5]), false);
    at("path", {class: "curve", id: "line", ...inPlot, d: `M${steps(drew).slice(1)}`});
    at("text", {class: "right end", id: "right-label", x: plot.left + plot.wide + right, y: TOP - 5}, `attention of ${quoted(data.items[shown].text.trim().slice(0, 16))} (sum)`);
    at("text", {class: "right", id: "right-top", x: plot.left + plot.wide + 4, y: TOP + 9}, share(Math.max(...drew)));
    at("text", {class: "right", x: plot.left + plot.wide + 4, y: low}, "0");
  }
  at("rect", {class: "frame", x: plot.left, y: TOP, width: plot.wide, height: plot.high});
  for (const {x, from, text, row} of labels) {
    at("line", {class: "border", x1: from, x2: from, y1: TOP, y2: low + 13 + LINE * row});
    at("text", {class: "label", x, y: low + LINE * (row + 1)}, text);
  }
  if (!labels.length) for (const [name, x, text] of [["", plot.left, "1"], ["middle", plot.left + plot.wide / 2, `${kind.unit} of the document`], ["end", plot.left + plot.wide, count(length)]])
    at("text", {class: name, x, y: low + LINE}, text);
  drawFlags(at, low);
  if (picked !== null) at("rect", {class: "cursor", id: "cursor", x: xOf(picked) - 1, y: TOP, height: plot.high, width: Math.max(4, plot.wide / length + 2)});
  svg.replaceChildren(...shapes);
  markSeen();
}
// The chosen segments; a number that would cover the one before is left out.
function drawFlags(at, low) {
  let end = 0;
  for (const [i, k] of numbers) {
    const x = xOf(i + .5), half = 2 + 4 * String(k + 1).length;
    at("line", {class: "pick", x1: x, x2: x, y1: TOP - 2, y2: low});
    if (x - half < end) continue;
    at("text", {class: "flag", x, y: TOP - 5}, String(k + 1));
    end = x + half;
  }
}
// Headings stand where their sections begin, in as many rows as they need; what finds no room is in the table.
function sectionLabels(end) {
  const ends = Array(narrow.matches ? 2 : 3).fill(0), found = [];
  const sections = data.blocks.filter(([tag]) => tag === "h2"), {length} = data.segments;
  const headed = sections.filter(([, from, text], at) => text && from < (sections[at + 1]?.[1] ?? length)), most = headed.length > 8 ? 16 : 28;
  for (const [, i, heading] of headed) {
    const letters = [...heading], text = letters.length > most ? `${letters.slice(0, most - 1).join("").trim()}…` : heading;
    const width = canvas.measureText(text).width + 6, from = xOf(i), x = from + width > end ? from - width + 3 : from + 3, row = ends.findIndex(end => end <= x);
    if (row < 0) continue;
    ends[row] = x + width;
    found.push({text, x, from, row});
  }
  return found;
}
function goAlong({clientX}) {
  const {length} = data.segments, box = byId("curve").querySelector(".frame").getBoundingClientRect();
  if (!length) return;
  const far = i => Math.abs(box.left + box.width * (i + .5) / length - clientX), near = [...numbers.keys()].filter(i => far(i) < 6).sort((a, b) => far(a) - far(b));
  go(near[0] ?? Math.min(Math.max(Math.floor((clientX - box.left) / box.width * length), 0), length - 1));
}

// What of the document is on the screen, below what stays at the top.
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
  const stuck = [...document.querySelectorAll("#panel, #strip")].filter(element => getComputedStyle(element).position === "sticky");
  return Math.max(0, ...stuck.map(element => element.getBoundingClientRect().bottom));
}
function markSeen() {
  seen = [firstBelow(panelEnd()), firstBelow(innerHeight)];
  const [from, to] = seen[0] < seen[1] ? [spans[seen[0]].at, spans[seen[1] - 1].at + 1] : [0, 0];
  byId("seen")?.setAttribute("x", xOf(from));
  byId("seen")?.setAttribute("width", xOf(to) - xOf(from));
}
