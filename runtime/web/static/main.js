// The page: where it is (the address), what is known, and what is shown of it.
import { h, render, rate, span, moment, cut } from "./dom.js";
import { ask, follow, login, order, outcome } from "./live.js";
import { Charts, Timeline, legend } from "./timeline.js";
import { Plan, graph } from "./graph.js";
import { checkpointList, gantt, savepointList } from "./checkpoints.js";
import { flame } from "./flame.js";
import { stateView } from "./state.js";
import * as panels from "./panels.js";

const TABS = [["", "Overview"], ["checkpoints", "Checkpoints"], ["exceptions", "Exceptions"], ["time", "Event time"], ["flame", "Flame graph"], ["state", "State"], ["workers", "TaskManagers"], ["settings", "Settings"]];
const root = document.getElementById("app");
const s = { rights: {}, notes: [], only: "", order: "graph", flameKind: "full" };
let unfollow = null, due = false;

function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; render(root, page()); });
}

function where() {
  const [, job = "", tab = ""] = decodeURIComponent(location.hash).split("/");
  return { job, tab };
}

function go() {
  const { job, tab } = where();
  if (job !== s.job) {
    unfollow?.();
    Object.assign(s, { job, view: null, list: null, away: null, chosen: null, checkpoint: null, found: null, held: null, logs: null, flame: null, flameOf: null, zoomed: [], sizes: null, answers: [], threads: null, plan: new Plan(), timeline: new Timeline() });
    unfollow = follow(job, hear);
  }
  s.tab = tab;
  look();
  draw();
}

function hear(kind, said) {
  if (kind === "away") {
    s.away = { ...said, since: s.away?.since || Date.now() };
  } else {
    s.away = null;
    if (kind === "jobs") {
      s.list = said;
      if (!said.jobs.some((job) => job.status === s.only)) s.only = "";
    }
    else { s.view = said.view; s.timeline.add(said.timeline); s.charts?.update(); look(); }
  }
  document.title = s.view ? `${s.view.name}: ${s.view.status} · Understudy` : "Understudy";
  draw();
}

// What a tab wants beside the view.
async function look() {
  if (!s.view) return;
  const { job } = s;
  try {
    if (s.tab === "time" && !s.view.ended) s.held = await ask(`page/${job}/watermarks`);
    if (s.tab === "flame" && !s.view.ended) await lookAtFlames(job);
    if ((s.tab === "state" || (s.tab === "" && s.chosen != null)) && !s.view.ended) s.sizes = await ask(`page/${job}/state`);
    if (s.tab === "workers" && !s.view.ended) s.logs = await ask(`page/${job}/logs`);
    if (s.tab === "checkpoints") {
      const list = s.view.checkpoints.list, id = s.checkpoint ?? (list.find((each) => each.status === "completed") || list[0])?.id;
      const known = list.find((each) => each.id === id);
      if (id != null && !(s.found?.id === id && s.found.status === known?.status && s.found.acked === known?.acked)) s.found = await ask(`page/${job}/checkpoints/${id}`);
    }
  } catch (error) { if (s.tab === "checkpoints") s.checkpoint = null; else if (s.tab === "time") s.held = [{ operator: error.message, path: [], advice: "" }]; }
  if (job === s.job) draw();
}

// Whoever asks has the vertex sampled again, once what is known is out of date.
async function lookAtFlames(job) {
  s.flameOf ??= s.view.vertices[s.chosen ?? 0].id;
  const [of, kind] = [s.flameOf, s.flameKind];
  const found = await ask(`jobs/${job}/vertices/${encodeURIComponent(of)}/flamegraph?type=${kind}`).catch((error) => ({ why: error.message }));
  if (job === s.job && of === s.flameOf && kind === s.flameKind) s.flame = found;
}

