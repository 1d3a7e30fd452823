// Flame graph of a vertex: frames on top of each other, as wide as their share of the samples; and the same as plain text.
import { chainName, count, cut, h, percent, span } from "./dom.js";

export const KINDS = [["full", "all of its time"], ["on_cpu", "while it works"], ["off_cpu", "while it waits"]];
const THINNEST = 0.002, ROW = 22, MOST_LINES = 400;
const WORDS = { user: "your code", library: "libraries", understudy: "Understudy", state: "no Python frame" };

// Frames depth by depth, of those that can be seen; `zoomed`: the path of indices to the frame that fills the width.
function laidOut(root, zoomed) {
  const found = [], chain = [];
  let top = root;
  for (const i of zoomed) { if (!top.children[i]) break; top = top.children[i]; chain.push(i); }
  let node = root;
  chain.forEach((i, depth) => { node = node.children[i]; found.push({ node, path: chain.slice(0, depth + 1), depth, from: 0, share: 1, above: node !== top }); });
  const put = (parent, path, depth, from) => {
    let at = from;
    parent.children.forEach((child, i) => {
      const share = top.value ? child.value / top.value : 0;
      if (share >= THINNEST) { found.push({ node: child, path: [...path, i], depth, from: at, share }); put(child, [...path, i], depth + 1, at); }
      at += share;
    });
  };
  put(top, chain, chain.length, 0);
  return found;
}

// Arrow keys go to the frame that called, the first one called, and the neighbours.
function steer(event) {
  const here = event.currentTarget, all = [...here.parentElement.children];
  const [depth, from, to] = ["depth", "from", "to"].map((name) => Number(here.dataset[name]));
  const beside = (step) => { const row = all.filter((one) => Number(one.dataset.depth) === depth); return row[row.indexOf(here) + step]; };
  const next = {
    ArrowUp: () => all.find((one) => Number(one.dataset.depth) === depth - 1 && Number(one.dataset.from) <= from + 1e-9 && Number(one.dataset.to) >= to - 1e-9),
    ArrowDown: () => all.find((one) => Number(one.dataset.depth) === depth + 1 && Number(one.dataset.from) >= from - 1e-9 && Number(one.dataset.to) <= to + 1e-9),
    ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
  }[event.key];
  if (!next) return;
  event.preventDefault();
  next()?.focus();
}

function lines(node, all, depth = 0, found = []) {
  for (const child of [...node.children].sort((a, b) => b.value - a.value)) {
    if (found.length >= MOST_LINES) break;
    found.push([`${percent(child.value / all).padStart(6)} ${"  ".repeat(depth)}${child.name}  [${WORDS[child.kind] || child.kind}]`, child.kind]);
    lines(child, all, depth + 1, found);
  }
  return found;
}

export function flame(view, chosen, found, at, zoomed, { vertex, kind, zoom }) {
  const bar = h("div", { class: "bar" },
    h("label", { class: "inline" }, "of", h("select", { "aria-label": "vertex", onchange: (event) => vertex(event.target.value) }, view.vertices.map((each) => h("option", { key: each.id, value: each.id, selected: each.id === chosen }, cut(chainName(each.name), 60))))),
    h("div", { class: "chips", role: "group", "aria-label": "of which samples" }, KINDS.map(([name, text]) => h("button", { class: "chip", "aria-pressed": String(at === name), onclick: () => kind(name) }, text))));
  const card = (...rest) => h("section", { class: "card flame-card" }, h("h2", {}, "Flame graph", h("small", {}, "what the vertex's threads do, by samples")), bar, rest);
  if (view.ended) return card(h("p", { class: "empty" }, "The job has ended: there is nothing to sample."));
  if (found?.why) return card(h("p", { class: "alert" }, found.why));
  if (!found?.endTimestamp) return card(h("p", { class: "empty", role: "status" }, "Sampling; the first samples take some seconds."));
  const { data } = found, frames = laidOut(data, zoomed), deep = Math.max(0, ...frames.map((each) => each.depth + 1));
  const old = Math.max(0, view.at - found.endTimestamp);
  if (!data.value) return card(h("p", { class: "empty" }, at === "on_cpu" ? "In no sample did it work." : at === "off_cpu" ? "In no sample did it wait." : "None of its tasks was running."));
  return card(
    h("p", { class: "facts said" }, h("span", {}, h("b", {}, count(data.value)), " samples"), h("span", {}, "the last one ", h("b", {}, span(old)), " ago"),
      zoomed.length > 0 && h("button", { class: "link", onclick: () => zoom([]) }, "show all of it")),
    h("p", { class: "legend" }, Object.entries(WORDS).map(([name, text]) => h("span", {}, h("i", { class: `swatch frame-${name}` }), text))),
    h("div", { class: "flame", role: "group", "aria-label": "frames; arrow keys move, Enter makes one fill the width", vars: { "--h": `${deep * ROW}px` } }, frames.map((each, i) => h("button", {
      key: each.path.join("."), class: `frame frame-${each.node.kind}${each.above ? " above" : ""}`, tabindex: i === 0 ? 0 : -1,
      "data-depth": each.depth, "data-from": each.from, "data-to": each.from + each.share, vars: { "--x": `${100 * each.from}%`, "--w": `${100 * each.share}%`, "--y": `${each.depth * ROW}px` },
      title: `${each.node.name}\n${count(each.node.value)} of ${count(data.value)} samples, ${percent(each.node.value / data.value)}: ${WORDS[each.node.kind] || each.node.kind}`,
      onclick: () => zoom(each.path), onkeydown: steer,
    }, each.share > 0.03 ? each.node.name.replace(/(.) \(.*\)$/, "$1") : h("span", { class: "unseen" }, each.node.name)))),
    h("details", {}, h("summary", {}, "the same as text"), h("pre", { tabindex: 0 }, lines(data, data.value).map(([text, kind]) => h("span", { class: kind === "user" ? "at" : "" }, `${text}\n`)))));
}
