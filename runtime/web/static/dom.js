// What is shown, as plain values, and the least that changes the page into it. Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const h = (tag, attributes, ...children) => ({
  tag, a: attributes || {}, c: children.flat(Infinity).filter((each) => each != null && each !== false && each !== ""),
});

export function render(parent, nodes) {
  patchChildren(parent, [nodes].flat(Infinity).filter((each) => each != null && each !== false));
}

function make(node, svg) {
  if (typeof node !== "object") return document.createTextNode(String(node));
  const inSvg = svg || node.tag === "svg";
  const element = inSvg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  element._a = {};
  setAttributes(element, node.a);
  patchChildren(element, node.c, inSvg);
  node.a.ref?.(element);
  return element;
}

function setAttributes(element, wanted) {
  const before = element._a;
  for (const name in before) if (!(name in wanted)) set(element, name, null);
  for (const name in wanted) if (before[name] !== wanted[name]) set(element, name, wanted[name]);
  element._a = wanted;
}

function set(element, name, value) {
  if (name === "key" || name === "ref" || name === "own") return;
  if (name.startsWith("on")) element[name] = value;
  else if (name === "vars") for (const each in value) element.style.setProperty(each, value[each]);
  else if (value == null || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : value);
}

function patchChildren(parent, nodes, svg = parent.namespaceURI === SVG) {
  const keyed = new Map();
  for (const child of parent.childNodes) if (child._a?.key != null) keyed.set(child._a.key, child);
  let place = parent.firstChild;
  for (const node of nodes) {
    const key = node.a?.key;
    let found = key != null ? keyed.get(key) : place;
    if (found && key == null && found._a?.key != null) found = null;
    if (!found || !fits(found, node)) {
      parent.insertBefore(make(node, svg), place);
      continue;
    }
    if (found !== place) parent.insertBefore(found, place);
    else place = place.nextSibling;
    if (typeof node !== "object") { if (found.data !== String(node)) found.data = String(node); continue; }
    setAttributes(found, node.a);
    if (!node.a.own) patchChildren(found, node.c);
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}

function fits(element, node) {
  if (typeof node !== "object") return element.nodeType === 3;
  return element.nodeType === 1 && element.localName === node.tag && element._a?.key === node.a.key;
}

// ------------------------------------------------------------------------------------------------ numbers and times

const whole = new Intl.NumberFormat("en");
export const count = (n) => whole.format(Math.round(n));

export function rate(n) {
  if (n == null) return "–";
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e7 ? 0 : 1)} M/s`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(n >= 1e5 ? 0 : 1)} k/s`;
  return `${n >= 10 || n === 0 ? count(n) : n.toFixed(1)}/s`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return `${at && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[at]}`;
}

export function span(ms) {
  if (ms == null) return "–";
  if (ms < 1000) return `${ms < 10 && ms % 1 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.floor(ms / 1000), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours ? `${hours} h ${String(minutes % 60).padStart(2, "0")} min` : `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
}

export const percent = (share) => `${Math.round(share * 100)} %`;

const two = (n) => String(n).padStart(2, "0");
export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
export function moment(ms) {
  if (!ms) return "–";
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return new Date().toDateString() === at.toDateString() ? clock(ms) : `${day} ${clock(ms)}`;
}
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
// The ends of a long chain of operators, and how many there are.
export const chainEnds = (name) => { const all = name.split(" -> "); return all.length > 6 ? `${all[0]} → … → ${all.at(-1)}, ${all.length} operators` : chainName(name); };
export const chainName = (name) => name.split(" -> ").join(" → ");
