"use strict";

const find = (id) => document.getElementById(id);
const drop = find("drop");
let chosen = null;
let asking = null;

function say(text, isWrong) {
  find("status").textContent = text;
  find("status").classList.toggle("wrong", Boolean(isWrong));
}

async function summarize() {
  if (!chosen) return;
  find("summary").hidden = find("links").hidden = true;
  if (!find("ask").reportValidity()) return say("Words must be a number from 1 to 10,000.", true);
  // The answer to an older question must not replace that to a newer one.
  asking?.abort();
  const mine = asking = new AbortController();
  const began = performance.now();
  const seconds = (digits) => ((performance.now() - began) / 1000).toFixed(digits);
  const name = chosen.name;
  say(`Reading ${name} …`);
  const clock = setInterval(() => say(`Reading ${name} … ${seconds(0)} s`), 1000);
  try {
    const asked = new URLSearchParams({ name, method: find("method").value, words: find("words").value });
    const answer = await fetch(`summary?${asked}`, { method: "POST", body: chosen, signal: mine.signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text || `The server answered ${answer.status}.`);
    find("summary").src = find("open").href = `page/${text}`;
    find("save").href = `page/${text}?save`;
    find("summary").hidden = find("links").hidden = false;
    say(`${name}: ${find("method").value}, ${seconds(1)} s. Nothing has left this machine.`);
  } catch (error) {
    if (mine === asking) {
      say(error instanceof TypeError ? "The server has stopped, or the file can no longer be read." : error.message, true);
    }
  } finally {
    clearInterval(clock);
  }
}

function choose(files) {
  if (!files.length) return;
  if (files.length > 1) return say("Drop one document at a time.", true);
  chosen = files[0];
  find("again").disabled = false;
  summarize();
}

find("file").addEventListener("change", (event) => choose(event.target.files));
find("method").addEventListener("change", summarize);
find("ask").addEventListener("submit", (event) => { event.preventDefault(); summarize(); });
for (const kind of ["dragenter", "dragover"]) {
  addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) {
  addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
}
addEventListener("drop", (event) => choose(event.dataTransfer.files));
