const BLOCK = 600, FAINT = 20, LONGEST = 24;
plot.wide = 348;
const percent = share => share === null ? "–" : `${(100 * share).toFixed(1)}%`;
const visible = text => text.replaceAll(" ", "␣").replaceAll("\n", "␤");

let segments, picked;
function open(number) {
  data = all.documents[number];
  picked = null;
  let from = 0;
  segments = data.ends.map(end => {
    const segment = {from, to: end + 1, text: data.text.slice(from, end + 1)};
    from = end + 1;
    return segment;
  });
  document.title = byId("title").textContent = data.name;
  byId("read").textContent = told();
  const facts = {
    "characters a segment (shortening factor)": data.shortening_factor === null ? "–" : data.shortening_factor.toFixed(2),
    "boundaries at spaces": percent(data.boundaries_at_spaces),
    "spaces at boundaries": percent(data.spaces_at_boundaries),
    "different segments": count(data.different),
  };
  byId("figures").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [made("dt", {textContent: name}), made("dd", {textContent: value})]));
  document.querySelectorAll(".when-predicted").forEach(element => element.hidden = data.p === null);
  document.querySelectorAll(".when-unpredicted").forEach(element => element.hidden = data.p !== null);
  byId("numbers").tBodies[0].replaceChildren(...data.frequent.map(row));
  drawText();
  drawChart();
  pick(null);
}
function told() {
  const outside = data.outside ? ` ${many(data.outside, "character")} outside the alphabet became spaces.` : "";
  const shown = data.text.length < data.characters ? ` The page shows the first ${count(data.text.length)}.` : "";
  return `${many(data.characters, "character")} in ${many(data.segments, "segment")}.${outside}${shown}`;
}
function row([text, times]) {
  const button = made("button", {className: "w", type: "button", textContent: visible(text)});
  button.segment = text;
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => next(text));
  return made("tr", {}, made("td", {}, button), ...[count(times), percent(times / data.segments)].map(textContent => made("td", {textContent})));
}

// The text: segments in blocks that browsers lay out when they come into sight.
function drawText() {
  const blocks = [];
  let size = BLOCK;
  spans = segments.map((segment, at) => {
    if (size >= BLOCK) {
      blocks.push(made("p", {dir: "auto"}));
      size = 0;
    }
    const span = made("span", {className: "s"}, ...pieces(segment));
    span.at = at;
    span.lastChild.classList.add("end");
    blocks.at(-1).append(span);
    size += segment.text.length;
    return span;
  });
  const from = segments.at(-1)?.to ?? 0;
  if (from < data.text.length) {
    if (!blocks.length) blocks.push(made("p", {dir: "auto"}));
    blocks.at(-1).append(made("span", {className: "rest"}, ...pieces({from, to: data.text.length})));
  }
  byId("document").replaceChildren(...blocks);
}
// Characters that have a shade are elements of their own, and so is the last one of a segment.
function pieces({from, to}) {
  const found = [], apart = i => i === to - 1 || (data.p !== null && data.p[i] >= FAINT);
  for (let i = from; i < to;) {
    let end = i + 1;
    if (!apart(i)) while (end < to && !apart(end)) end++;
    const piece = made("span", {className: "c", textContent: data.text.slice(i, end)});
    if (data.p !== null && data.p[i] >= FAINT) piece.style.setProperty("--p", data.p[i] / 1000);
    piece.from = i;
    found.push(piece);
    i = end;
  }
  return found;
}

// One segment can be picked; all of its kind are marked.
function pick(at) {
  const text = at === null ? null : segments[at].text, same = [];
  segments.forEach((segment, i) => {
    const is = segment.text === text;
    if (is) same.push(i);
    spans[i].classList.toggle("on", is);
    spans[i].classList.toggle("picked", i === at);
  });
  document.querySelectorAll("#numbers .w").forEach(button => {
    const is = button.segment === text;
    button.classList.toggle("pinned", is);
    button.setAttribute("aria-pressed", String(is));
  });
  picked = at;
  byId("status").textContent = at === null ? segments.length ? help : none() :
    `“\u2068${visible(text)}\u2069”: ${count(same.indexOf(at) + 1)} of ${count(same.length)}` +
    `${data.p === null ? "" : `, boundary with probability ${(data.p[segments[at].to - 1] / 1000).toFixed(3)}`}.`;
}
function none() {
  const highest = data.p === null ? "" : `: the highest probability is ${(data.p.reduce((most, p) => Math.max(most, p), 0) / 1000).toFixed(3)}`;
  return `This model draws no boundary in this text${highest}.`;
}
const help = "Choose a segment, in the text or among the most frequent ones, to see where else it stands. Arrow keys go to the next one in the text, " +
  "Escape lets it go.";
function go(at) {
  pick(at);
  spans[at].scrollIntoView({block: "center"});
}
// The next segment that reads like this, after the one that is picked.
function next(text) {
  const places = segments.flatMap((segment, at) => segment.text === text ? [at] : []);
  if (places.length) go(places.find(at => picked !== null && at > picked) ?? places[0]);
}
const segmentOf = target => target.closest?.(".s")?.at;
byId("document").addEventListener("click", ({target}) => {
  const at = segmentOf(target);
  if (at !== undefined && getSelection().isCollapsed) pick(picked === at ? null : at);
});
byId("document").addEventListener("mouseover", ({target}) => {
  if (data.p === null || target.from === undefined || target.textContent.length > 1) return;
  target.title = `Boundary after “${visible(target.textContent)}” with probability ${(data.p[target.from] / 1000).toFixed(3)}`;
});
byId("document").addEventListener("keydown", event => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step || !spans.length) return;
  event.preventDefault();
  go(picked === null ? Math.min(onScreen()[0], spans.length - 1) : Math.min(Math.max(picked + step, 0), spans.length - 1));
});
document.addEventListener("keydown", event => {
  if (event.key === "Escape") pick(null);
});

// The chart: how many segments have one character, two, and so on; the last bar has the longest ones.
function drawChart() {
  const bars = data.lengths.slice(0, LONGEST), more = data.lengths.slice(LONGEST);
  if (more.length) bars[LONGEST - 1] += sum(more, times => times);
  const width = plot.wide / Math.max(1, bars.length), every = bars.length > 12 ? 2 : 1;
  byId("area").setAttribute("d", bars.length ? `M0 ${plot.high}${steps(bars)}L${plot.wide} ${plot.high}Z` : "");
  byId("top").textContent = count(Math.max(0, ...bars));
  byId("ticks").replaceChildren(...bars.flatMap((_, i) => {
    // The last one is always named, and has room for that.
    const last = i === bars.length - 1;
    return last || (i % every === 0 && i < bars.length - every)
      ? [drawn("text", {class: "middle", x: 44 + (i + .5) * width, y: 97}, `${i + 1}${last && more.length ? "+" : ""}`)] : [];
  }));
}

function figure() {
  const [from, to] = onScreen();
  return drawFigure({
    note: `${told()} Bars: a segment ends.${data.p === null ? "" : " Blue: the more probable a boundary, the darker."}`,
    shown: spans.slice(from, to > from ? to : from + 40).flatMap(span => [...span.children]),
    words: data.frequent.flatMap(([text, times]) => [{text: visible(text), apart: true, ground: `rgba(${colour("--orange")}, .3)`}, {text: `${times}`, apart: true}]),
    heading: "Most frequent segments",
  });
}
byId("frequent-part").open = !narrow.matches;
begin();
