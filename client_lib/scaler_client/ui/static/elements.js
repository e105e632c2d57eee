// Makes and changes elements of the page. Texts from outside never become markup.

/** An element with attributes (`text` and `class` are special) and children. */
export function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") created.textContent = value;
    else if (name === "class") created.className = value;
    else created.setAttribute(name, value === true ? "" : value);
  }
  created.append(...children);
  return created;
}

/** An SVG element with attributes (`text` is special) and children. */
export function drawing(tag, attributes = {}, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") created.textContent = value;
    else created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

/** Set the text only if it differs, because each change costs a layout. */
export function setText(target, text) {
  if (target.shownText === text) return;
  target.shownText = text;
  target.textContent = text;
}

/** Set the title only if it differs. */
export function setTitle(target, text) {
  if (target.shownTitle === text) return;
  target.shownTitle = text;
  if (text) target.setAttribute("title", text);
  else target.removeAttribute("title");
}

export function setClass(target, name) {
  if (target.className !== name) target.className = name;
}

export function select(choices, selected, attributes = {}) {
  const created = element("select", attributes);
  for (const [value, text] of choices) created.append(element("option", { value, text }));
  created.value = selected;
  return created;
}

/** A search field, and whether texts match it. */
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
