// The dialog with the details of one task.

import { element } from "./elements.js";
import { clock, day, duration, visible } from "./format.js";

const EVENT_TEXTS = { reattached: "continues, its worker has connected again" };

export class TaskDetails {
  /** @param requestStory(row) asks the server for the story of a task; `showStory` must be called when it has come */
  constructor(model, requestStory) {
    this.model = model;
    this.requestStory = requestStory;
    this.row = null;
    this.title = element("h2", { id: "details-title" });
    this.close = element("button", { type: "button", text: "Close" });
    this.body = element("div");
    this.story = element("div");
    this.tracebacks = element("div");
    this.element = element(
      "dialog",
      { "aria-labelledby": "details-title", id: "details" },
      element("header", {}, this.title, this.close),
      this.body,
      this.tracebacks,
      this.story,
    );
    this.close.addEventListener("click", () => this.element.close());
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
    document.body.append(this.element);
  }

  /** @param row an execution, or an open task in the same shape */
  open(row) {
    this.row = row;
    this.title.textContent = visible(row.name);
    this.body.replaceChildren(facts(row));
    if (row.error) this.body.append(element("pre", { text: visible(row.error), role: "note", "aria-label": "Error" }));
    this.tracebacks.replaceChildren();
    this.#attempts();
    this.requestStory(row);
    if (!this.element.open) this.element.showModal();
    this.close.focus();
  }

  /** Show the story that has come. */
  showStory() {
    const { story } = this.model;
    if (!this.row || story.client !== this.row.client || story.id !== this.row.id || !story.columns.kind.length) return;
    const { columns } = story;
    const outcomes = this.model.executions.outcomes;
    const lines = columns.kind.map((kind, row) => {
      const outcome = columns.outcome[row] === null ? "" : outcomes.get(columns.outcome[row]).name;
      const what = kind === "ended" ? outcome : [EVENT_TEXTS[kind] ?? kind, outcome].filter(Boolean).join(": ");
      const worker = columns.worker[row] ? `on ${visible(columns.worker_name[row]) || `worker ${columns.worker[row]}`}` : "";
      const took = columns.duration[row] ? duration(columns.duration[row] * 1000) : "";
      const attempt = columns.attempt[row] ? `attempt ${columns.attempt[row]}` : "";
      return [clock(columns.time[row] * 1000, 1), [what, attempt, worker, took, visible(columns.error[row])]];
    });
    this.#showEvents("History", lines);
    this.tracebacks.replaceChildren();
    columns.traceback?.forEach((text, row) => {
      if (!text) return;
      const attempt = columns.attempt[row];
      const parts = [element("h3", { text: `Traceback of attempt ${attempt}` }), traceback(text)];
      // The traceback of the selected attempt comes first.
      if (attempt === this.row.attempt) this.tracebacks.prepend(...parts);
      else this.tracebacks.append(...parts);
    });
  }

  /** Show the attempts that this page knows, until the story comes. */
  #attempts() {
    const known = this.model.executions.attemptsOf(this.row.client, this.row.id).filter((each) => each !== this.row);
    const lines = known.map((each) => [
      `Attempt ${each.attempt}`,
      [each.outcome.name, visible(each.workerLabel), duration(each.duration), visible(each.error)],
    ]);
    this.story.replaceChildren();
    if (lines.length) this.#showEvents("Other attempts", lines);
  }

  #showEvents(title, lines) {
    const list = lines.flatMap(([name, parts]) => [
      element("dt", { text: name }),
      element("dd", { text: parts.filter(Boolean).join(", ") }),
    ]);
    this.story.replaceChildren(element("h3", { text: title }), element("dl", { class: "facts", "aria-label": title }, ...list));
  }
}

/**
 * A traceback. Invisible characters are made visible, line by line, so that a change of direction ends with its
 * line.
 */
function traceback(text) {
  return element("pre", { class: "traceback", tabindex: "0", role: "note", "aria-label": "Traceback", text: text.trimEnd().split("\n").map(visible).join("\n") });
}

function facts(row) {
  const list = [
    ["State", row.outcome.name],
    ["Function", row.function ? visible(row.function.name) : visible(row.name)],
    ["Task id", row.id],
    ["Attempt", String(row.attempt)],
    ["Worker", row.workerName ? `${visible(row.workerName)} (${row.worker})` : row.workerLabel || "none"],
    ["Client", row.clientName ? `${visible(row.clientName)} (${row.client})` : row.client],
    ["Submitted", when(row.submitted)],
    ["Waited", duration(row.start - row.submitted)],
    ["Started", when(row.start)],
    ["Ended", when(row.end)],
    ["Duration", duration(row.duration)],
  ];
  return element("dl", { class: "facts" }, ...list.flatMap(([name, value]) => [element("dt", { text: name }), element("dd", { text: value })]));
}

function when(milliseconds) {
  return Number.isNaN(milliseconds) ? "–" : day(milliseconds);
}
