// Checkpoints: the last ones, and one of them as a Gantt chart of its subtasks.
import { bytes, chainName, cut, h, moment, span } from "./dom.js";

const MOST_ROWS = 120;
const PARTS = [["delay", "until the barrier"], ["alignment", "alignment"], ["sync", "stands still"], ["async", "written aside"]];

export function checkpointList(view, chosen, choose) {
  const { checkpoints } = view;
  const longest = Math.max(1, ...checkpoints.list.map((each) => each.ms));
  return h("section", { class: "card" },
    h("h2", {}, "Checkpoints", h("small", {}, `${checkpoints.completed} completed, ${checkpoints.failed} failed${checkpoints.restored ? `, restored from ${checkpoints.restored}` : ""}`)),
    checkpoints.list.length === 0 ? h("p", { class: "empty" }, "None yet.") : h("div", { class: "scroll" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["", "kind", "triggered", "took", "size", "subtasks", "stood still", "alignment", ""].map((name, i) => h("th", { class: i > 2 && i < 8 ? "n" : "" }, name)))),
      h("tbody", {}, checkpoints.list.map((each) => h("tr", {
        key: each.id, class: each.id === chosen ? "chosen" : "", onclick: () => choose(each.id),
      },
      h("td", {}, h("button", { class: "link", "aria-pressed": String(each.id === chosen), onclick: () => choose(each.id) }, each.id)),
      h("td", {}, h("i", { class: `dot ${each.status === "failed" ? "bad" : each.status === "in_progress" ? "warn" : each.kind === "savepoint" ? "info" : "ok"}` }), each.status === "failed" ? `${each.kind}, failed` : each.status === "in_progress" ? `${each.kind}, under way` : each.kind),
      h("td", {}, moment(each.at)),
      h("td", { class: "n" }, h("span", { class: "meter" }, h("i", { class: "ok", vars: { "--share": `${(100 * each.ms) / longest}%` } })), span(each.ms)),
      h("td", { class: "n" }, bytes(each.bytes)), h("td", { class: "n" }, `${each.acked}/${each.of}`),
      h("td", { class: "n" }, span(each.sync)), h("td", { class: "n" }, span(each.alignment)),
      h("td", { class: "why" }, each.failure || (each.discarded ? "deleted" : each.path))))))));
}

// Those that a job can start from, with what to do with them.
export function savepointList(view, steer) {
  const found = view.checkpoints.savepoints;
  return h("section", { class: "card" }, h("h2", {}, "Savepoints", h("small", {}, "of this job, which nobody has disposed of; a job can start from each")),
    found.length === 0 ? h("p", { class: "empty" }, "None. A savepoint keeps the job's state until you dispose of it: take one before you change the program.")
      : h("ul", { class: "events" }, found.map((each) => h("li", { key: each.path }, h("time", {}, moment(each.at)), h("code", { class: "path" }, each.path),
        h("span", { class: "buttons" }, h("button", { onclick: () => steer.start(each.path) }, steer.verb), steer.dispose && h("button", { class: "danger", onclick: () => steer.dispose(each.path) }, "Dispose…"))))));
}

// More than two deviations above the mean, and half as long again as the one in the middle.
export function outliers(times) {
  if (times.length < 4) return new Set();
  const mean = times.reduce((a, b) => a + b, 0) / times.length;
  const deviation = Math.sqrt(times.reduce((a, b) => a + (b - mean) ** 2, 0) / times.length);
  const middle = [...times].sort((a, b) => a - b)[times.length >> 1];
  return new Set(times.flatMap((ms, i) => (ms > mean + 2 * deviation && ms > 1.5 * middle && ms > 5 ? [i] : [])));
}

export function gantt(view, found, order, setOrder, all, showAll) {
  if (!found) return null;
  const s = found.subtasks, far = outliers(s.ms), longest = Math.max(1, ...s.ms);
  let rows = s.ms.map((_, i) => i);
  if (order === "slowest") rows.sort((a, b) => s.ms[b] - s.ms[a]);
  const hidden = all ? 0 : Math.max(0, rows.length - MOST_ROWS);
  if (hidden) rows = rows.slice(0, MOST_ROWS);
  const sort = (name) => h("button", { class: "chip", "aria-pressed": String(order === name), onclick: () => setOrder(name) }, name);
  return h("section", { class: "card" },
    h("h2", {}, `${found.kind} ${found.id}`, h("small", {}, `${span(found.ms)}, ${bytes(found.bytes)}, ${found.acked} of ${found.of} subtasks${found.inFlight ? `, ${bytes(found.inFlight)} in flight` : ""}`)),
    found.failure && h("p", { class: "alert" }, found.failure),
    h("div", { class: "bar" }, h("span", { class: "legend" }, PARTS.map(([key, text]) => h("span", {}, h("i", { class: `dot part-${key}` }), text))),
      h("span", { class: "chips" }, "order", sort("graph"), sort("slowest"))),
    h("div", { class: "gantt", role: "table", "aria-label": `subtasks of ${found.kind} ${found.id}` }, rows.map((i) => {
      const name = view.vertices[s.v[i]]?.name || "?";
      const parts = PARTS.map(([key]) => s[key][i]);
      const said = `${name} ${s.i[i]}: ${span(s.ms[i])}; ${PARTS.map(([, text], part) => `${text} ${span(parts[part])}`).join(", ")}; ${bytes(s.bytes[i])}`;
      return h("div", { key: `${s.v[i]}-${s.i[i]}`, class: `lane${far.has(i) ? " far" : ""}`, role: "row", title: said },
        h("span", { role: "cell", class: "who" }, cut(chainName(name), 30), h("b", {}, ` ${s.i[i]}`)),
        h("span", { role: "cell", class: "track", "aria-label": said }, parts.map((ms, part) => h("i", { class: `part-${PARTS[part][0]}`, vars: { "--share": `${Math.max(ms > 0 ? 0.3 : 0, (100 * ms) / longest)}%` } }))),
        h("span", { role: "cell", class: "n" }, span(s.ms[i]), far.has(i) && h("em", {}, " outlier")), h("span", { role: "cell", class: "n dim" }, bytes(s.bytes[i])));
    })),
    hidden > 0 && h("p", {}, h("button", { onclick: showAll }, `show ${hidden} more`)),
    found.missing.length > 0 && h("p", { class: "dim" }, `Not acknowledged: ${cut(found.missing.map(([v, i]) => `${view.vertices[v].name} ${i}`).join(", "), 600)}`));
}
