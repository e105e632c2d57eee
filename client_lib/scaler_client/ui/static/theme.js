// The theme: light or dark as the system says, unless the user has chosen one.

import { functionColour } from "./palette.js";

export class Theme {
  constructor(settings) {
    this.settings = settings;
    this.listeners = [];
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.system.addEventListener("change", () => this.#apply());
    settings.onChange((name) => name === "theme" && this.#apply());
    this.#apply();
  }

  get name() {
    const selected = this.settings.get("theme");
    return selected === "system" ? (this.system.matches ? "dark" : "light") : selected;
  }

  get reducedMotion() {
    return this.calm.matches;
  }

  /** A colour of the style sheet, for canvases. */
  colour(name) {
    return this.styles.getPropertyValue(`--${name}`).trim();
  }

  /** A function's colour by its index in FunctionColours. A negative index is an unknown function. */
  functionColour(index) {
    return index < 0 ? this.colour("other") : functionColour(index, this.name);
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  #apply() {
    document.documentElement.dataset.theme = this.name;
    this.styles = getComputedStyle(document.documentElement);
    for (const listener of this.listeners) listener();
  }
}
