// The view of clients: a row for each.

import { SearchField, element, setText } from "../elements.js";
import { bytes, count, rate, visible } from "../format.js";
import { VirtualTable } from "../virtual_table.js";

export const clients = {
  id: "clients",
  title: "Clients",
  icon: "M7 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 16.5c.6-2.6 2.4-4 5-4s4.4 1.4 5 4M13 4a3 3 0 0 1 0 5.5M14.5 12.5c1.900.5 3.100 1.800 3.5 4",
  topics: ["clients", "tasks", "workers"],
  create: (context) => new Clients(context),
};

const COLUMNS = [
  { id: "name", title: "Client", width: 130, grow: 3, value: (row) => row.name, text: (row) => visible(row.name), full: (row) => visible(row.name) },
  number("waiting", "Waiting", 64, (row) => row.waiting, (row) => count(row.waiting), { hint: "Tasks that wait for a worker" }),
  number("not_waiting", "Others", 60, (row) => row.not_waiting, (row) => count(row.not_waiting), { hint: "Open tasks that do not wait for a worker", from: 480 }),
  number("done", "Done", 66, (row) => row.done, (row) => count(row.done), { hint: "Tasks whose answer was sent to it" }),
  number("done_rate", "Rate", 66, (row) => row.done_rate, (row) => rate(row.done_rate), { hint: "Done per second", from: 480 }),
  number("objects", "Objects", 70, (row) => row.objects, (row) => count(row.objects), { from: 640 }),
  number("object_bytes", "Their size", 84, (row) => row.object_bytes, (row) => bytes(row.object_bytes), { from: 640 }),
  { id: "share", title: "Share", width: 110, grow: 1, from: 800, value: (row) => row.share, text: (row) => visible(row.share), full: (row) => visible(row.share), hint: "The key, or the user and host, with which it shares the workers" },
  { id: "id", title: "Identity", width: 186, from: 1000, value: (row) => row.id, text: (row) => row.id },
];

function number(id, title, width, value, text, more) {
  return { id, title, width, value, text, right: true, ...more };
}

class Clients {
  constructor({ model, openRow }) {
    this.model = model;
    this.search = new SearchField("Filter by name", () => this.update());
    this.note = element("span", { class: "note" });
    this.table = new VirtualTable({
      label: "Clients",
      columns: COLUMNS,
      key: (row) => row.id,
      sort: { column: "done", direction: "descending" },
      onOpen: (row) => openRow("client", row),
    });
    this.element = element(
      "section",
      { class: "panel fills" },
      element("header", {}, element("h1", { text: "Clients" }), this.note),
      element("div", { class: "tools" }, this.search.element),
      this.table.element,
    );
  }

  handleKey(event) {
    return this.table.handleKey(event);
  }

  update() {
    const all = this.model.clients ?? [];
    const shown = all.filter((row) => this.search.matches(row.name, row.id));
    const left = this.model.leftOut("clients");
    const number = shown.length === all.length ? `${count(all.length)} in all` : `${count(shown.length)} of ${count(all.length)}`;
    const isKnown = Boolean(this.model.clients); // before the first snapshot "0 in all" would be wrong
    setText(this.note, !isKnown ? "" : left ? `${number}, and ${count(left)} that the scheduler does not publish` : number);
    this.table.setEmpty(all.length ? "No client matches the filter" : isKnown ? "No clients are connected" : "Waiting for data");
    this.table.setRows(shown);
  }
}
