// The timeline: throughput, and below it busy and back-pressure; on both what happened: cause and effect in one look.
/* global uPlot */
import { clock, percent, rate, span, h } from "./dom.js";

const MOST = 1600;
const NAMES = {
  failure: "failure", savepoint: "savepoint", checkpoint: "checkpoint", final: "last checkpoint",
  checkpoint_failed: "checkpoint failed", task_manager_lost: "TaskManager lost", task_manager: "TaskManager registered", status: "job",
};

export class Timeline {
  constructor() {
    this.columns = { at: [], in: [], out: [], busy: [], waits: [], lag: [] };
    this.marks = [];
    this.known = new Set();
  }

  add(news) {
    const last = this.columns.at.at(-1) || 0;
    news.at.forEach((at, i) => {
      if (at > last) for (const name in this.columns) this.columns[name].push(news[name][i]);
    });
    if (this.columns.at.length > MOST) {
      // The older half a little coarser: the whole life stays in sight.
      const half = this.columns.at.length >> 1;
      for (const name in this.columns) this.columns[name] = this.columns[name].filter((_, i) => i > half || i % 2 === 0);
    }
    for (const mark of news.marks) {
      const key = `${mark.at} ${mark.kind} ${mark.no} ${mark.text}`;
      if (!this.known.has(key)) { this.known.add(key); this.marks.push(mark); }
    }
    this.marks.sort((a, b) => a.at - b.at);
  }

  // When the job did not run: from a failure, or the beginning, until all tasks ran.
  downtimes(until) {
    const found = [];
    let began = null;
    for (const mark of this.marks) {
      if (mark.kind !== "status") continue;
      if (mark.text === "running") { if (began) found.push([began, mark.at]); began = null; }
      else if (mark.text === "restarting" || mark.text === "failing") began ??= mark.at;
      else if (began) { found.push([began, mark.at]); began = null; }
    }
    if (began) found.push([began, until]);
    return found;
  }