// Of a TaskManager, by its id, or of the JobManager.
async function lookAtThreads(of, name) {
  const { job } = s;
  s.threads = { of, name, found: null };
  draw();
  const found = await ask(of ? `taskmanagers/${encodeURIComponent(of)}/thread-dump` : "jobmanager/thread-dump").then((said) => said.threadInfos, (error) => ({ why: error.message }));
  if (job === s.job && s.threads?.of === of) s.threads = { of, name, at: Date.now(), found };
  draw();
}

const steerFlames = {
  vertex: (id) => { Object.assign(s, { flameOf: id, flame: null, zoomed: [] }); look(); draw(); },
  kind: (name) => { Object.assign(s, { flameKind: name, flame: null, zoomed: [] }); look(); draw(); },
  zoom: (path) => { s.zoomed = path; draw(); },
};

async function question(asked) {
  let found;
  try { found = { text: JSON.stringify((await order(`page/${s.job}/ask`, asked)).answer, null, 2) }; } catch (error) { found = { text: error.message, bad: true }; }
  const said = [asked.key !== undefined && `key ${JSON.stringify(asked.key)}`, JSON.stringify(asked.question)].filter(Boolean).join(", ");
  s.answers = [{ operator: asked.operator, asked: said, ...found, key: Math.random() }, ...s.answers].slice(0, 10);
  draw();
}

function note(text, kind = "", link = "") {
  const one = { text, kind, link, key: Math.random() };
  s.notes.push(one);
  draw();
  if (kind !== "bad") setTimeout(() => dismiss(one), 12_000);
}
const dismiss = (one) => { s.notes = s.notes.filter((each) => each !== one); draw(); };

// ------------------------------------------------------------------------------------------------------------ orders

const ORDERS = {
  checkpoint: {
    title: "Take a checkpoint", text: "The job goes on. It is removed when newer ones are there: what you want to keep is a savepoint.", verb: "Take it",
    act: async () => {
      const { "request-id": id } = await order(`jobs/${s.job}/checkpoints`, {});
      return `checkpoint ${(await outcome(`jobs/${s.job}/checkpoints/${id}`)).checkpointId}`;
    },
  },
  savepoint: {
    title: "Take a savepoint", text: "The job goes on.", verb: "Take it", folder: true,
    act: async (form) => (await savepoint("savepoints", { "target-directory": form.folder || null, "cancel-job": false })).location,
  },
  stop: {
    title: "Stop the job", text: "It takes a savepoint, which is the last thing it does, and finishes. It can go on from there later.", verb: "Stop it", folder: true, drain: true,
    act: async (form) => (await savepoint("stop", { targetDirectory: form.folder || null, drain: form.drain })).location,
  },
  cancel: {
    title: "Cancel the job", text: "It ends at once, without a savepoint: what came since its last checkpoint is not in its state.", verb: "Cancel it", danger: true,
    act: async () => { await order(`jobs/${s.job}?mode=cancel`, null, "PATCH"); },
  },
  dispose: {
    title: "Dispose of the savepoint", text: "No job can start from it any more. This cannot be undone.", verb: "Dispose of it", danger: true,
    act: async (_, path) => { await outcome(`savepoint-disposal/${(await order("savepoint-disposal", { "savepoint-path": path }))["request-id"]}`); return path; },
  },
  restart: {
    title: "Restart the job from a savepoint", text: "It starts again, as a job of its own, with the program that was submitted, and goes on from the savepoint.", verb: "Restart it", path: true,
    act: async (form) => {
      const { job } = s, body = { savepointPath: form.path, cancelJob: form.cancel, allowNonRestoredState: form.leave };
      const { jobid } = await outcome(`jobs/${job}/restart/${(await order(`jobs/${job}/restart`, body))["request-id"]}`);
      if (s.job === job) location.hash = `#/${jobid}`;
      return `job-${jobid}`;
    },
  },
  start: { title: "Start a job from this savepoint", text: "Where the program is, changed or not, this does; the job here should have stopped before:" },
};

async function savepoint(verb, body) {
  const { "request-id": id } = await order(`jobs/${s.job}/${verb}`, body);
  return outcome(`jobs/${s.job}/savepoints/${id}`);
}

