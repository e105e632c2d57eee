// Shows whether the scheduler and the server are there: always in the header, and in a banner when that changes.

import { element, setText } from "./elements.js";
import { clock, duration, visible } from "./format.js";

const BACK_MILLISECONDS = 15_000;
const LATE_MILLISECONDS = 3_000;

/** Why nothing is shown yet. */
function waiting(presence, hello) {
  const why = presence.problem || "no scheduler runs there, it publishes at another address, or the network is interrupted";
  const since = clock(presence.since * 1000);
  return `Waiting since ${since} for a scheduler: none was heard at ${visible(hello?.address ?? "")} yet: ${visible(why)}.`;
}

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
    this.startedAt = Date.now();
    this.goneSince = null;
    this.recovery = null;
    setInterval(() => this.#show(), 1000);
  }

  get isOverdue() {
    return Date.now() - this.startedAt > LATE_MILLISECONDS;
  }

  setConnection(name, details) {
    this.connection = { name, details };
    this.#show();
  }

  update() {
    const { presence, snapshot, hello } = this.model;
    setText(this.where, visible(snapshot?.address || hello?.address || ""));
    if (presence?.presence === "down") this.goneSince ??= presence.since;
    else if (presence?.presence === "up" && this.goneSince !== null) {
      this.recovery = { at: Date.now(), since: presence.since, gone: this.goneSince };
      this.goneSince = null;
    }
    this.#show();
  }

  #show() {
    const { state, label, kind, text } = this.#status();
    this.state.dataset.state = state;
    setText(this.state.lastElementChild, label);
    this.place.hidden = !text;
    this.place.dataset.kind = kind ?? "";
    setText(this.text, text ?? "");
    this.button.hidden = state !== "lost";
  }

  #status() {
    const { presence, hello } = this.model;
    const { name, details } = this.connection;
    if (name === "lost") {
      const wait = Math.max(0, Math.ceil((details.retryAt - Date.now()) / 1000));
      const why = details.reason ? `: ${visible(details.reason)}` : ": the connection was closed or refused";
      const text = `The server of this page has not answered since ${clock(details.since)}${why}. Next attempt ${wait ? `in ${wait} s` : "now"}.`;
      return { state: "lost", label: "No server", kind: "bad", text };
    }
    if (name === "connecting" || !presence) {
      return { state: "connecting", label: "Connecting", kind: "wait", text: this.isOverdue ? "The server of this page has not answered yet." : "" };
    }
    if (this.model.refusal) return { state: "up", label: "Refused", kind: "bad", text: `The server rejected a message of this page: ${this.model.refusal}` };
    if (presence.presence === "down") {
      const gone = duration(Math.max(0, Date.now() - presence.since * 1000)).replace(/\.\d+ s/, " s");
      return { state: "down", label: "Down", kind: "bad", text: `No message from the scheduler at ${visible(hello?.address ?? "")} since ${clock(presence.since * 1000)} (${gone}). It has stopped, or the network is interrupted. The page shows the last state, and continues when the scheduler is back.` };
    }
    if (presence.presence === "incompatible") return { state: "down", label: "Other version", kind: "bad", text: presence.problem };
    if (presence.presence === "unknown") {
      return { state: "connecting", label: "Waiting", kind: "wait", text: waiting(presence, hello) };
    }
    if (this.recovery && Date.now() - this.recovery.at < BACK_MILLISECONDS) {
      const text = `The scheduler is back. It sent no messages from ${clock(this.recovery.gone * 1000)} to ${clock(this.recovery.since * 1000)}.`;
      return { state: "up", label: "Live", kind: "good", text };
    }
    return { state: "up", label: "Live" };
  }
}
