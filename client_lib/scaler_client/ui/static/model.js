// All that the page knows, as the server's messages say it. Messages go in, views read.

import { Executions } from "./executions.js";
import { GraphStore } from "./graphs/graph_store.js";
import { Series } from "./series.js";

/** Rows of columns of one length. */
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
  /** `colours` says which colour a function has, `clock` gives milliseconds of any steady clock. */
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

  /** Take one message of the contract. */
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

  /** What time it is at the scheduler (milliseconds of unix time), also between its messages; it ends with it. */
  get now() {
    if (this.clockOffset === null) return Date.now();
    if (this.presence?.presence === "gone") return this.lastMessageTime;
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

  /** How many rows of a table the scheduler has left out, as there are too many. */
  leftOut(table) {
    return this.snapshot?.left_out.find(([name]) => name === table)?.[1] ?? 0;
  }

  /** A connection has begun: what it says comes anew. */
  clear() {
    this.executions.clear();
    this.series.clear();
  }

  #updateClock(now) {
    const clockOffset = now - this.clock();
    // A message that was long on its way must not turn time back: only a real change of the clock does.
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
