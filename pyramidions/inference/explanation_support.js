// Sentence by sentence: what of the document supports the summary, by words and by attention.
const supportsOf = (piece, start) => piece.sentences.map(sentence => ({...sentence,
  by_words: shifted(sentence.by_words, start), by_attention: sentence.by_attention && shifted(sentence.by_attention, start)}));
const shifted = (supporting, start) => supporting.map(([from, to, share]) => ({from: from + start, to: to + start, share}));

let supported = null;
byId("support-part").open = !narrow.matches;
function drawSupport() {
  supported = null;
  byId("sentences").replaceChildren(...data.sentences.map(sentence => {
    const item = made("li", {dir: "auto", className: sentence.enough === false ? "alone" : "", textContent: sentence.text});
    if (sentence.enough === false) item.append(" ", made("span", {className: "badge", textContent: "without support"}));
    const words = sentence.recall === null ? "By words: too short to tell" : `By words: ${percent(sentence.recall, 0)} of its pairs of words`;
    item.append(supportList(words, sentence.by_words));
    item.append(supportList(sentence.by_attention ? "By attention: where most of it went" : "By attention: unknown", sentence.by_attention ?? []));
    return item;
  }));
}
function supportList(title, supporting) {
  return made("div", {className: "supporting"}, title, made("ol", {}, ...supporting.map(({from, to, share}) => {
    const text = data.document.slice(from, to).join("").trim(), button = made("button", {className: "w", type: "button", textContent: text});
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => showSupporting(button, from, to));
    return made("li", {dir: "auto"}, made("span", {textContent: `${percent(share, 0)} `}), button);
  })));
}
// A click marks the sentence in the document and goes there; another one lets it go.
function showSupporting(button, from, to) {
  const again = supported === button;
  document.querySelectorAll(".t.supports").forEach(span => span.classList.remove("supports"));
  supported?.setAttribute("aria-pressed", "false");
  supported = again ? null : button;
  if (again) return;
  button.setAttribute("aria-pressed", "true");
  spans.slice(from, to).forEach(span => span.classList.add("supports"));
  spans[from].scrollIntoView({block: "center"});
}
