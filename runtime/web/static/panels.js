// Tables and lists of one job, and the list of jobs.
import { bytes, chainEnds, chainName, clock, count, cut, h, moment, percent, rate, span } from "./dom.js";
import { state } from "./graph.js";
import { told } from "./timeline.js";

export const pill = (status) => h("span", { class: `pill is-${status}` }, h("i", { class: "dot" }), status);

const meter = (share, kind) => h("span", { class: "meter", title: percent(share) }, h("i", { class: kind, vars: { "--share": `${Math.min(100, 100 * share)}%` } }));

// What a job that runs again has failed of, if that is not long ago: it may fail again at once.
const RECENT_MS = 600_000;
export const recent = (job, at) => (job.last && at - job.lastAt < RECENT_MS ? `failed ${span(at - job.lastAt)} ago: ${job.last}` : "");

// One button for each status that there is, and one for all.
function statuses(jobs, only, choose) {
  const found = [...new Set(jobs.map((job) => job.status))].sort();
  return found.length > 1 && h("div", { class: "chips" }, ["", ...found].map((one) => h("button", { key: one, class: "chip", "aria-pressed": String(one === only), onclick: () => choose(one) },
    `${one || "all"} ${jobs.filter((job) => !one || job.status === one).length}`)));
}

export function jobList(found, open, only, choose) {
  if (!found) return h("p", { class: "empty" }, "Asking…");
  if (!found.jobs.length) return h("section", { class: "card" }, h("h2", {}, "Jobs"), h("p", { class: "empty" }, "No job yet: `understudy submit` sends one. Of jobs from before the JobManager was started it knows only those that had not ended, with recovery.mode, and those of history_dir."));
  const shown = found.jobs.filter((job) => !only || job.status === only).map((job) => ({ ...job, why: job.why || recent(job, found.at) }));
  return h("section", { class: "card" }, h("h2", {}, "Jobs", h("small", {}, `${found.jobs.filter((job) => !job.ended).length} running, ${found.jobs.length} in all`)), statuses(found.jobs, only, choose),
    h("div", { class: "scroll" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["job", "status", "started", "duration", "tasks", "restarts", ""].map((name, i) => h("th", { class: i > 2 && i < 6 ? "n" : "" }, name)))),
      h("tbody", {}, shown.map((job) => h("tr", { key: job.id, onclick: () => open(job.id) },
        h("td", {}, h("a", { href: `#/${job.id}` }, job.name), h("code", {}, job.id.slice(0, 8)), job.why && h("p", { class: "narrow" }, job.why)), h("td", {}, pill(job.status)), h("td", {}, moment(job.from)),
        h("td", { class: "n" }, span((job.to || found.at) - job.from)), h("td", { class: "n" }, job.ended ? job.total : `${job.running}/${job.total}`),
        h("td", { class: "n" }, job.restarts), h("td", { class: "why wide" }, job.why)))))));
}

export function suspects(view, choose) {
  return h("section", { class: "card" }, h("h2", {}, "Which subtask to look at"),
    view.suspects.length === 0 ? h("p", { class: "empty" }, view.ended ? "The job has ended." : view.running < view.total ? `${view.running} of ${view.total} tasks run; the job is ${view.status}.` : "None stands out: no subtask is busy, back-pressured, skewed or behind.")
      : h("ol", { class: "suspects" }, view.suspects.map((each) => {
        const at = view.vertices.findIndex((vertex) => vertex.id === each.vertex_id);
        return h("li", { key: `${each.vertex_id} ${each.subtask_index}` }, h("button", { class: "link", onclick: () => choose(at) }, cut(chainName(each.vertex_name), 34), h("b", {}, ` ${each.subtask_index}`)), h("span", {}, each.why));
      })));
}

// The operator of this vertex whose failure was the job's last one, as long as that is not long ago.
export function failedLast(view, name) {
  if (!view.why && !recent(view, view.at)) return "";
  return view.failures.at(-1)?.chain.find((each) => each.vertex === name)?.operator || "";
}