  events() {
    return this.marks.filter((mark) => mark.kind !== "checkpoint").reverse();
  }
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Charts {
  constructor(host, timeline) {
    this.host = host;
    this.timeline = timeline;
    this.key = `u${Math.random()}`;
    this.sight = new ResizeObserver(() => this.resize());
    this.sight.observe(host);
    this.build();
  }

  build() {
    this.plots?.forEach((plot) => plot.destroy());
    this.host.replaceChildren();
    this.hint = document.createElement("div");
    this.hint.className = "hint";
    const mute = style("--mute"), line = style("--line");
    const axis = { stroke: mute, font: "11px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const time = { ...axis, values: (_, splits) => splits.map((s) => clock(s * 1000)), space: 90, size: 24 };
    const side = { ...axis, size: 62, space: 32 };
    const cursor = { sync: { key: this.key }, drag: { x: true, y: false }, points: { size: 5 }, y: false };
    const common = { width: this.width(), cursor, legend: { show: false }, padding: [10, 12, 0, 0] };
    const area = (color, fill) => ({ stroke: color, fill, width: 1.6, points: { show: false } });
    const first = new uPlot({
      ...common, height: 190, padding: [10, this.hasLag() ? 64 : 12, 0, 0],
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(most * 1.12, 1)] } },
      axes: [{ ...time, size: 4, values: () => [] }, { ...side, values: (_, found) => found.map(rate) }],
      series: [{}, area(style("--in"), style("--in-fill")), area(style("--out"))],
      hooks: { drawClear: [(u) => this.under(u)], draw: [(u) => this.over(u)], setCursor: [(u) => this.point(u)] },
    }, this.data("in", "out"), this.host);
    const second = new uPlot({
      ...common, height: 120,
      scales: { x: { time: false }, y: { range: [0, 1.04] }, lag: { range: (_, __, most) => [0, Math.max(most || 0, 1000) * 1.2] } },
      axes: [time, { ...side, values: (_, found) => found.map(percent), splits: () => [0, 0.5, 1] },
        { ...side, scale: "lag", side: 1, size: 52, grid: { show: false }, values: (_, found) => found.map(span), show: this.hasLag() }],
      series: [{}, area(style("--busy"), style("--busy-fill")), area(style("--wait"), style("--wait-fill")),
        { ...area(style("--mute")), scale: "lag", dash: [4, 3], width: 1.2, show: this.hasLag() }],
      hooks: { drawClear: [(u) => this.under(u)] },
    }, this.data("busy", "waits", "lag"), this.host);
    this.plots = [first, second];
    this.lagShown = this.hasLag();
    first.over.append(this.hint);
  }

  hasLag() { return this.timeline.columns.lag.some((each) => each != null); }
  width() { return Math.max(280, this.host.clientWidth); }
  data(...names) {
    const { columns } = this.timeline;
    return [columns.at.map((at) => at / 1000), ...names.map((name) => columns[name])];
  }

  update() {
    if (this.hasLag() !== this.lagShown) { this.build(); return; }
    this.plots[0].setData(this.data("in", "out"));
    this.plots[1].setData(this.data("busy", "waits", "lag"));
  }

  resize() {
    const width = this.width();
    for (const plot of this.plots) if (plot.width !== width) plot.setSize({ width, height: plot.height });
  }

  close() { this.sight.disconnect(); this.plots.forEach((plot) => plot.destroy()); }

  // Downtimes as bands, below the lines.
  under(u) {
    const { ctx } = u, { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    ctx.fillStyle = style("--bad-fill");
    for (const [from, to] of this.timeline.downtimes(this.timeline.columns.at.at(-1) || 0)) {
      const x = u.valToPos(from / 1000, "x", true), end = u.valToPos(to / 1000, "x", true);
      ctx.fillRect(x, top, Math.max(end - x, 2), height);
    }
    ctx.restore();
  }

  over(u) {
    const { ctx } = u, { left, top, width, height } = u.bbox, ratio = devicePixelRatio || 1;
    const longest = Math.max(1, ...this.timeline.marks.map((mark) => (mark.kind === "checkpoint" ? mark.ms : 0)));
    ctx.save();
    ctx.beginPath(); ctx.rect(left, 0, width, top + height); ctx.clip();
    for (const mark of this.timeline.marks) {
      const x = Math.round(u.valToPos(mark.at / 1000, "x", true));
      if (x < left || x > left + width) continue;
      if (mark.kind === "checkpoint" || mark.kind === "final") {
        const tall = (4 + 12 * Math.sqrt(mark.ms / longest)) * ratio;
        ctx.fillStyle = style("--ok");
        ctx.fillRect(x - ratio, top + height - tall, 2 * ratio, tall);
      } else if (mark.kind === "failure") {
        ctx.fillStyle = style("--bad");
        ctx.fillRect(x - ratio / 2, top, 1.5 * ratio, height);
        shape(ctx, [[x - 6 * ratio, top], [x + 6 * ratio, top], [x, top + 9 * ratio]]);
      } else if (mark.kind === "savepoint") {
        const y = top + height - 8 * ratio, r = 6 * ratio;
        ctx.fillStyle = style("--info");
        ctx.fillRect(x - ratio / 2, top, ratio, height);
        shape(ctx, [[x - r, y], [x, y - r], [x + r, y], [x, y + r]]);
      } else if (mark.kind === "checkpoint_failed") {
        const y = top + height - 7 * ratio, r = 4 * ratio;
        ctx.strokeStyle = style("--warn"); ctx.lineWidth = 2 * ratio;
        ctx.beginPath(); ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); ctx.stroke();
      } else if (mark.kind === "task_manager_lost") {
        ctx.strokeStyle = style("--bad"); ctx.lineWidth = ratio; ctx.setLineDash([4 * ratio, 3 * ratio]);
        ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + height); ctx.stroke(); ctx.setLineDash([]);
      }
    }
    ctx.restore();
  }

  // What is under the pointer: the figures, and what happened near it.
  point(u) {
    const i = u.cursor.idx, { columns, marks } = this.timeline;
    if (i == null || u.cursor.left < 0) { this.hint.hidden = true; return; }
    const reach = u.posToVal(7, "x") - u.posToVal(0, "x");
    const here = u.posToVal(u.cursor.left, "x");
    const near = marks.filter((mark) => Math.abs(mark.at / 1000 - here) <= reach).slice(-4);
    const lines = [
      clock(columns.at[i]), `in ${rate(columns.in[i])}   out ${rate(columns.out[i])}`,
      `busy ${percent(columns.busy[i])}   waits ${percent(columns.waits[i])}${columns.lag[i] == null ? "" : `   behind ${span(columns.lag[i])}`}`,
      ...near.map(told),
    ];
    this.hint.textContent = lines.join("\n");
    this.hint.hidden = false;
    const right = u.cursor.left > u.over.clientWidth / 2;
    this.hint.style.left = right ? "" : `${u.cursor.left + 12}px`;
    this.hint.style.right = right ? `${u.over.clientWidth - u.cursor.left + 12}px` : "";
  }
}

function shape(ctx, points) {
  ctx.beginPath();
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.closePath();
  ctx.fill();
}

export function told(mark) {
  const what = NAMES[mark.kind] || mark.kind;
  const which = mark.kind.includes("checkpoint") || mark.kind === "savepoint" || mark.kind === "final" ? ` ${mark.no}` : mark.kind.startsWith("task_manager") ? ` ${mark.no}` : "";
  const took = mark.ms ? ` in ${span(mark.ms)}` : "";
  const text = mark.text ? (mark.kind === "status" ? ` ${mark.text}` : `: ${mark.text}`) : "";
  return `${what}${which}${took}${text}`;
}

export const legend = () => h("div", { class: "legend" },
  [["in", "records in"], ["out", "records out"], ["busy", "busiest subtask"], ["wait", "most back-pressured"], ["ok", "checkpoint"],
    ["info", "savepoint"], ["bad", "failure, and time down"]].map(([key, text]) => h("span", {}, h("i", { class: `dot ${key}` }), text)));
