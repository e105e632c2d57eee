// All that is known of one task, in a dialog.

import { element } from "./elements.js";
import { day, duration, visible } from "./format.js";

export class Details {
  constructor(model) {
    this.model = model;
    this.title = element("h2", { id: "details-title" });
    this.close = element("button", { type: "button", text: "Close" });
    this.body = element("div");
    this.element = element("dialog", { "aria-labelledby": "details-title", id: "details" }, element("header", {}, this.title, this.close), this.body);
    this.close.addEventListener("click", () => this.element.close());
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
    document.body.append(this.element);
  }

  /** @param row an execution, or a running task in its shape */
  open(row) {
    this.title.textContent = visible(row.name);
    this.body.replaceChildren(facts(row));
    if (row.error) this.body.append(element("pre", { text: visible(row.error), role: "note", "aria-label": "Error" }));
    const others = this.model.executions.attemptsOf(row.client, row.id).filter((each) => each !== row);
    if (others.length) this.body.append(attempts(others));
    if (!this.element.open) this.element.showModal();
    this.close.focus();
  }
}

function facts(row) {
  const list = [
    ["State", row.outcome.name],
    ["Function", row.function ? visible(row.function.name) : visible(row.name)],
    ["Task id", row.id],
    ["Attempt", String(row.attempt)],
    ["Worker", row.worker ? `${visible(row.workerName)} (${row.worker})` : "none"],
    ["Client", row.clientName ? `${visible(row.clientName)} (${row.client})` : row.client],
    ["Submitted", when(row.submitted)],
    ["Waited", duration(row.start - row.submitted)],
    ["Started", when(row.start)],
    ["Ended", row.running ? "–" : when(row.end)],
    ["Duration", duration(row.duration)],
  ];
  return element("dl", { class: "facts" }, ...list.flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]));
}

function when(milliseconds) {
  return Number.isNaN(milliseconds) ? "–" : day(milliseconds);
}

function attempts(others) {
  const lines = others.flatMap((each) => [
    element("dt", { text: `Attempt ${each.attempt}` }),
    element("dd", { text: [each.outcome.name, visible(each.workerName), duration(each.duration), visible(each.error)].filter(Boolean).join(", ") }),
  ]);
  return element("dl", { class: "facts", "aria-label": "Other attempts" }, ...lines);
}
