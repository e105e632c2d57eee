// The state of a worker in one or two words, from its flags.

const [AGENT_CONNECTED, HOLDS_TASK, RUNS_LONG, DOES_NOT_ANSWER, RETIRING] = [1, 2, 4, 8, 16];

export function stateOf(row) {
  if (row.flags & DOES_NOT_ANSWER) return "silent";
  if (!(row.flags & AGENT_CONNECTED)) return "no agent";
  if (row.flags & RETIRING) return "retires";
  if (row.flags & RUNS_LONG) return "long task";
  return row.running ? "busy" : row.flags & HOLDS_TASK ? "has tasks" : "idle";
}

export const STATE_CLASSES = { silent: "bad", "no agent": "bad", retires: "muted", "long task": "good", busy: "good", "has tasks": "good", idle: "muted" };
