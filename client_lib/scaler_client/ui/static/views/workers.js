// A row for each worker: where it is, what it does, what it takes.

import { element, setText } from "../elements.js";
import { bytes, count, cut, duration, percent, rate, visible } from "../format.js";
import { VirtualTable } from "../virtual_table.js";
import { SearchField } from "../search_field.js";

export const workers = {
  id: "workers",
  title: "Workers",
  icon: "M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.01M7 13.5h.01M11 6.5h2.5M11 13.5h2.5",
  topics: ["workers"],
  create: (context) => new Workers(context),
};

const [AGENT_IS_HERE, HOLDS_TASK, RUNS_LONG, DOES_NOT_ANSWER, RETIRES] = [1, 2, 4, 8, 16];

function stateOf(row) {
  if (row.flags & DOES_NOT_ANSWER) return "silent";
  if (!(row.flags & AGENT_IS_HERE)) return "no agent";
  if (row.flags & RETIRES) return "retires";
  if (row.flags & RUNS_LONG) return "long task";
  return row.running ? "busy" : row.flags & HOLDS_TASK ? "has tasks" : "idle";
}

const STATE_CLASSES = { silent: "bad", "no agent": "bad", retires: "muted", "long task": "good", busy: "good", "has tasks": "good", idle: "muted" };

const COLUMNS = [
  named("name", "Worker", 130, 2, (row) => row.name),
  named("host", "Host", 84, 1, (row) => row.host),
  { id: "state", title: "State", width: 76, value: stateOf, text: stateOf, style: (row) => STATE_CLASSES[stateOf(row)] },
  { id: "task", title: "Runs", width: 130, grow: 2, value: (row) => row.task, text: (row) => cut(row.task, 60), full: (row) => visible(row.task) },
  number("seconds", "For", 76, (row) => (row.task ? row.task_seconds : -1), (row) => (row.task ? duration(row.task_seconds * 1000) : "–")),
  number("cpu", "CPU", 58, (row) => row.cpu, (row) => percent(row.cpu), "Of one core"),
  number("rss", "Memory", 74, (row) => row.rss, (row) => bytes(row.rss)),
  number("free", "Free", 44, (row) => row.free, (row) => count(row.free), "Free slots"),
  number("queued", "Queued", 62, (row) => row.queued, (row) => count(row.queued), "Tasks it has and does not run yet"),
  number("suspended", "Susp.", 50, (row) => row.suspended, (row) => count(row.suspended), "Tasks that wait for tasks of their own"),
  number("done", "Done", 76, (row) => row.done, (row) => count(row.done)),
  number("done_rate", "Rate", 72, (row) => row.done_rate, (row) => rate(row.done_rate), "Done a second"),
  number("lag", "Lag", 64, (row) => row.lag, (row) => duration(row.lag * 1000), "From a heartbeat of its agent's to the echo"),
  number("agent_cpu", "Agent CPU", 82, (row) => row.agent_cpu, (row) => percent(row.agent_cpu)),
  number("agent_rss", "Agent mem.", 82, (row) => row.agent_rss, (row) => bytes(row.agent_rss)),
  { id: "capabilities", title: "Capabilities", width: 96, grow: 1, value: (row) => row.capabilities, text: (row) => visible(row.capabilities), full: (row) => visible(row.capabilities) },
  { id: "version", title: "Python", width: 96, value: languageOf, text: languageOf, full: languageOf },
  number("pid", "PID", 62, (row) => row.pid, (row) => String(row.pid)),
];

function languageOf(row) {
  return visible(`${row.language} ${row.version}`.trim());
}

function named(id, title, width, grow, value) {
  return { id, title, width, grow, value, text: (row) => visible(value(row)), full: (row) => visible(value(row)) };
}

function number(id, title, width, value, text, hint) {
  return { id, title, width, value, text, hint, right: true };
}

class Workers {
  constructor({ model }) {
    this.model = model;
    this.search = new SearchField("Filter by name, host, task or capability", () => this.update());
    this.note = element("span", { class: "note", "aria-live": "off" });
    this.table = new VirtualTable({
      label: "Workers",
      columns: COLUMNS,
      key: (row) => row.id,
      sort: { column: "name", direction: "ascending" },
    });
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Workers" }), this.note),
      element("div", { class: "tools" }, this.search.element),
      this.table.element,
    );
  }

  update() {
    const all = this.model.workers ?? [];
    const shown = all.filter((row) => this.search.matches(row.name, row.host, row.task, row.capabilities, stateOf(row)));
    const left = this.model.leftOut("workers");
    const number = shown.length === all.length ? `${count(all.length)} in all` : `${count(shown.length)} of ${count(all.length)}`;
    setText(this.note, left ? `${number}, and ${count(left)} that the scheduler does not publish` : number);
    this.table.setEmpty(all.length ? "No worker matches the filter" : "No workers are connected");
    this.table.setRows(shown);
  }
}