export function vertexPanel(view, chosen, sizes, close) {
  const vertex = view.vertices[chosen], s = view.subtasks;
  const rows = s.v.flatMap((v, i) => (v === chosen ? [i] : []));
  const failing = failedLast(view, vertex.name);
  const timed = rows.some((i) => s.watermark[i] != null);
  return h("section", { class: "card" },
    h("h2", {}, chainEnds(vertex.name), h("small", {}, `×${vertex.p}, ${state(vertex)}`), h("button", { class: "quiet", "aria-label": "close", onclick: close }, "✕")),
    h("p", { class: "facts" }, h("span", {}, h("b", {}, count(vertex.totalIn)), " records in"), h("span", {}, h("b", {}, count(vertex.totalOut)), " out"),
      vertex.late > 0 && h("span", {}, h("b", {}, count(vertex.late)), " late"), vertex.lag != null && h("span", {}, h("b", {}, span(vertex.lag)), " behind"), vertex.skew != null && h("span", {}, "skew ", h("b", {}, `${vertex.skew}×`)),
      h("span", {}, "key groups ", h("b", {}, vertex.maxP))),
    h("p", { class: "operators" }, vertex.operators.map((each) => h("span", { class: `op ${each.kind}${each.name === failing ? " failing" : ""}` }, each.name, each.name === failing && h("small", {}, "failed last"), each.states.length > 0 && h("small", {}, each.states.map((one) => `${one.name}: ${one.kind}`).join(", "))))),
    (sizes || []).filter((each) => each.vertex === vertex.name && each.spread).map((each) => keyGroups(each)),
    h("div", { class: "scroll tall" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["", "state", "records in", "in", "out", "busy", "waits", timed && "behind", "attempt", "TaskManager"].map((name) => name !== false && h("th", { class: ["records in", "in", "out", "behind", "attempt"].includes(name) ? "n" : "" }, name)))),
      h("tbody", {}, rows.map((i) => h("tr", { key: s.i[i] },
        h("td", {}, s.i[i]), h("td", {}, s.idle[i] ? `${s.state[i]}, idle` : s.state[i]), h("td", { class: "n" }, count(s.total[i])), h("td", { class: "n" }, rate(s.in[i])), h("td", { class: "n" }, rate(s.out[i])),
        h("td", {}, meter(s.busy[i], "busy"), percent(s.busy[i])), h("td", {}, meter(s.waits[i], "wait"), percent(s.waits[i])), timed && h("td", { class: "n" }, span(s.lag[i])),
        h("td", { class: "n" }, s.attempt[i]), h("td", {}, view.taskManagers[s.tm[i]] ? `${view.taskManagers[s.tm[i]].index} (${view.taskManagers[s.tm[i]].host})` : "–")))))));
}

// How an operator's keyed state spreads over its key groups.
export const keyGroups = (each) => h("div", { class: "groups", key: `groups ${each.operator}` }, h("p", { class: each.hot ? "warned" : "" }, each.spread),
  h("table", { class: "rows" }, h("thead", {}, h("tr", {}, ["key group", "subtask", "state", "share"].map((name) => h("th", { class: "n" }, name)))),
    h("tbody", {}, each.groups.map((one) => h("tr", { key: one.group }, h("td", { class: "n" }, one.group), h("td", { class: "n" }, one.subtask), h("td", { class: "n" }, bytes(one.bytes)), h("td", { class: "n" }, meter(one.share, each.hot ? "busy" : "wait"), `${(100 * one.share).toFixed(1)} %`))))));

export function eventList(timeline) {
  const found = timeline.events().slice(0, 40);
  return h("section", { class: "card" }, h("h2", {}, "What happened"), found.length === 0 ? h("p", { class: "empty" }, "Nothing yet.")
    : h("ul", { class: "events" }, found.map((mark) => h("li", { key: `${mark.at} ${mark.kind} ${mark.no} ${mark.text}`, class: mark.kind },
      h("time", {}, clock(mark.at)), h("i", { class: `dot ${dotOf(mark)}` }), h("span", {}, told(mark))))));
}

const dotOf = (mark) => ({ failure: "bad", task_manager_lost: "bad", savepoint: "info", checkpoint_failed: "warn", final: "ok" })[mark.kind] || (mark.text === "running" || mark.text === "finished" ? "ok" : "dim");

export function exceptions(view) {
  const found = [...view.failures].reverse();
  if (!found.length) return h("section", { class: "card" }, h("h2", {}, "Exceptions"), h("p", { class: "empty" }, "Nothing has failed."));
  return found.map((failure, n) => h("section", { class: "card failure", key: `${failure.at} ${n}` },
    h("h2", {}, h("i", { class: "dot bad" }), [failure.chain.at(-1).type, cut(failure.chain.at(-1).text, 140)].filter(Boolean).join(": "), h("small", {}, `${moment(failure.at)}${n === 0 && !view.ended && view.status !== "running" ? ", the job is down because of it" : ""}`)),
    failure.chain.map((each, depth) => h("div", { class: "cause" },
      failure.chain.length > 1 && h("h3", {}, depth > 0 && h("small", {}, "caused by "), each.type),
      h("p", { class: "said" }, each.text), place(each), each.trace && trace(each.trace, depth === failure.chain.length - 1)))));
}

