const BANDS = [.05, .1, .25, .5], BLOCK = 8, TOP = 16, RIGHT = 8, LINE = 14, LABEL = "12px system-ui, sans-serif";
plot.high = 40;
plot.left = 0;

// Sentences are numbered through all sections, as their scores are.
function numbered(about) {
  let to = 0;
  const sections = about.sections.map(({heading, parts}) => {
    const from = to;
    return {heading, from, parts: parts.map(({heading, sentences}) => ({heading, from: to, to: to += sentences.length})), to};
  });
  const texts = about.sections.flatMap(({parts}) => parts.flatMap(({sentences}) => sentences));
  const known = about.scores.filter(score => score !== null).sort((a, b) => b - a), ranks = new Map();
  known.forEach((score, i) => ranks.has(score) || ranks.set(score, i + 1));
  const place = new Map(about.chosen.map((i, number) => [i, number + 1]));
  return {...about, texts, sections, place, known, rank: i => ranks.get(about.scores[i])};
}

let spanOf, buttons, picked, stop;
function open(number) {
  data = numbered(all.documents[number]);
  picked = null;
  stop = 0;
  document.title = byId("title").textContent = data.name;
  byId("read").textContent = told();
  byId("reference-part").hidden = data.reference === null;
  byId("reference").textContent = (data.reference ?? "").replace(/\n\s*\n/g, "\n\n");
  byId("aside").classList.toggle("compared", data.reference !== null);
  byId("numbers").tBodies[0].replaceChildren(...data.sections.filter(({from, to}) => from < to).map(row));
  drawSummary();
  drawDocument();
  drawChart();
  pick(null);
}
function told() {
  const {chosen, all: words} = data.words, share = words ? ` (${(100 * chosen / words).toFixed(1)}%)` : "";
  return `${all.settings.method} chose ${count(data.chosen.length)} of ${many(data.texts.length, "sentence")}: ${count(chosen)} of ${many(words, "word")}${share}.`;
}
const called = ({heading}) => heading || (data.sections.length > 1 ? "before the first heading" : "the whole document");
function row(section) {
  let best = Infinity;
  for (let i = section.from; i < section.to; i++) best = Math.min(best, data.rank(i) ?? Infinity);
  const inside = data.chosen.filter(i => section.from <= i && i < section.to).length;
  const link = made("button", {className: "w", type: "button", textContent: called(section), dir: "auto"});
  link.addEventListener("click", () => go(section.from));
  const cells = [section.to - section.from, inside, best].map(n => made("td", {textContent: n === Infinity ? "–" : count(n)}));
  return made("tr", {}, made("td", {}, link), ...cells);
}

// What has come into sight is laid out in the next frame, and may then be taller than it was taken to be.
const afterLayout = what => requestAnimationFrame(() => requestAnimationFrame(what));

