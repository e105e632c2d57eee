// Whether scheduler and server are there: in the head always, in a banner when something is wrong or well again.

import { element, setText } from "./elements.js";
import { clock, duration, visible } from "./format.js";

const BACK_MILLISECONDS = 15_000;

export class Banner {
  constructor({ model, retry }) {
    this.model = model;
    this.place = document.getElementById("banner");
    this.state = document.getElementById("state");
    this.where = document.getElementById("where");
    this.text = element("span");
    this.button = element("button", { type: "button", text: "Retry now" });
    this.button.addEventListener("click", retry);
    this.place.append(this.text, this.button);
    this.connection = { name: "connecting", details: {} };
    this.absence = null;
    this.back = null;
    setInterval(() => this.#show(), 1000);
  }

  connectionIs(name, details) {
    this.connection = { name, details };
    this.#show();
  }

  update() {
    const { presence, picture, hello } = this.model;
    setText(this.where, visible(picture?.address || hello?.address || ""));
    if (presence?.presence === "gone") this.absence ??= presence.since;
    else if (presence?.presence === "there" && this.absence !== null) {
      this.back = { at: Date.now(), since: presence.since, gone: this.absence };
      this.absence = null;
    }
    this.#show();
  }

  #show() {
    const { state, label, kind, text } = this.#words();
    this.state.dataset.state = state;
    setText(this.state.lastElementChild, label);
    this.place.hidden = !text;
    this.place.dataset.kind = kind ?? "";
    setText(this.text, text ?? "");
    this.button.hidden = state !== "lost";
  }

  #words() {
    const { presence, hello } = this.model;
    const { name, details } = this.connection;
    if (name === "lost") {
      const wait = Math.max(0, Math.ceil((details.retryAt - Date.now()) / 1000));
      const why = details.reason ? `: ${visible(details.reason)}` : "";
      const text = `The server of this page is gone since ${clock(details.since)}${why}. Next try ${wait ? `in ${wait} s` : "now"}.`;
      return { state: "lost", label: "No server", kind: "bad", text };
    }
    if (name === "connecting" || !presence) return { state: "connecting", label: "Connecting" };
    if (this.model.refusal) return { state: "there", label: "Refused", kind: "bad", text: `The server refused what this page sent: ${this.model.refusal}` };
    if (presence.presence === "gone") {
      const gone = duration(Math.max(0, Date.now() - presence.since * 1000)).replace(/\.\d+ s/, " s");
      return { state: "gone", label: "Gone", kind: "bad", text: `The scheduler is gone since ${clock(presence.since * 1000)} (${gone}). What is shown is from before.` };
    }
    if (presence.presence === "other version") return { state: "gone", label: "Other version", kind: "bad", text: presence.problem };
    if (presence.presence === "unheard") {
      return { state: "connecting", label: "Waiting", kind: "wait", text: `Nothing was heard from a scheduler at ${visible(hello?.address ?? "")} yet.` };
    }
    if (this.back && Date.now() - this.back.at < BACK_MILLISECONDS) {
      const text = `The scheduler is back since ${clock(this.back.since * 1000)}. It was gone since ${clock(this.back.gone * 1000)}.`;
      return { state: "there", label: "Live", kind: "good", text };
    }
    return { state: "there", label: "Live" };
  }
}
