// The tooltip of the task at the pointer, and its announcement for screen readers.

import { element } from "../elements.js";
import { clock, count, duration, visible } from "../format.js";

export class Tooltip {
  constructor() {
    this.element = element("div", { class: "tip", hidden: true });
    this.announcement = element("div", { class: "said", "aria-live": "polite" });
  }

  /**
   * @param x, y position in the window
   * @param others how many more tasks are too near to be told apart
   */
  show(execution, others, x, y) {
    const called = execution.function.name;
    const lines = [
      ...(called === execution.name ? [] : [["Function", visible(called)]]),
      ["State", execution.outcome.name, execution.outcome.kind === "failed" ? "bad" : ""],
      ["Duration", duration(execution.duration)],
      ["Started", clock(execution.start, 1)],
      ["Task id", execution.id],
      ["Worker", visible(execution.workerLabel)],
      ...(execution.clientName ? [["Client", visible(execution.clientName)]] : []),
    ];
    if (execution.error) lines.push(["Error", visible(execution.error), "bad"]);
    if (others) lines.push(["", `and ${count(others)} more at this place: zoom in`]);
    this.element.replaceChildren(
      element("strong", { text: visible(execution.name) }),
      element("dl", {}, ...lines.flatMap(([name, text, kind]) => [element("dt", { text: name }), element("dd", { text, class: kind ?? "" })])),
    );
    this.element.hidden = false;
    const { width, height } = this.element.getBoundingClientRect();
    const left = x + 14 + width > window.innerWidth ? Math.max(8, x - width - 14) : x + 14;
    const top = y + 14 + height > window.innerHeight ? Math.max(8, y - height - 14) : y + 14;
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() {
    this.element.hidden = true;
  }

  announce(text) {
    this.announcement.textContent = text;
  }
}
