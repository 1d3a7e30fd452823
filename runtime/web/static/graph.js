// The graph: vertices as cards, coloured by how busy they are and how much they wait; edges with watermarks.
import { layout } from "./layout.js";
import { chainEnds, chainName, count, cut, h, percent, rate, span } from "./dom.js";

const WIDTH = 216, HEIGHT = 84;

export class Plan {
  // Laid out once for each shape of a job, and each direction.
  place(view, upright) {
    const key = JSON.stringify([upright, view.vertices.map((v) => v.id), view.edges.map((e) => [e.from, e.to])]);
    if (key === this.key) return;
    this.key = key;
    const edges = view.edges.map((edge) => [edge.from, edge.to, edge.back]);
    const { nodes, paths, ...size } = layout(view.vertices.length, edges, { width: WIDTH, height: HEIGHT, between: 26, apart: upright ? 46 : 96, upright });
    Object.assign(this, { nodes, paths, size });
  }
}

const curve = (points) => {
  const [first, ...rest] = points;
  let d = `M${first.x} ${first.y}`;
  for (let i = 0; i < rest.length - 1; i += 1) {
    const x = (rest[i].x + rest[i + 1].x) / 2, y = (rest[i].y + rest[i + 1].y) / 2;
    d += `Q${rest[i].x} ${rest[i].y} ${i === rest.length - 2 ? rest[i + 1].x : x} ${i === rest.length - 2 ? rest[i + 1].y : y}`;
  }
  return rest.length === 1 ? `${d}L${rest[0].x} ${rest[0].y}` : d;
};

const bar = (x, y, width, share, kind) => [
  h("rect", { x, y, width, height: 4, rx: 2, class: "rail" }),
  h("rect", { x, y, width: Math.max(0, Math.min(1, share)) * width, height: 4, rx: 2, class: `fill ${kind}` }),
];

export function level(vertex) {
  if (vertex.waits > 0.5) return "waits-high";
  if (vertex.busy > 0.8) return "busy-high";
  if (vertex.waits > 0.1) return "waits-low";
  return vertex.busy > 0.4 ? "busy-low" : "calm";
}

export function state(vertex) {
  for (const each of ["failed", "canceling", "initializing", "deploying", "scheduled"]) if (vertex.states[each]) return each;
  return vertex.states.running ? "running" : Object.keys(vertex.states)[0] || "created";
}

function card(vertex, node, chosen, choose, i, failing) {
  const x = node.x - WIDTH / 2, y = node.y - HEIGHT / 2, now = state(vertex);
  const spread = vertex.skew != null && vertex.skew > 1.5 ? ` · skew ${vertex.skew}×` : "";
  const said = `${chainEnds(vertex.name)}: ${failing && `operator ${failing} failed last, `}${now}, parallelism ${vertex.p}, ${rate(vertex.in)} in, ${rate(vertex.out)} out, busy ${percent(vertex.busy)}, back-pressured ${percent(vertex.waits)}`;
  return h("g", {
    key: vertex.id, class: `vertex ${level(vertex)} is-${now}${chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button",
    "aria-label": said, "aria-pressed": String(chosen), onclick: () => choose(i),
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(i); } },
  },
  h("title", {}, said),
  h("rect", { class: "card", width: WIDTH, height: HEIGHT, rx: 8 }),
  h("rect", { class: "edge", width: 4, height: HEIGHT - 16, x: 0, y: 8, rx: 2 }),
  h("text", { x: 14, y: 21, class: "name" }, cut(chainName(vertex.name), 21)),
  h("text", { x: WIDTH - 10, y: 21, class: "par" }, `×${vertex.p}`),
  h("text", { x: 14, y: 40, class: failing ? "sub failing" : "sub" }, failing ? cut(`failed: ${failing}`, 30) : now === "running" ? `${rate(vertex.in)} → ${rate(vertex.out)}${spread}` : `${now} · ${count(vertex.totalIn)} in`),
  bar(14, 52, 118, vertex.busy, "busy"), bar(14, 66, 118, vertex.waits, "wait"),
  h("text", { x: 140, y: 57, class: "tiny" }, `busy ${percent(vertex.busy)}`),
  h("text", { x: 140, y: 71, class: "tiny" }, `waits ${percent(vertex.waits)}`));
}

export function graph(plan, view, chosen, choose, upright, failedLast) {
  plan.place(view, upright);
  const fastest = Math.max(1, ...view.vertices.map((vertex) => vertex.out));
  const edges = view.edges.map((edge, i) => {
    const points = plan.paths[i], from = view.vertices[edge.from], middle = points[points.length >> 1];
    const behind = from.lag == null ? "" : `${span(from.lag)} behind`;
    const width = 1.2 + 3 * Math.sqrt(Math.min(1, from.out / fastest));
    return h("g", { key: `${edge.from}-${edge.to}-${i}`, class: `wire${edge.back ? " back" : ""}${from.waits > 0.1 ? " waits" : ""}` },
      h("path", { d: curve(points), "stroke-width": width.toFixed(1), "marker-end": "url(#arrow)" }),
      h("text", { x: middle.x, y: middle.y - 7 }, edge.back ? "back" : edge.tag || edge.how),
      behind && h("text", { x: middle.x, y: middle.y + 14, class: "behind" }, behind));
  });
  const { width, height } = plan.size;
  return h("svg", { class: "plan", viewBox: `0 0 ${width} ${height}`, width, vars: { "--w": `${width}px` }, role: "group", "aria-label": "the job's graph" },
    h("defs", {}, h("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, h("path", { d: "M0 0L8 4L0 8z" }))),
    edges, view.vertices.map((vertex, i) => card(vertex, plan.nodes[i], chosen === i, choose, i, failedLast(view, vertex.name))));
}
