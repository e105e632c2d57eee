// The user's settings, kept in this browser only.

const KEY = "scaler_ui";

/** In seconds. The server may keep less. */
export const WINDOWS = [30, 60, 120, 300, 600, 1800, 3600];
/** Seconds between snapshots. */
export const INTERVALS = [1, 2, 5, 10, 30];
export const THEMES = ["system", "light", "dark"];
export const DENSITIES = { compact: 8, normal: 18, roomy: 28 };

const CHECKS = {
  window: (value) => WINDOWS.includes(value),
  interval: (value) => INTERVALS.includes(value),
  theme: (value) => THEMES.includes(value),
  density: (value) => Object.hasOwn(DENSITIES, value),
};
const DEFAULTS = { window: 300, interval: 1, theme: "system", density: "normal" };

export class Settings {
  constructor(storage) {
    this.storage = storage;
    this.listeners = [];
    this.values = { ...DEFAULTS, ...this.#read() };
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (!CHECKS[name](value) || this.values[name] === value) return;
    this.values[name] = value;
    try {
      this.storage.setItem(KEY, JSON.stringify(this.values));
    } catch {
      // The browser stores nothing. The choice lasts as long as the page.
    }
    for (const listener of this.listeners) listener(name, value);
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  #read() {
    let found;
    try {
      found = JSON.parse(this.storage.getItem(KEY) ?? "{}");
    } catch {
      return {};
    }
    const known = Object.entries(found ?? {}).filter(([name, value]) => CHECKS[name]?.(value));
    return Object.fromEntries(known);
  }
}
