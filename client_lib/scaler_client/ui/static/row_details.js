// The dialog with the details of a worker, function or client, and its tasks.

import { element, setText } from "./elements.js";
import { bytes, clock, count, cut, duration, percent, rate, visible, workerState } from "./format.js";
import { VirtualTable } from "./virtual_table.js";

/** How many of its newest tasks are listed. */
const MAX_TASKS = 500;

const STATE_CLASSES = { good: "good", failed: "bad", neutral: "muted", running: "warn" };

/** By kind of row: how to find the row in the model, which executions belong to it, and its facts. */
const KINDS = {
  worker: {
    rows: (model) => model.workers,
    same: (left, right) => left.id === right.id,
    includes: (row) => (each) => each.worker === row.id,
    facts: workerFacts,
  },
  function: {
    rows: (model) => model.functions,
    same: (left, right) => left.name === right.name,
    includes: (row) => (each) => each.function.name === row.name,
    facts: functionFacts,
  },
  client: {
    rows: (model) => model.clients,
    same: (left, right) => left.id === right.id,
    includes: (row) => (each) => each.client === row.id,
    facts: clientFacts,
  },
};

export class RowDetails {
  /** @param openTask(execution) shows one of the tasks */
  constructor(model, openTask) {
    this.model = model;
    this.row = null;
    this.title = element("h2", { id: "row-details-title" });
    this.close = element("button", { type: "button", text: "Close" });
    this.facts = element("dl", { class: "facts pairs" });
    this.heading = element("h3");
    this.table = new VirtualTable({
      label: "Tasks, newest first",
      columns: COLUMNS,
      key: (each) => each.number,
      onOpen: openTask,
      empty: "No tasks of this row have ended in the window",
    });
    this.element = element(
      "dialog",
      { "aria-labelledby": "row-details-title", id: "row-details", class: "wide" },
      element("header", {}, this.title, this.close),
      this.facts,
      this.heading,
      element("div", { class: "listed" }, this.table.element),
    );
    this.close.addEventListener("click", () => this.element.close());
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
    document.body.append(this.element);
  }

  open(kind, row) {
    Object.assign(this, { kind: KINDS[kind], row });
    setText(this.title, visible(row.name));
    if (!this.element.open) this.element.showModal();
    this.table.scrollToTop();
    this.update();
    this.table.element.focus();
  }

  update() {
    if (!this.row || !this.element.open) return;
    const { kind, model } = this;
    const found = kind.rows(model)?.find((row) => kind.same(row, this.row));
    this.row = found ?? this.row;
    this.#showFacts([...(found ? [] : [["State", "not connected"]]), ...kind.facts(this.row, model)]);
    const tasks = model.executions.newestMatching(kind.includes(this.row), MAX_TASKS);
    const failed = tasks.filter((each) => each.failed).length;
    const all = tasks.length === MAX_TASKS ? `the newest ${count(MAX_TASKS)}` : count(tasks.length);
    setText(this.heading, `Tasks that have ended: ${all}${failed ? `, ${count(failed)} failed` : ""}`);
    this.table.setRows(tasks);
  }

  #showFacts(facts) {
    const factNames = facts.map(([name]) => name).join();
    if (factNames !== this.factNames) {
      this.factNames = factNames;
      this.values = facts.map(() => element("dd"));
      this.facts.replaceChildren(...facts.map(([name], at) => element("div", {}, element("dt", { text: name }), this.values[at])));
    }
    facts.forEach(([, value], at) => setText(this.values[at], value));
  }
}

const COLUMNS = [
  { id: "end", title: "Ended", width: 104, from: 480, text: (row) => clock(row.end, 1) },
  { id: "name", title: "Task", width: 90, grow: 2, text: (row) => cut(row.name, 60), full: (row) => visible(row.name) },
  { id: "state", title: "State", width: 76, from: 480, text: (row) => row.outcome.name, full: (row) => row.outcome.name, style: (row) => STATE_CLASSES[row.outcome.kind] },
  { id: "duration", title: "Duration", width: 66, right: true, text: (row) => duration(row.duration) },
  { id: "worker", title: "Worker", width: 76, grow: 1, from: 640, text: (row) => visible(row.workerLabel) || "–", full: (row) => visible(row.workerLabel) },
  { id: "error", title: "Error", width: 90, grow: 3, text: (row) => cut(row.error, 120), full: (row) => visible(row.error), style: () => "error" },
];

function workerFacts(row, model) {
  const client = model.clients?.find((each) => each.id === row.task_client)?.name;
  const runs = row.task ? `${visible(row.task)} (task ${row.task_id}), for ${duration(row.task_seconds * 1000)}` : "no known task";
  return [
    ["State", workerState(row)],
    ["Runs", runs],
    ...(row.task && client ? [["Client of the task", visible(client)]] : []),
    ["Host", visible(row.host)],
    ["Process", String(row.pid)],
    ["Python", visible(`${row.language} ${row.version}`.trim())],
    ["Capabilities", visible(row.capabilities) || "none"],
    ["Environment", visible(row.environment) || "none"],
    ...(row.resources ? [["Its host's resources", visible(row.resources)]] : []),
    ["CPU, memory", `${percent(row.cpu)} of a core, ${bytes(row.rss)}`],
    ["Tasks now", `${count(row.running)} running, ${count(row.queued)} queued, ${count(row.suspended)} suspended`],
    ["Free slots", count(row.free)],
    ["Done", `${count(row.done)} (${rate(row.done_rate)})`],
    ["Host agent", `${percent(row.agent_cpu)} of a core, ${bytes(row.agent_rss)}, lag ${duration(row.lag * 1000)}`],
  ];
}

function functionFacts(row) {
  const time = (seconds) => (seconds === null ? "–" : duration(seconds * 1000));
  return [
    ["Open tasks", count(row.open)],
    ["Done", `${count(row.done)} (${rate(row.rate)})`],
    ["Failed", count(row.failed)],
    ["Mean", time(row.done ? row.mean : null)],
    ["Median, p99", `${time(row.p50)}, ${time(row.p99)}`],
    ["Longest", time(row.longest)],
    ["Clients", count(row.clients)],
    ["Size", bytes(row.bytes)],
    ...(row.task_names ? [["Names given", visible(row.task_names)]] : []),
  ];
}

function clientFacts(row, model) {
  const worker = row.worker && (model.workers?.find((each) => each.id === row.worker)?.name ?? row.worker);
  return [
    ["Waiting", count(row.waiting)],
    ["Other open tasks", count(row.not_waiting)],
    ["Done", `${count(row.done)} (${rate(row.done_rate)})`],
    ["Objects", `${count(row.objects)}, ${bytes(row.object_bytes)}`],
    ["Share", visible(row.share)],
    ...(worker ? [["Lives in worker", visible(worker)]] : []),
    ["Identity", row.id],
  ];
}
