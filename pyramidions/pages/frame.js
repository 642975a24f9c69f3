"use strict";
// What all pages share.
const all = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const made = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const count = n => n.toLocaleString("en-US");
const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);
// The name of SVG, which a page has in its HTML.
const SVG = document.querySelector("svg").namespaceURI;
function drawn(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  // What XML cannot hold would spoil the file.
  if (text !== undefined) element.textContent = text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "");
  return element;
}
