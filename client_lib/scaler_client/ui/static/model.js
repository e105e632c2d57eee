// All data of the page. The server's messages are applied to it, and the views read it.

import { Executions } from "./executions.js";
import { GraphStore } from "./graphs/graph_store.js";
import { Series } from "./series.js";

/** The rows of a table that came as columns. */
export function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  const rows = new Array(length);
  for (let at = 0; at < length; at++) {
    const row = {};
    for (const name of names) row[name] = columns[name][at];
    rows[at] = row;
  }
  return rows;
}

const TABLES = ["workers", "agents", "clients", "functions", "running"];

export class Model {
  /**
   * @param colours FunctionColours
   * @param clock returns milliseconds of a monotonic clock
   */
  constructor(windowSeconds, colours, clock = () => performance.now()) {
    this.windowSeconds = windowSeconds;
    this.clock = clock;
    this.hello = null;
    this.presence = null;
    this.snapshot = null;
    this.story = null;
    this.refusal = "";
    this.executions = new Executions(undefined, colours);
    this.series = new Series();
    this.graphStore = new GraphStore();
    this.running = [];
    this.workers = this.agents = this.clients = this.functions = null;
    this.version = 0;
    this.clockOffset = null;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /** Apply one message of the contract. */
  apply(message) {
    const handler = HANDLERS[message.type];
    if (handler) handler(this, message);
    else if (TABLES.includes(message.type)) this[message.type] = rowsOf(message.columns);
    else return;
    if (message.now) this.#updateClock(message.now * 1000);
    this.trim();
    this.version++;
    for (const listener of this.listeners) listener(message.type);
  }

  /**
   * The scheduler's present time (milliseconds of unix time), also between its messages. It stops when the
   * scheduler is down.
   */
  get now() {
    if (this.clockOffset === null) return Date.now();
    if (this.presence?.presence === "down") return this.lastMessageTime;
    return this.clock() + this.clockOffset;
  }

  setWindow(seconds) {
    this.windowSeconds = seconds;
    this.trim();
  }

  trim() {
    const from = this.now - this.windowSeconds * 1000;
    this.executions.trim(from);
    this.series.trim(from / 1000);
  }

  /** How many rows of a table the scheduler did not publish because there are too many. */
  leftOut(table) {
    return this.snapshot?.left_out.find(([name]) => name === table)?.[1] ?? 0;
  }

  /** Drop the data that a new connection sends again. */
  clear() {
    this.executions.clear();
    this.series.clear();
  }

  #updateClock(now) {
    const clockOffset = now - this.clock();
    // A delayed message must not turn time back. Only a large difference is a change of the clock.
    if (this.clockOffset === null || clockOffset > this.clockOffset || this.clockOffset - clockOffset > 3000) this.clockOffset = clockOffset;
    this.lastMessageTime = now;
  }
}

const HANDLERS = {
  hello(model, message) {
    model.hello = message;
    model.refusal = "";
    model.executions.outcomes.set(message.outcomes);
    model.executions.most = message.limits.tasks;
    model.clear();
  },
  presence(model, message) {
    model.presence = message;
  },
  snapshot(model, message) {
    if (model.snapshot && model.snapshot.incarnation !== message.incarnation) {
      model.clockOffset = null;
      model.graphStore.clear();
    }
    model.snapshot = message;
  },
  series(model, message) {
    model.series.append(message);
  },
  tasks(model, message) {
    model.executions.addChunk(message);
  },
  graphs(model, message) {
    model.graphStore.apply(message, model.clock());
  },
  reset(model, message) {
    if (message.topic === "tasks") model.executions.clear();
    else model.series.clear();
  },
  story(model, message) {
    model.story = message;
  },
  refused(model, message) {
    model.refusal = message.problem;
  },
};