async function confirm(event) {
  event.preventDefault();
  const what = ORDERS[s.asked], form = event.target.elements;
  const given = { folder: form.folder?.value.trim(), drain: form.drain?.checked, path: form.path?.value.trim(), leave: form.leave?.checked, cancel: s.atAsk }, about = s.about;
  s.asked = null;
  note(`${what.title}: under way`);
  try {
    const path = await what.act(given, about);
    note(path ? `${what.title}: done` : `${what.title}: ordered`, "ok", path);
  } catch (error) {
    note(`${what.title} failed: ${error.message}`, "bad");
    if (error.status === 401) { s.away = { why: error.message, status: 401, since: Date.now() }; draw(); }
  }
}

const choose_order = (verb, about) => { Object.assign(s, { asked: verb, about, atAsk: !s.view.ended }); draw(); };
// From this savepoint, or else the newest there is; where that cannot be, with why, and with what to type.
const choose_restart = (path) => choose_order(mayRestart() ? "restart" : "start", path ?? (s.view.checkpoints.savepoints[0]?.path || s.view.retained || ""));
const mayRestart = () => s.rights.orders && !s.away && !s.view.noRestart;
const command = (path) => `understudy run PROGRAM.py --from-savepoint ${quoted(path)}\n\n# or, in Python\ncluster.submit(env, from_savepoint=${JSON.stringify(path)})`;
const quoted = (path) => `'${path.replaceAll("'", "'\\''")}'`;

function restartParts() {
  const runs = s.atAsk;
  return [runs && h("p", { class: "alert" }, `It is ${s.view.status}, and is cancelled first. What it has done since the savepoint it does again: records that sinks have committed since then come twice. To have none twice, leave it, stop the job with a savepoint, and restart it from that.`),
    h("label", {}, "Savepoint", h("input", { name: "path", value: s.about, required: true, list: "savepoints", autocomplete: "off", spellcheck: "false" })),
    h("datalist", { id: "savepoints" }, s.view.checkpoints.savepoints.map((each) => h("option", { value: each.path }))),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "leave" }), "leave state behind that the program does not have"),
    h("details", {}, h("summary", {}, "With a changed program"), h("p", {}, "Where the program is, this does; the job here should have stopped before:"), h("pre", { tabindex: 0 }, command(s.about || "SAVEPOINT")))];
}

function dialog() {
  const what = ORDERS[s.asked];
  const shut = () => { s.asked = null; draw(); };
  return what && h("dialog", { key: s.asked, ref: (element) => queueMicrotask(() => element.showModal()), onclose: shut, "aria-labelledby": "asked" },
    h("form", { onsubmit: confirm }, h("h2", { id: "asked" }, what.title), h("p", {}, h("b", {}, s.view.name), ". ", what.text),
      s.asked === "start" && s.rights.orders && s.view.noRestart && h("p", { class: "alert" }, `The page cannot restart it: ${s.view.noRestart}.`),
      what.path ? restartParts() : s.about && h("pre", { tabindex: 0 }, s.asked === "start" ? command(s.about) : s.about),
      what.folder && h("label", {}, "Folder, below the root of savepoints", h("input", { name: "folder", placeholder: "the root itself", autocomplete: "off" })),
      what.drain && h("label", { class: "check" }, h("input", { type: "checkbox", name: "drain" }), "end its data first (drain): operators emit their final results, and nothing comes after it"),
      h("p", { class: "buttons" }, h("button", { type: "button", autofocus: true, onclick: shut }, what.act ? "Leave it" : "Close"), what.act && h("button", { class: what.danger || (what.path && s.atAsk) ? "danger" : "primary" }, what.path && s.atAsk ? "Cancel and restart it" : what.verb))));
}

// ------------------------------------------------------------------------------------------------------------- parts

function theme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("understudy-theme", next); } catch { /* it holds for this page */ }
  s.charts?.build();
  draw();
}

