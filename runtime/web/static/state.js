// State: what each operator keeps, and a question to one of them.
import { bytes, count, h } from "./dom.js";
import { keyGroups } from "./panels.js";

// 3, "a", true, ["a", 3] as JSON says; whatever JSON does not know is text.
const meant = (text) => { try { return JSON.parse(text); } catch { return text; } };

export function stateView(view, found, answers, ask) {
  const rows = found || view.vertices.flatMap((vertex) => vertex.operators.filter((one) => one.states.length).map((one) => ({ operator: one.name, states: one.states, subtasks: [], outliers: [] })));
  const latest = view.checkpoints.list.find((each) => each.status === "completed");
  return [h("section", { class: "card", key: "sizes" }, h("h2", {}, "State", h("small", {}, "as of each operator's newest snapshot")),
    rows.length === 0 ? h("p", { class: "empty" }, "No operator of this job declares state.") : h("div", { class: "scroll", tabindex: 0, "aria-label": "state by operator" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["operator", "states", "size", "entries", "by subtask"].map((name) => h("th", { class: ["size", "entries"].includes(name) ? "n" : "" }, name)))),
      h("tbody", {}, rows.map((each, n) => h("tr", { key: `${each.vertex} ${each.operator} ${n}` }, h("td", {}, each.operator), h("td", {}, each.states.map((one) => h("div", {}, one.name, h("code", {}, one.kind)))),
        h("td", { class: "n" }, each.bytes == null ? "–" : bytes(each.bytes)), h("td", { class: "n" }, each.entries == null ? "–" : count(each.entries)), h("td", {}, spread(each))))))),
    rows.filter((each) => each.spread).map(keyGroups),
    latest && h("p", { class: "dim" }, `All of it was ${bytes(latest.bytes)} in checkpoint ${latest.id}.`)),
  ask && h("section", { class: "card", key: "ask" }, h("h2", {}, "Ask an operator", h("small", {}, "its on_receive answers, in the subtask that holds the key; without a key, in subtask 0")),
    h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      const form = event.target.elements, key = form.key.value.trim();
      ask({ operator: form.operator.value, question: meant(form.question.value.trim()), ...(key && { key: meant(key) }) });
    } },
    h("label", {}, "Operator", h("select", { name: "operator", "aria-label": "Operator" }, view.vertices.flatMap((vertex) => vertex.operators).map((one, n) => h("option", { key: n, value: one.name }, one.name)))),
    h("label", {}, "Key", h("input", { name: "key", placeholder: '17, "a", ["a", 17]', autocomplete: "off", spellcheck: "false" })),
    h("label", {}, "Question", h("input", { name: "question", placeholder: 'text, or JSON', autocomplete: "off", spellcheck: "false" })),
    h("button", { class: "primary" }, "Ask")),
    h("div", { "aria-live": "polite" }, answers.map((one) => h("article", { key: one.key }, h("h3", {}, one.operator, h("small", {}, ` ${one.asked}`)), h("pre", { class: one.bad ? "refused" : "", tabindex: 0 }, one.text)))))];
}

function spread(each) {
  if (each.subtasks.length < 2) return "–";
  const most = Math.max(1, ...each.subtasks.map((size) => size || 0));
  return h("span", { class: "spread" }, each.subtasks.map((size, i) => h("i", {
    key: i, class: each.outliers.includes(i) ? "busy" : "in", role: "img", vars: { "--share": `${100 * (size || 0) / most}%` },
    title: `subtask ${i}: ${size == null ? "not known" : bytes(size)}${each.outliers.includes(i) ? ", far above the mean" : ""}`,
  })), each.outliers.length > 0 && h("small", {}, ` subtask ${each.outliers.slice(0, 3).join(", ")} holds far more than the mean`));
}