function place(each) {
  const parts = [["operator", each.operator], ["vertex", each.vertex], ["subtask", each.subtask >= 0 ? each.subtask : ""], ["attempt", each.attempt >= 0 ? each.attempt : ""],
    ["record", each.record >= 0 ? `${count(each.record)} of this attempt` : ""], ["record's key", each.key], ["TaskManager", each.tm]].filter(([, value]) => value !== "");
  return parts.length > 0 && h("dl", { class: "place" }, parts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// The lines of the user's files stand out: the last one is where it was raised.
function trace(text, open) {
  const lines = text.split("\n"), last = lines.findLastIndex((line) => /^\s*File "/.test(line));
  return h("details", { open }, h("summary", {}, "traceback"), h("pre", { tabindex: 0 }, lines.map((line, i) => h("span", { class: /^\s*File "/.test(line) ? (i === last ? "at last" : "at") : i === last + 1 && last >= 0 ? "last" : "" }, `${line}\n`))));
}

export function watermarks(found, ended) {
  if (ended) return h("section", { class: "card" }, h("h2", {}, "Event time"), h("p", { class: "empty" }, "The job has ended."));
  if (!found) return h("p", { class: "empty" }, "Asking…");
  if (found.length === 0) return h("section", { class: "card" }, h("h2", {}, "Event time"), h("p", { class: "empty" }, "This job has no event time: no stream in it has assign_timestamps, which windows and timers by event time need."));
  return h("section", { class: "card" }, h("h2", {}, "Why event time is where it is", h("small", {}, "from each operator upstream to what holds it")),
    found.map((each) => h("article", { class: "held", key: each.operator }, h("h3", {}, each.operator, h("small", {}, each.stands ? ` stands for ${span(each.stands)}` : " goes on")), h("ol", {}, each.path.map((step) => h("li", {}, step))), each.stands > 0 && each.advice && h("p", { class: "advice" }, each.advice))));
}

export function taskManagers(view, threadsOf) {
  return h("section", { class: "card" }, h("h2", {}, "TaskManagers", threadsOf && h("button", { class: "chip", onclick: () => threadsOf("", "JobManager") }, "threads of the JobManager")), view.taskManagers.length === 0 ? h("p", { class: "empty" }, view.ended ? "They ended with the job." : "None has registered.")
    : h("div", { class: "scroll" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["", "id", "host", "process", "registered", "heard", "tasks", "slots", "records in", "busy", ""].map((name) => h("th", { class: ["tasks", "slots", "records in", "heard"].includes(name) ? "n" : "" }, name)))),
      h("tbody", {}, view.taskManagers.map((each) => h("tr", { key: each.id }, h("td", {}, each.index), h("td", {}, h("code", {}, each.id)), h("td", {}, each.host), h("td", {}, each.pid), h("td", {}, moment(each.since)),
        h("td", { class: `n${each.silent > 3000 ? " warned" : ""}` }, each.silent == null ? "–" : `${span(each.silent)} ago`), h("td", { class: "n" }, each.tasks), h("td", { class: "n" }, each.slots), h("td", { class: "n" }, rate(each.in)),
        h("td", {}, meter(each.busy / Math.max(1, each.slots), "busy"), percent(each.busy / Math.max(1, each.slots))),
        h("td", {}, threadsOf && h("button", { class: "chip", "aria-label": `threads of TaskManager ${each.index}`, onclick: () => threadsOf(each.id, `TaskManager ${each.index}`) }, "threads"))))))));
}

const toEnd = (event) => { const text = event.target.querySelector("pre"); text.scrollTop = text.scrollHeight; };

// What each thread does; those that run operators first.
export function threads(said, again, close) {
  if (!said) return null;
  const { of, name, at, found } = said, works = (each) => each.threadName.startsWith("stepping");
  return h("section", { class: "card", key: "threads" }, h("h2", {}, `Threads of ${name}`, at && h("small", {}, `${clock(at)}; the call that runs is the last one`), h("button", { class: "chip", onclick: () => again(of, name) }, "again"), h("button", { class: "quiet", "aria-label": "close", onclick: close }, "✕")),
    !found ? h("p", { class: "empty" }, "Asking…") : found.why ? h("p", { class: "alert" }, found.why)
      : [...found].sort((a, b) => works(b) - works(a)).map((each, n) => h("details", { key: `${each.threadName} ${n}`, open: works(each), ontoggle: toEnd }, h("summary", {}, each.threadName), h("pre", { tabindex: 0 }, each.stringifiedThreadInfo.slice(each.threadName.length + 3) || "It runs no Python now."))));
}

export function logs(found, ended) {
  if (ended || !found) return null;
  return h("section", { class: "card" }, h("h2", {}, "Log", h("small", {}, "of all TaskManagers, the newest first")), found.length === 0 ? h("p", { class: "empty" }, "Nothing has been logged.")
    : h("ul", { class: "events log" }, [...found].reverse().map((row, i) => h("li", { key: `${row.at} ${row.tm} ${found.length - i}` }, h("time", {}, clock(row.at)),
      h("i", { class: `dot ${["ERROR", "CRITICAL"].includes(row.level) ? "bad" : row.level === "WARNING" ? "warn" : "dim"}` }), h("code", {}, `${row.where || row.tm}\n${row.text}`)))));
}

export function settings(view) {
  return h("section", { class: "card" }, h("h2", {}, "Settings"), h("dl", { class: "settings" }, Object.entries({ job: view.job, ...view.config }).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))));
}