// An answer that there is no such job is one.
function connection() {
  const away = s.away?.status !== 404 && s.away, waits = !s.away && !s.view && !s.list;
  return h("span", { class: `live ${away ? "off" : waits ? "" : "on"}`, role: "status" }, h("i", { class: `dot ${away ? "bad" : waits ? "" : "ok"}` }), away ? (away.status === 500 ? "no update" : "not connected") : waits ? "connecting" : s.rights.live === false ? "history" : "live");
}

const header = () => h("header", {},
  h("a", { href: "#/", class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 20, height: 20 }), "Understudy"),
  h("nav", { "aria-label": "where" }, s.job && [h("a", { href: "#/" }, "Jobs"), h("span", {}, "/"), h("b", {}, s.view ? s.view.name : s.job.slice(0, 8))]),
  connection(),
  h("button", { class: "quiet", onclick: theme, "aria-label": "light or dark" }, "◐"));

function askToken() {
  const send = async (event) => {
    event.preventDefault();
    try { await login(event.target.elements.token.value); s.job = null; start(); } catch (error) { note(error.status === 401 ? "This is not the token that is wanted. Is it complete, and of this cluster?" : error.message, "bad"); }
  };
  return h("section", { class: "card narrow" }, h("h2", {}, "A token is wanted"), h("p", { class: "dim" }, "It is the one that this page is served with: web_token= of the cluster, or --token of `understudy dashboard`. Who has started it knows it."), h("form", { onsubmit: send },
    h("label", {}, "Token", h("input", { name: "token", type: "password", autocomplete: "current-password", autofocus: true })), h("p", { class: "buttons" }, h("button", { class: "primary" }, "Show me the jobs"))));
}

function head(view) {
  const latest = view.checkpoints.list.find((each) => each.status === "completed");
  const columns = s.timeline.columns;
  const facts = [[span((view.to || view.at) - view.from), view.ended ? "was its time" : "since its start"], !view.ended && [rate(columns.in.at(-1) ?? 0), "records in"], [view.restarts, view.restarts === 1 ? "restart" : "restarts"],
    [view.checkpoints.completed, "checkpoints"], latest && !view.ended && [span(view.at - latest.at), "since the last one"], [`${view.running}/${view.total}`, "tasks"]];
  const may = s.rights.orders && !view.ended && !s.away;
  return h("div", { class: "head" }, h("h1", {}, view.name, panels.pill(view.status)),
    h("p", { class: "facts" }, facts.filter(Boolean).map(([value, text]) => h("span", {}, h("b", {}, value), ` ${text}`))),
    s.rights.orders && h("p", { class: "buttons" }, !view.ended && [["checkpoint", "Checkpoint…"], ["savepoint", "Savepoint…"], ["stop", "Stop…"], ["cancel", "Cancel…"]].map(([verb, text]) =>
      h("button", { class: verb === "cancel" ? "danger" : "", disabled: !may, onclick: () => choose_order(verb) }, text)), h("button", { disabled: !!s.away, onclick: () => choose_restart() }, "Restart…")),
    view.next && h("p", { class: "facts" }, h("span", {}, view.ended ? "It was restarted from a savepoint, and goes on as " : "It is restarted from a savepoint, as ", h("a", { href: `#/${view.next}` }, `job-${view.next}`))),
    view.why ? h("p", { class: "alert" }, view.why) : panels.recent(view, view.at) && h("p", { class: "alert past" }, `It runs again; it ${panels.recent(view, view.at)}`));
}

