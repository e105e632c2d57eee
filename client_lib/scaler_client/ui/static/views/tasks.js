// The view of tasks: ended ones, newest first, or running ones.

import { SearchField, element, select } from "../elements.js";
import { clock, count, cut, duration, span, visible } from "../format.js";
import { VirtualTable } from "../virtual_table.js";

export const tasks = {
  id: "tasks",
  title: "Tasks",
  icon: "M7 5h9M7 10h9M7 15h9M3.5 5h.01M3.5 10h.01M3.5 15h.01",
  topics: ["tasks", "running"],
  create: (context) => new Tasks(context),
};

const STATES = [
  ["all", "Ended"],
  ["good", "Succeeded"],
  ["failed", "Failed"],
  ["neutral", "Cancelled, taken back"],
  ["running", "Running now"],
];
const DURATIONS = [[0, "Any duration"], [10, "≥ 10 ms"], [100, "≥ 100 ms"], [1000, "≥ 1 s"], [10_000, "≥ 10 s"], [60_000, "≥ 1 min"]];

/** The columns that fit. The details of a task have the others. */
const COLUMNS = [
  { id: "end", title: "Ended", width: 104, from: 480, text: (row) => (row.running ? "–" : clock(row.end, 1)) },
  { id: "name", title: "Task", width: 76, grow: 3, text: (row) => cut(row.name, 120), full: (row) => visible(row.name), style: (row) => (row.outcome.kind === "failed" ? "error" : "") },
  { id: "state", title: "State", width: 88, from: 640, text: shortState, full: (row) => row.outcome.name, style: (row) => STATE_CLASSES[row.outcome.kind] },
  { id: "duration", title: "Duration", width: 66, right: true, text: (row) => duration(row.duration) },
  { id: "error", title: "Error", width: 60, grow: 4, text: (row) => cut(row.error, 200), full: (row) => visible(row.error), style: () => "error" },
  { id: "worker", title: "Worker", width: 60, grow: 2, text: (row) => cut(row.workerLabel, 24) || "–", full: (row) => visible(row.workerLabel) },
  { id: "client", title: "Client", width: 170, grow: 1, from: 1000, text: (row) => visible(row.clientName) || "–", full: (row) => visible(row.clientName) },
  { id: "waited", title: "Waited", width: 70, right: true, from: 1300, hint: "Time from its submission to its start", text: (row) => duration(row.start - row.submitted) },
  { id: "attempt", title: "Attempt", width: 64, right: true, from: 1300, text: (row) => String(row.attempt) },
  { id: "id", title: "Id", width: 80, right: true, from: 1300, text: (row) => row.id, full: (row) => row.id },
];

function shortState(row) {
  return SHORT_STATES[row.outcome.name] ?? row.outcome.name;
}

const SHORT_STATES = { "exception, retryable": "retried" };
const STATE_CLASSES = { good: "good", failed: "bad", neutral: "muted", running: "warn" };

class Tasks {
  constructor({ model, open }) {
    this.model = model;
    this.shown = [];
    this.next = 0;
    this.search = new SearchField("Search by task, id, worker, client or error", () => this.#refilter());
    this.state = select(STATES, "all", { "aria-label": "State" });
    this.least = select(DURATIONS, "0", { "aria-label": "Duration" });
    for (const control of [this.state, this.least]) control.addEventListener("change", () => this.#refilter());
    this.note = element("span", { class: "note" });
    this.missed = element("span", { class: "note" });
    this.table = new VirtualTable({
      label: "Tasks, newest first",
      columns: COLUMNS,
      key: (row) => row.key ?? row.number,
      onOpen: open,
      onScroll: () => !this.table.scrolled && this.update(),
      rowClass: (row) => (row.outcome.kind === "failed" ? "failed" : ""),
    });
    this.fresh = element("button", { type: "button", class: "fresh", hidden: true });
    this.fresh.addEventListener("click", () => {
      this.table.scrollToTop();
      this.table.element.focus();
      this.#refilter();
    });
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Tasks" }), this.note, this.missed),
      element("div", { class: "tools" }, this.search.element, this.state, this.least),
      element("div", { class: "holder" }, this.table.element, this.fresh),
    );
  }

  handleKey(event) {
    return this.table.handleKey(event);
  }

  update() {
    if (this.table.scrolled && this.state.value !== "running" && this.next <= this.model.executions.next) this.#announce();
    else this.#refilter();
  }

  /** The list stays as it is while the user reads further down. */
  #announce() {
    const fresh = this.#found(this.next).length;
    this.fresh.hidden = !fresh;
    this.fresh.textContent = `${count(fresh)} new ↑`;
    this.#updateNote();
  }

  #refilter() {
    this.shown = this.state.value === "running" ? this.#running() : this.#found(0);
    this.next = this.model.executions.next;
    this.fresh.hidden = true;
    this.table.setEmpty(this.#emptyText());
    this.table.setRows(this.shown);
    this.#updateNote();
  }

  #updateNote() {
    const all = this.state.value === "running" ? this.model.running.length : this.model.executions.length;
    const what = this.state.value === "running" ? "running" : `in the last ${span(this.model.windowSeconds)}`;
    this.note.textContent = this.#isPlain ? `${count(all)} ${what}` : `${count(this.shown.length)} of ${count(all)} ${what}`;
    const { missed } = this.model.executions;
    this.missed.textContent = missed ? `${count(missed)} events were lost` : "";
  }

  get #isPlain() {
    return this.search.isEmpty && this.least.value === "0" && (this.state.value === "all" || this.state.value === "running");
  }

  #emptyText() {
    if (this.state.value === "running") return this.model.running.length ? "No running task matches" : "Nothing runs now";
    return this.model.executions.length ? "No task in the window matches" : "No tasks in the window yet";
  }

  /** The executions that match and are numbered `from` or higher, newest first. */
  #found(from) {
    const { executions } = this.model;
    const kind = this.state.value;
    const least = Number(this.least.value);
    const found = [];
    for (let n = 0; n < executions.length; n++) {
      const each = executions.newest(n);
      if (each.number < from) break;
      if (kind !== "all" && each.outcome.kind !== kind) continue;
      if (least && !(each.duration >= least)) continue;
      if (this.#matches(each)) found.push(each);
    }
    return found;
  }

  #running() {
    const least = Number(this.least.value);
    return this.model.running.map((row) => runningTask(row, this.model)).filter((each) => each.duration >= least && this.#matches(each));
  }

  #matches(row) {
    return this.search.isEmpty || this.search.matches(row.name, row.function?.name ?? "", row.id, row.workerLabel, row.clientName, row.error);
  }
}

/** A row of `running` in the shape of an execution. */
export function runningTask(row, model) {
  return {
    running: true,
    key: `running ${row.client} ${row.id}`,
    id: row.id,
    client: row.client,
    clientName: row.client_name ?? "",
    attempt: row.attempt,
    worker: row.worker,
    workerName: row.worker_name,
    workerLabel: row.worker_name || `worker ${row.worker}`,
    name: row.name,
    submitted: NaN,
    start: row.start * 1000,
    end: NaN,
    duration: Math.max(0, model.now - row.start * 1000),
    outcome: { name: "running", kind: "running" },
    error: "",
  };
}
