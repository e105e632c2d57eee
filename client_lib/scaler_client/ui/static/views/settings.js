// The view of the user's settings.

import { element, select } from "../elements.js";
import { span } from "../format.js";
import { DENSITIES, INTERVALS, THEMES, WINDOWS } from "../settings.js";

export const settingsView = {
  id: "settings",
  title: "Settings",
  icon: "M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4",
  topics: [],
  create: (context) => new SettingsView(context),
};

const capital = (text) => text[0].toUpperCase() + text.slice(1);

class SettingsView {
  constructor({ model, settings }) {
    this.model = model;
    this.kept = element("p", { class: "note" });
    const fields = [
      ["window", "Window", "How far back charts, timeline and tasks go", WINDOWS, span, Number],
      ["interval", "Update interval", "How often numbers and tables are updated", INTERVALS, (seconds) => `${seconds} s`, Number],
      ["theme", "Theme", "System follows the system or browser", THEMES, capital, String],
      ["density", "Timeline rows", "The height of a worker's row", Object.keys(DENSITIES), capital, String],
    ].map(([name, title, hint, values, text, parse]) => {
      const control = select(values.map((value) => [value, text(value)]), String(settings.get(name)), { name });
      control.addEventListener("change", () => settings.set(name, parse(control.value)));
      return element("label", { class: "field" }, element("span", { text: title }), element("small", { text: hint }), control);
    });
    this.element = element(
      "section",
      { class: "panel" },
      element("header", {}, element("h1", { text: "Settings" })),
      element("div", { class: "card settings" }, ...fields, this.kept),
    );
  }

  update() {
    const { hello, presence } = this.model;
    if (!hello) return;
    const lost = presence?.missed_history ? ` ${presence.missed_history} events of tasks did not reach the server.` : "";
    this.kept.textContent =
      `Kept in this browser. The server (scaler_ui ${hello.version}) keeps the last ${span(hello.limits.window)} and ` +
      `${hello.limits.tasks.toLocaleString("en-US")} executions at most.${lost}`;
  }
}
