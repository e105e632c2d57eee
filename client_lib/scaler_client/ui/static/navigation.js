// Selects the view: by the address's hash, the navigation and the number keys.

import { drawing, element } from "./elements.js";

export class Navigation {
  /**
   * @param views each {id, title, icon}
   * @param onView(id) shows a view
   */
  constructor(views, onView) {
    this.views = views;
    this.onView = onView;
    this.nav = document.getElementById("views");
    this.menu = document.querySelector(".menu");
    this.links = views.map((view, at) => this.#link(view, at));
    this.nav.append(...this.links);
    this.menu.addEventListener("click", () => this.#openMenu(!this.nav.classList.contains("open")));
    this.nav.addEventListener("click", () => this.#openMenu(false));
    this.nav.addEventListener("keydown", (event) => event.key === "Escape" && this.#openMenu(false));
    document.querySelector("main").addEventListener("pointerdown", () => this.#openMenu(false));
    window.addEventListener("hashchange", () => this.follow());
  }

  /** Show the view in the address. */
  follow() {
    const id = location.hash.slice(1);
    const view = this.views.find((each) => each.id === id) ?? this.views[0];
    this.links.forEach((link, at) => {
      if (this.views[at] === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    document.title = `${view.title} · Scaler`;
    this.onView(view.id);
  }

  /** Show the view of a number key. Returns whether there is one. */
  handleKey(key) {
    const view = this.views[Number(key) - 1];
    if (!view) return false;
    location.hash = view.id;
    return true;
  }

  #openMenu(open) {
    if (this.nav.classList.contains("open") === open) return;
    this.nav.classList.toggle("open", open);
    this.menu.setAttribute("aria-expanded", String(open));
    if (open) (this.nav.querySelector("[aria-current]") ?? this.links[0]).focus();
    else if (this.nav.contains(document.activeElement)) this.menu.focus();
  }

  #link(view, at) {
    const icon = drawing("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, drawing("path", { d: view.icon }));
    return element("a", { href: `#${view.id}`, title: `${view.title} (${at + 1})` }, icon, element("span", { text: view.title }), element("kbd", { text: String(at + 1), "aria-hidden": "true" }));
  }
}
