// The dialog with the keyboard shortcuts.

import { element } from "./elements.js";

const KEYS = [
  [["1", "…", "8"], "Go to a view"],
  [["/"], "Search or filter"],
  [["?"], "This help"],
  [["Esc"], "Close a dialog, or leave a field"],
  [["↑", "↓", "PgUp", "PgDn", "Home", "End"], "In tables: select a row"],
  [["Enter"], "Open the details of the selected row"],
  [["←", "→"], "In the timeline and graphs: move"],
  [["↑", "↓"], "In the timeline: select a worker; in graphs: move"],
  [[",", "."], "In the timeline: previous task, next task"],
  [["+", "-"], "In the timeline and graphs: zoom"],
  [["0"], "In the timeline and graphs: show all"],
  [["Space"], "In the timeline: pause and resume"],
];

export class Help {
  constructor() {
    const close = element("button", { type: "button", text: "Close" });
    const lines = KEYS.flatMap(([keys, text]) => [
      element("dt", {}, ...keys.flatMap((key) => [key === "…" ? " … " : element("kbd", { text: key }), " "])),
      element("dd", { text }),
    ]);
    this.element = element(
      "dialog",
      { "aria-labelledby": "help-title", id: "help-dialog" },
      element("header", {}, element("h2", { id: "help-title", text: "Keyboard" }), close),
      element("dl", { class: "keys" }, ...lines),
    );
    close.addEventListener("click", () => this.element.close());
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
    document.body.append(this.element);
  }

  toggle() {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
