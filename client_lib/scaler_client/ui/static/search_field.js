// A search field, and whether texts match it.

import { element } from "./elements.js";

export class SearchField {
  constructor(label, onChange) {
    this.words = [];
    this.input = element("input", { type: "search", placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false" });
    this.input.addEventListener("input", () => {
      this.words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
      onChange();
    });
    this.element = element("div", { class: "search" }, this.input);
  }

  get isEmpty() {
    return this.words.length === 0;
  }

  /** Whether each word is in one of the texts. Case does not matter. */
  matches(...texts) {
    return this.words.every((word) => texts.some((text) => text.toLowerCase().includes(word)));
  }
}
