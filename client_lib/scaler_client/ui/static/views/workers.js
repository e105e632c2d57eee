// The view of workers: a row for each.

import { SearchField, element, setText } from "../elements.js";
import { WORKER_STATE_CLASSES, bytes, count, cut, duration, percent, rate, visible, workerState } from "../format.js";
import { VirtualTable } from "../virtual_table.js";

export const workers = {
  id: "workers",
  title: "Workers",
  icon: "M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.01M7 13.5h.01M11 6.5h2.5M11 13.5h2.5",
  topics: ["workers", "tasks", "clients"],
  create: (context) => new Workers(context),
};

const COLUMNS = [
  named("name", "Worker", 96, 2, (row) => row.name),
  { id: "state", title: "State", width: 68, value: workerState, text: workerState, style: (row) => WORKER_STATE_CLASSES[workerState(row)] },
  { id: "task", title: "Runs", width: 90, grow: 2, value: (row) => row.task, text: (row) => cut(row.task, 60), full: (row) => visible(row.task) },
  number("seconds", "For", 76, (row) => (row.task ? row.task_seconds : -1), (row) => (row.task ? duration(row.task_seconds * 1000) : "–"), { from: 640 }),
  number("cpu", "CPU", 50, (row) => row.cpu, (row) => percent(row.cpu), { hint: "Of one core", from: 640 }),
  number("rss", "Memory", 72, (row) => row.rss, (row) => bytes(row.rss), { from: 640 }),
  number("queued", "Queued", 62, (row) => row.queued, (row) => count(row.queued), { hint: "Tasks that it holds and does not run yet", from: 760 }),
  number("suspended", "Suspended", 80, (row) => row.suspended, (row) => count(row.suspended), { hint: "Tasks that wait for their child tasks", from: 1300 }),
  number("done", "Done", 66, (row) => row.done, (row) => count(row.done), { from: 560 }),
  number("done_rate", "Rate", 66, (row) => row.done_rate, (row) => rate(row.done_rate), { hint: "Done per second", from: 860 }),
  { ...named("host", "Host", 110, 1, (row) => row.host), from: 960 },
  { id: "capabilities", title: "Capabilities", width: 110, grow: 1, from: 1300, value: (row) => row.capabilities, text: (row) => visible(row.capabilities), full: (row) => visible(row.capabilities) },
  { ...named("environment", "Environment", 110, 0, (row) => row.environment), from: 1600 },
  number("free", "Free", 50, (row) => row.free, (row) => count(row.free), { hint: "Free slots", from: 1400 }),
  number("lag", "Lag", 64, (row) => row.lag, (row) => duration(row.lag * 1000), { hint: "Time from a heartbeat of its agent to the echo", from: 1400 }),
  { id: "version", title: "Python", width: 150, from: 1600, value: languageOf, text: languageOf, full: languageOf },
  number("pid", "PID", 62, (row) => row.pid, (row) => String(row.pid), { from: 1600 }),
];

function languageOf(row) {
  return visible(`${row.language} ${row.version}`.trim());
}

function named(id, title, width, grow, value) {
  return { id, title, width, grow, value, text: (row) => visible(value(row)), full: (row) => visible(value(row)) };
}

function number(id, title, width, value, text, more) {
  return { id, title, width, value, text, right: true, ...more };
}

class Workers {
  constructor({ model, openRow }) {
    this.model = model;
    this.search = new SearchField("Filter by name, host, task or capability", () => this.update());
    this.note = element("span", { class: "note", "aria-live": "off" });
    this.table = new VirtualTable({
      label: "Workers",
      columns: COLUMNS,
      key: (row) => row.id,
      sort: { column: "name", direction: "ascending" },
      onOpen: (row) => openRow("worker", row),
    });
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Workers" }), this.note),
      element("div", { class: "tools" }, this.search.element),
      this.table.element,
    );
  }

  handleKey(event) {
    return this.table.handleKey(event);
  }

  update() {
    const all = this.model.workers ?? [];
    const shown = all.filter((row) => this.search.matches(row.name, row.host, row.task, row.capabilities, row.environment, workerState(row)));
    const left = this.model.leftOut("workers");
    const number = shown.length === all.length ? `${count(all.length)} in all` : `${count(shown.length)} of ${count(all.length)}`;
    const isKnown = Boolean(this.model.workers); // before the first snapshot "0 in all" would be wrong
    setText(this.note, !isKnown ? "" : left ? `${number}, and ${count(left)} that the scheduler does not publish` : number);
    this.table.setEmpty(all.length ? "No worker matches the filter" : isKnown ? "No workers are connected" : "Waiting for data");
    this.table.setRows(shown);
  }
}