// The document: by section, in blocks of sentences that browsers lay out when they come into sight.
function drawDocument() {
  const only = byId("only").checked;
  spanOf = [];
  byId("numbered").hidden = only;
  byId("document").replaceChildren(...data.sections.map(section => {
    const drawn = made("section", {});
    drawn.append(...headed("h2", section.heading));
    drawn.append(...(only ? chosenOf(section) : section.parts.flatMap(blocks)));
    return drawn;
  }));
  spans = spanOf.filter(Boolean);
  afterLayout(markSeen);
}
function headed(tag, heading) {
  return heading ? [made(tag, {dir: "auto"}, made("span", {textContent: heading}))] : [];
}
function blocks(part) {
  const found = headed("h3", part.heading);
  for (let from = part.from; from < part.to; from += BLOCK) {
    const block = made("p", {dir: "auto"});
    block.dataset.number = count(from + 1);
    for (let i = from; i < Math.min(from + BLOCK, part.to); i++) block.append(...sentence(i), " ");
    found.push(block);
  }
  return found;
}
function chosenOf(section) {
  const found = [];
  let next = section.from, block;
  const gap = to => {
    if (next < to) block.append(gapOf(next, to), " ");
  };
  for (const part of section.parts) {
    const inside = data.chosen.filter(i => part.from <= i && i < part.to);
    if (!block || (inside.length && part.heading)) {
      if (block) gap(part.from);
      if (block) next = part.from;
      if (inside.length) found.push(...headed("h3", part.heading));
      found.push(block = made("p", {dir: "auto"}));
    }
    for (const i of inside) {
      gap(i);
      block.append(...sentence(i), " ");
      next = i + 1;
    }
  }
  if (block) gap(section.to);
  return found.filter(element => element.hasChildNodes());
}
function gapOf(from, to) {
  const button = made("button", {className: "gap", type: "button", textContent: `… ${many(to - from, "sentence")}`});
  button.addEventListener("click", () => {
    byId("only").checked = false;
    drawDocument();
    go(from);
  });
  return button;
}
function sentence(i) {
  const rank = data.rank(i), band = rank === undefined ? -1 : BANDS.findIndex(share => (rank - 1) / data.texts.length < share);
  const span = spanOf[i] = made("span", {className: band < 0 ? "s" : `s best-${band + 1}`, textContent: data.texts[i]});
  span.at = i;
  if (!data.place.has(i)) return [span];
  span.classList.add("chosen");
  const badge = made("button", {className: "n", type: "button", tabIndex: -1, textContent: data.place.get(i)});
  badge.setAttribute("aria-label", `Sentence ${data.place.get(i)} of the summary`);
  badge.at = i;
  return [badge, span];
}

// The summary, a button a sentence; of all the tabulator stops at one.
function drawSummary() {
  buttons = data.chosen.map((i, number) => {
    const button = made("button", {className: "w", type: "button", dir: "auto", tabIndex: number ? -1 : 0},
      made("span", {className: "n", textContent: number + 1}), data.texts[i]);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => picked === i ? pick(null) : go(i));
    button.addEventListener("focus", () => {
      buttons[stop].tabIndex = -1;
      button.tabIndex = 0;
      stop = number;
    });
    return button;
  });
  byId("summary").replaceChildren(...buttons.map(button => made("li", {}, button)));
  byId("summary").scrollTop = 0;
}
byId("summary").addEventListener("keydown", event => {
  const to = {ArrowDown: stop + 1, ArrowRight: stop + 1, ArrowUp: stop - 1, ArrowLeft: stop - 1, Home: 0, End: buttons.length - 1}[event.key];
  if (to === undefined || !buttons[to]) return;
  event.preventDefault();
  buttons[to].focus();
  if (picked !== null) go(data.chosen[to]);
});

// One sentence can be picked: it is framed wherever it is shown, and its score is told.
function pick(i) {
  for (const on of [spanOf[picked], buttons[data.place.get(picked) - 1]]) on?.classList.remove("picked", "pinned");
  buttons[data.place.get(picked) - 1]?.setAttribute("aria-pressed", "false");
  picked = i;
  spanOf[i]?.classList.add("picked");
  const button = buttons[data.place.get(i) - 1];
  if (button) {
    button.classList.add("pinned");
    button.setAttribute("aria-pressed", "true");
    const list = byId("summary"), [inside, outside] = [button, list].map(element => element.getBoundingClientRect());
    list.scrollTop += Math.min(inside.top - outside.top, Math.max(0, inside.bottom - outside.bottom));
  }
  byId("status").textContent = i !== null ? about(i) : data.texts.length ? help : "";
  drawCursor();
}
const help = "Choose a sentence of the summary to find it in the document, or one of the document to see its score. " +
  "Arrow keys go to the next one, Escape lets it go.";
