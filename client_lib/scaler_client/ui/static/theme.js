// Light or dark: what the system says, unless a person has chosen.

const FUNCTION_COLOURS = {
  light: [
    "#2f6fde", "#c2620a", "#1d8657", "#8247cf", "#a07400", "#0c7f93",
    "#b83a85", "#66731c", "#5262cf", "#98502c", "#2b7878", "#77508f",
  ],
  dark: [
    "#6ea3ff", "#f0a055", "#4cc38a", "#b794f6", "#dfb341", "#4fc6dc",
    "#ee82c0", "#a9bb4a", "#97a3ff", "#d69a73", "#63b8b0", "#c9a6de",
  ],
};

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
    const chosen = this.settings.get("theme");
    return chosen === "system" ? (this.system.matches ? "dark" : "light") : chosen;
  }

  get reducedMotion() {
    return this.calm.matches;
  }

  /** A colour of the style sheet's, for canvases. */
  colour(name) {
    return this.styles.getPropertyValue(`--${name}`).trim();
  }

  /** The colour of the n-th function; they repeat after twelve. Below 0: of one that is not known. */
  functionColour(number) {
    if (number < 0) return this.colour("other");
    const colours = FUNCTION_COLOURS[this.name];
    return colours[number % colours.length];
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
