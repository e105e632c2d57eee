// The view of functions: a row for each.

import { SearchField, element, setText } from "../elements.js";
import { bytes, count, duration, rate, visible } from "../format.js";
import { VirtualTable } from "../virtual_table.js";

export const functions = {
  id: "functions",
  title: "Functions",
  icon: "M12.5 4.5c-2-1-3 .2-3.3 2L7.8 14c-.3 1.8-1.3 2.6-3 1.8M6.5 9h6M13 12l3.5 4M16.5 12L13 16",
  topics: ["functions", "tasks"],
  create: (context) => new Functions(context),
};

const COLUMNS = [
  { id: "name", title: "Function", width: 96, grow: 3, value: (row) => row.name, text: shownName, full: shownName },
  number("open", "Open", 52, (row) => row.open, (row) => count(row.open), { hint: "Tasks now", from: 560 }),
  number("done", "Done", 58, (row) => row.done, (row) => count(row.done), { hint: "Since the scheduler's start" }),
  { ...number("failed", "Failed", 52, (row) => row.failed, (row) => count(row.failed)), style: (row) => (row.failed ? "bad" : "muted") },
  number("rate", "Rate", 66, (row) => row.rate, (row) => rate(row.rate), { hint: "Done per second", from: 640 }),
  time("mean", "Mean", (row) => (row.done ? row.mean : null), { hint: "All results since the scheduler's start" }),
  time("p50", "Median", (row) => row.p50, { hint: "Executions in the window", from: 640 }),
  time("p99", "p99", (row) => row.p99, { hint: "Executions in the window, accurate to 4.5 percent", from: 760 }),
  time("longest", "Longest", (row) => row.longest, { hint: "Executions in the window", from: 760 }),
  number("recent", "In window", 80, (row) => row.recent, (row) => count(row.recent), { hint: "Executions that the server keeps", from: 1200 }),
  number("clients", "Clients", 60, (row) => row.clients, (row) => count(row.clients), { from: 1000 }),
  number("bytes", "Size", 66, (row) => row.bytes, (row) => bytes(row.bytes), { hint: "Size of the pickled function", from: 1200 }),
];

/** The function's name, with the names that its tasks were given. */
function shownName(row) {
  return row.task_names ? `${visible(row.name)} (${visible(row.task_names)})` : visible(row.name);
}

function number(id, title, width, value, text, more) {
  return { id, title, width, value, text, right: true, ...more };
}

function time(id, title, value, more) {
  return number(id, title, 66, (row) => value(row) ?? -1, (row) => (value(row) === null ? "–" : duration(value(row) * 1000)), more);
}

/** Functions with the same name, for example lambdas, get keys by their order. */
function keyed(rows) {
  const seen = new Map();
  for (const row of rows) {
    const before = seen.get(row.name) ?? 0;
    seen.set(row.name, before + 1);
    row.key = `${before} ${row.name}`;
  }
  return rows;
}

class Functions {
  constructor({ model, openRow }) {
    this.model = model;
    this.search = new SearchField("Filter by name", () => this.update());
    this.note = element("span", { class: "note" });
    this.table = new VirtualTable({
      label: "Functions",
      columns: COLUMNS,
      key: (row) => row.key,
      sort: { column: "done", direction: "descending" },
      onOpen: (row) => openRow("function", row),
    });
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Functions" }), this.note),
      element("div", { class: "tools" }, this.search.element),
      this.table.element,
    );
  }

  handleKey(event) {
    return this.table.handleKey(event);
  }

  update() {
    const all = keyed(this.model.functions ?? []);
    const shown = all.filter((row) => this.search.matches(row.name, row.task_names));
    const left = this.model.leftOut("functions");
    const number = shown.length === all.length ? `${count(all.length)} in all` : `${count(shown.length)} of ${count(all.length)}`;
    const isKnown = Boolean(this.model.functions); // before the first snapshot "0 in all" would be wrong
    setText(this.note, !isKnown ? "" : left ? `${number}, and ${count(left)} that the scheduler does not publish` : number);
    this.table.setEmpty(all.length ? "No function matches the filter" : isKnown ? "No functions yet" : "Waiting for data");
    this.table.setRows(shown);
  }
}
