// Formats numbers, times, names and states.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function count(value) {
  return WHOLE.format(value);
}

/** A number per second: 0.4/s, 12.3/s, 4,567/s. */
export function rate(value) {
  if (!value) return "0/s";
  return `${value < 100 && value % 1 ? value.toFixed(1) : WHOLE.format(value)}/s`;
}

export function bytes(value) {
  if (!value) return "0 B";
  const power = Math.max(0, Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(Math.abs(value)) / 10)));
  const scaled = value / 1024 ** power;
  return `${power === 0 ? WHOLE.format(scaled) : scaled.toFixed(scaled < 100 && scaled % 1 ? 1 : 0)} ${BYTE_UNITS[power]}`;
}

export function percent(value) {
  if (!value) return "0 %";
  return `${value < 10 ? value.toFixed(1) : WHOLE.format(value)} %`;
}

/** A duration, from milliseconds: 12 µs, 3.4 ms, 1.25 s, 2 min 03 s, 4 h 05 min, 3 d 4 h. */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined || Number.isNaN(milliseconds)) return "–";
  if (milliseconds === 0) return "0 s";
  if (milliseconds < 1) return `${WHOLE.format(milliseconds * 1000)} µs`;
  if (milliseconds < 1000) return `${milliseconds.toFixed(milliseconds < 100 ? 1 : 0)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${two((seconds / 60) % 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds / 3600) % 24)} h`;
}

/** A round duration, from seconds: 30 s, 5 min, 1 h. */
export function span(seconds) {
  if (seconds < 60 || seconds % 60) return seconds < 120 ? `${seconds} s` : duration(seconds * 1000);
  if (seconds < 3600 || seconds % 3600) return seconds < 7200 ? `${seconds / 60} min` : duration(seconds * 1000);
  return `${seconds / 3600} h`;
}

/** The time of day. `step` (milliseconds) decides how many digits of a second are shown. */
export function clock(unixMilliseconds, step = 1000) {
  const at = new Date(unixMilliseconds);
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (step >= 1000) return text;
  const fraction = String(Math.floor(((unixMilliseconds % 1000) + 1000) % 1000)).padStart(3, "0");
  return `${text}.${step >= 100 ? fraction[0] : step >= 10 ? fraction.slice(0, 2) : fraction}`;
}

export function day(unixMilliseconds) {
  const at = new Date(unixMilliseconds);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(unixMilliseconds, 1)}`;
}

export function two(number) {
  return String(Math.floor(number)).padStart(2, "0");
}

// Control characters, characters that change the direction of text, and invisible ones: they could hide or disguise a
// name.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]/g;

/** The text with invisible characters made visible, for example ⟨202E⟩. */
export function visible(text) {
  return text.replace(INVISIBLE, (found) => {
    const code = found.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The visible text, cut in the middle if it is longer than `most`: both ends of a dotted name are useful. */
export function cut(text, most = 80) {
  const shown = visible(text);
  if (shown.length <= most) return shown;
  const end = Math.floor(most / 3);
  return `${shown.slice(0, most - end - 1)}…${shown.slice(-end)}`;
}

const [AGENT_CONNECTED, HOLDS_TASK, RUNS_LONG, DOES_NOT_ANSWER, RETIRING] = [1, 2, 4, 8, 16];

/** The state of a worker in one or two words, from its flags. */
export function workerState(row) {
  if (row.flags & DOES_NOT_ANSWER) return "silent";
  if (!(row.flags & AGENT_CONNECTED)) return "no agent";
  if (row.flags & RETIRING) return "retires";
  if (row.flags & RUNS_LONG) return "long task";
  return row.running ? "busy" : row.flags & HOLDS_TASK ? "has tasks" : "idle";
}

export const WORKER_STATE_CLASSES = { silent: "bad", "no agent": "bad", retires: "muted", "long task": "good", busy: "good", "has tasks": "good", idle: "muted" };