function about(i) {
  const section = data.sections.find(({from, to}) => from <= i && i < to), rank = data.rank(i), number = data.place.get(i);
  const where = `Sentence ${count(i + 1)} of ${count(data.texts.length)}${section.heading ? `, in ${quoted(section.heading)}` : ""}`;
  const scored = rank === undefined ? "no score, never chosen" : `score ${rounded(data.scores[i])}, rank ${count(rank)}`;
  return `${where}: ${scored}.${number ? ` Chosen: ${number} of ${data.chosen.length} in the summary.` : ""}`;
}
const rounded = score => (score + 0).toLocaleString("en-US", {maximumSignificantDigits: Math.abs(score) < 1000 ? 3 : 6});
// Goes to a sentence, or where only chosen ones are shown to the next of them.
function go(i) {
  const span = spanOf[i] ?? spans.find(({at}) => at >= i) ?? spans.at(-1);
  if (!span) return;
  pick(span.at);
  bringIntoSight(span, 4);
}
function bringIntoSight(span, times) {
  if (spanOf[picked] !== span) return;
  span.scrollIntoView({block: "center"});
  if (times > 1) afterLayout(() => bringIntoSight(span, times - 1));
}
byId("document").addEventListener("click", ({target}) => {
  if (target.at !== undefined && getSelection().isCollapsed) pick(picked === target.at ? null : target.at);
});
byId("document").addEventListener("mouseover", ({target}) => {
  if (target.at !== undefined) target.title = about(target.at);
});
byId("document").addEventListener("keydown", event => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step || !spans.length) return;
  event.preventDefault();
  const now = spans.findIndex(({at}) => at === picked);
  go(spans[now < 0 ? seen[0] % spans.length : Math.min(Math.max(now + step, 0), spans.length - 1)].at);
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape") pick(null);
});
byId("only").addEventListener("change", () => {
  // What was in the middle of the screen stays there.
  const middle = picked ?? spans[Math.floor((seen[0] + seen[1]) / 2)]?.at;
  drawDocument();
  pick(spanOf[picked] ? picked : null);
  if (scrollY > 0 && middle !== undefined) (spanOf[middle] ?? spans.find(({at}) => at >= middle) ?? spans.at(-1))?.scrollIntoView({block: "center"});
});