function overview(view) {
  const choose = (i) => { s.chosen = s.chosen === i ? null : i; look(); draw(); };
  const upright = innerWidth < 700;
  return h("div", { key: "overview" },
    h("section", { class: "card" }, h("h2", {}, "Timeline", h("small", {}, view.ended ? `${moment(view.from)} to ${moment(view.to)}` : `since ${moment(s.timeline.columns.at[0] || view.from)}`)), legend(),
      h("div", { class: "charts", own: true, key: s.job, ref: (host) => queueMicrotask(() => { s.charts?.close(); s.charts = new Charts(host, s.timeline); }) })),
    h("section", { class: "card" }, h("h2", {}, "Graph", h("small", {}, `${view.vertices.length} vertices, ${view.total} tasks`)), h("div", { class: "scroll plan-box", tabindex: 0, "aria-label": "graph" }, graph(s.plan, view, s.chosen, choose, upright, panels.failedLast))),
    s.chosen != null && view.vertices[s.chosen] && panels.vertexPanel(view, s.chosen, s.sizes, () => choose(s.chosen)),
    h("div", { class: "two" }, panels.suspects(view, choose), panels.eventList(s.timeline)));
}

function tab(view) {
  switch (s.tab) {
    case "checkpoints": return h("div", { key: "checkpoints" }, savepointList(view, { verb: mayRestart() ? "Restart from it…" : "Start from it…", start: choose_restart, dispose: s.rights.orders && !s.away && ((path) => choose_order("dispose", path)) }), checkpointList(view, s.found?.id, (id) => { s.checkpoint = id; s.all = false; look(); }), gantt(view, s.found, s.order, (order) => { s.order = order; draw(); }, s.all, () => { s.all = true; draw(); }));
    case "exceptions": return h("div", { key: "exceptions" }, panels.exceptions(view));
    case "time": return h("div", { key: "time" }, panels.watermarks(s.held, view.ended));
    case "flame": return h("div", { key: "flame" }, flame(view, s.flameOf ?? view.vertices[s.chosen ?? 0].id, s.flame, s.flameKind, s.zoomed, steerFlames));
    case "state": return h("div", { key: "state" }, stateView(view, s.sizes, s.answers, s.rights.orders && !view.ended ? question : null));
    case "workers": return h("div", { key: "workers" }, panels.taskManagers(view, view.ended ? null : lookAtThreads), panels.threads(s.threads, lookAtThreads, () => { s.threads = null; draw(); }), panels.logs(s.logs, view.ended));
    case "settings": return h("div", { key: "settings" }, panels.settings(view));
    default: return overview(view);
  }
}

function page() {
  const wantsToken = s.away?.status === 401, missing = s.away?.status === 404;
  if (!s.view || s.tab) { s.charts?.close(); s.charts = null; }
  return [header(),
    s.away && !wantsToken && h("p", { class: "away", role: "alert" }, h("b", {}, missing ? "Not found. " : s.away.status === 403 ? "Refused. " : s.away.status === 500 ? `No update since ${moment(s.away.since)}. ` : `Not connected since ${moment(s.away.since)}. `), s.away.why),
    h("main", { class: s.away && s.view ? "stale" : "" }, wantsToken ? askToken() : !s.job ? panels.jobList(s.list, (id) => { location.hash = `#/${id}`; }, s.only, (status) => { s.only = status; draw(); })
      : !s.view ? h("p", { class: "empty" }, missing ? "" : "Asking…")
        : [head(s.view), h("nav", { class: "tabs", "aria-label": "views" }, TABS.map(([name, text]) => h("a", { href: `#/${s.job}/${name}`, "aria-current": s.tab === name ? "page" : null }, text,
          name === "exceptions" && s.view.failures.length > 0 && h("small", {}, s.view.failures.length)))), tab(s.view)]),
    s.asked && dialog(),
    h("div", { class: "notes", "aria-live": "polite" }, s.notes.map((one) => h("p", { key: one.key, class: one.kind }, cut(one.text, 600), one.link && h("code", {}, one.link), h("button", { class: "quiet", "aria-label": "dismiss", onclick: () => dismiss(one) }, "✕"))))];
}

async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    await login(token).catch(() => {});
  }
  await ask("page").then((rights) => { s.rights = rights; }, (error) => { s.away = { why: error.message, status: error.status, since: Date.now() }; });
  go();
}

addEventListener("hashchange", go);
addEventListener("resize", draw);
document.documentElement.addEventListener("theme", () => s.charts?.build());
start();
