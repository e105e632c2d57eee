// Chooses a function's colour by a hash of its name, so that it is the same on every page and after a reload.

/** The most distinct colours are used first. The others are used only if there are more functions. */
const TIERS = [48, 100];
const MAX_KEPT = 400;
const KEY = "scaler_ui_colours";

/** The FNV-1a hash with 32 bits. */
export function hashOf(name) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

/**
 * The colour index of each function. Two functions whose hashes collide get different colours; this browser
 * remembers which came first.
 */
export class FunctionColours {
  constructor(storage = null) {
    this.storage = storage;
    this.indices = new Map(this.#read());
    this.used = new Set(this.indices.values());
  }

  indexOf(name) {
    let index = this.indices.get(name);
    if (index === undefined) {
      index = this.#free(name);
      this.indices.set(name, index);
      this.used.add(index);
      this.#write();
    }
    return index;
  }

  #free(name) {
    const hash = hashOf(name);
    for (const tier of TIERS) {
      if (this.used.size >= tier) continue;
      const found = Array.from({ length: tier }, (_, step) => (hash + step) % tier).find((index) => !this.used.has(index));
      if (found !== undefined) return found;
    }
    return hash % TIERS.at(-1);
  }

  #read() {
    try {
      const kept = JSON.parse(this.storage?.getItem(KEY) ?? "[]");
      return kept.filter(([name, index]) => typeof name === "string" && Number.isInteger(index) && index >= 0 && index < TIERS.at(-1));
    } catch {
      return [];
    }
  }

  #write() {
    try {
      this.storage?.setItem(KEY, JSON.stringify([...this.indices].slice(-MAX_KEPT)));
    } catch {
      // The browser stores nothing. Then only functions whose hashes collide may change their colours.
    }
  }
}