// The chart: the scores along the document, where the chosen sentences are, and where sections begin.
const xOf = i => plot.left + plot.wide * i / Math.max(1, data.texts.length);
function drawChart() {
  const svg = byId("curve"), length = data.texts.length, known = data.known;
  if (narrow.matches) byId("panel").append(byId("strip"));
  else byId("main").prepend(byId("strip"));
  const high = known[0] ?? 0, low = Math.min(0, known.at(-1) ?? 0);
  canvas.font = LABEL;
  plot.left = Math.ceil(Math.max(...[low, high].map(score => canvas.measureText(rounded(score)).width))) + 6;
  plot.wide = Math.max(100, svg.clientWidth - plot.left - RIGHT);
  const bins = Math.min(length, Math.floor(plot.wide / 3));
  const scored = data.scores.map(score => score === null || high === low ? 0 : (score - low) / (high - low));
  const heights = bins ? binned(bins, length, scored.entries(), true) : [0];
  const labels = sectionLabels(), rows = Math.max(0, ...labels.map(({row}) => row + 1));
  const height = TOP + plot.high + 3 + LINE * rows;
  svg.setAttribute("viewBox", `0 0 ${plot.left + plot.wide + RIGHT} ${height}`);
  const bottom = TOP + plot.high, mean = bins < length ? `, mean of ${Math.round(length / bins)} sentences` : "";
  const title = drawn("title", {id: "curve-label"}, `Scores along the document${mean}, with the chosen sentences and the sections`);
  const flags = [];
  let flagged = 0;
  for (const [i, number] of data.place) {
    const x = xOf(i + .5);
    flags.push(drawn("line", {class: "pick", x1: x, x2: x, y1: TOP - 2, y2: bottom}));
    const half = 2 + 4 * String(number).length;
    if (x - half < flagged) continue;
    flags.push(drawn("text", {class: "flag", x, y: TOP - 5}, String(number)));
    flagged = x + half;
  }
  svg.replaceChildren(title,
    drawn("text", {class: "end", x: plot.left - 4, y: TOP + 9}, rounded(low + (high - low) * Math.max(...heights))), drawn("text", {class: "end", x: plot.left - 4, y: bottom}, rounded(low)),
    drawn("rect", {class: "seen", id: "seen", y: TOP, height: plot.high}),
    drawn("path", {class: "area", transform: `translate(${plot.left} ${TOP})`, d: `M0 ${plot.high}${steps(heights)}L${plot.wide} ${plot.high}Z`}),
    drawn("rect", {class: "frame", x: plot.left, y: TOP, width: plot.wide, height: plot.high}),
    ...labels.map(({at, row}) => drawn("line", {class: "border", x1: at, x2: at, y1: TOP, y2: bottom + 13 + LINE * row})),
    ...labels.map(({x, text, row}) => drawn("text", {class: "label", x, y: bottom + LINE * (row + 1)}, text)),
    ...flags, drawn("rect", {class: "cursor", id: "cursor", y: TOP, height: plot.high}));
  markSeen();
}
// Headings stand where their sections begin, in as many rows as they need; what finds no room is in the table.
function sectionLabels() {
  const ends = Array(narrow.matches ? 2 : 3).fill(0), found = [];
  canvas.font = LABEL;
  const headed = data.sections.filter(({heading, from, to}) => heading && from < to), most = headed.length > 8 ? 16 : 28;
  for (const section of headed) {
    const letters = [...section.heading], text = letters.length > most ? `${letters.slice(0, most - 1).join("").trim()}…` : section.heading;
    const width = canvas.measureText(text).width + 6, at = xOf(section.from);
    const x = at + width > plot.left + plot.wide + RIGHT ? at - width + 3 : at + 3, row = ends.findIndex(end => end <= x);
    if (row < 0) continue;
    ends[row] = x + width;
    found.push({text, x, at, row});
  }
  return found;
}
function drawCursor() {
  byId("cursor")?.setAttribute("x", picked === null ? 0 : xOf(picked) - 1);
  byId("cursor")?.setAttribute("width", picked === null ? 0 : Math.max(4, plot.wide / data.texts.length + 2));
}
byId("curve").addEventListener("click", event => {
  const box = byId("curve").querySelector(".frame").getBoundingClientRect();
  const pointed = i => Math.abs(box.left + box.width * (i + .5) / data.texts.length - event.clientX);
  const near = data.chosen.filter(i => pointed(i) < 6).sort((a, b) => pointed(a) - pointed(b));
  const i = Math.floor((event.clientX - box.left) / box.width * data.texts.length);
  go(near[0] ?? Math.min(Math.max(i, 0), data.texts.length - 1));
});
function markSeen() {
  seen = onScreen();
  const [from, to] = seen[0] < seen[1] ? [spans[seen[0]].at, spans[seen[1] - 1].at + 1] : [0, 0];
  byId("seen").setAttribute("x", xOf(from));
  byId("seen").setAttribute("width", xOf(to) - xOf(from));
}
addEventListener("scroll", () => data && markSeen(), {passive: true});
addEventListener("resize", () => data && (drawChart(), drawCursor()));

function figure() {
  const [from, to] = seen[0] < seen[1] ? seen : [0, Math.min(20, spans.length)], ground = `rgba(${colour("--orange")}, .5)`;
  const badge = spans[from]?.previousElementSibling, first = badge?.matches(".n") ? badge : spans[from], last = spans[to - 1];
  const inside = element => element === first || element === last ||
    (element.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_PRECEDING && element.compareDocumentPosition(last) & Node.DOCUMENT_POSITION_FOLLOWING);
  return drawFigure({
    note: `${told()} Blue: the better the score, the darker; numbers and orange lines: chosen.`,
    shown: first ? [...byId("document").querySelectorAll("h2 span, h3 span, .n, .s")].filter(inside) : [],
    words: data.chosen.flatMap((i, number) => [{text: String(number + 1), apart: true, ground}, ...apart(data.texts[i])]),
  });
}
byId("reference-part").open = !narrow.matches;
begin();
