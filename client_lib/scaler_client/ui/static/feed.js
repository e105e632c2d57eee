// The connection to the server: one WebSocket. It reconnects at growing intervals.

const FIRST_RETRY_MILLISECONDS = 500;
const MAX_RETRY_MILLISECONDS = 10_000;
const MIN_OWN_CLOSE_CODE = 4000;

/** The states are "connecting", "open", and "lost" with {since, retryAt, reason}. */
export class Feed {
  constructor({ address, onMessage, onState, topics, settings }) {
    this.address = address;
    this.onMessage = onMessage;
    this.onState = onState;
    this.topics = topics;
    this.settings = settings;
    this.wait = FIRST_RETRY_MILLISECONDS;
    this.since = null;
    this.timer = 0;
    window.addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => this.#visibility());
    this.#connect();
  }

  watch(topics) {
    this.topics = topics;
    this.#send({ type: "watch", topics });
  }

  setSettings(settings) {
    this.settings = settings;
    this.#send({ type: "settings", ...settings });
  }

  /** Request the story of a task. */
  askStory(client, id) {
    this.#send({ type: "story", client, id });
  }

  retryNow() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.#connect();
  }

  #connect() {
    this.timer = 0;
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.since = null;
      this.#send({ type: "settings", ...this.settings });
      this.#send({ type: "watch", topics: this.topics });
      this.#visibility();
      this.onState("open", {});
    });
    socket.addEventListener("message", (event) => {
      this.wait = FIRST_RETRY_MILLISECONDS;
      this.onMessage(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => this.#lost(event.code >= MIN_OWN_CLOSE_CODE ? event.reason : ""));
  }

  #lost(reason) {
    this.since ??= Date.now();
    const wait = this.wait * (0.8 + 0.4 * Math.random());
    this.wait = Math.min(MAX_RETRY_MILLISECONDS, this.wait * 2);
    this.timer = setTimeout(() => this.#connect(), wait);
    this.onState("lost", { since: this.since, retryAt: Date.now() + wait, reason });
  }

  /** Pause while the page is hidden. The server sends what was missed when it is visible again. */
  #visibility() {
    if (document.hidden) this.#send({ type: "pause" });
    else {
      this.#send({ type: "resume" });
      this.retryNow();
    }
  }

  #send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
