// Computes what is drawn of one worker's executions: a bar for a wide one, and one bar for many that share pixels.

/** In pixels. Narrower executions share a bar with their neighbours. */
const BIN = 2;
/** The number of strengths of colour. A fuller bin is stronger. */
export const LEVELS = 4;

/** The bars and marks of all lanes of a frame, grouped by how they are painted. */
export class Frame {
  constructor() {
    this.bars = new Map();
    this.wide = [];
    this.failures = [];
    this.marks = [];
    this.drawn = 0;
    this.scanned = 0;
  }

  /** A rectangle in the colour of a function, with strength `level` of LEVELS. */
  bar(colour, level, x, y, width, height) {
    const key = colour * LEVELS + level - 1;
    let list = this.bars.get(key);
    if (!list) this.bars.set(key, (list = []));
    list.push(x, y, width, height);
    this.drawn++;
  }
}

/**
 * Add a lane to the frame.
 *
 * @param lane a Lane of Executions
 * @param viewport the visible range of time
 * @param y, height the position of the lane
 */
export function layoutLane(frame, lane, viewport, y, height) {
  const { executions } = lane;
  const { from, to, width } = viewport;
  const scale = width / viewport.span;
  const bin = { place: -1, until: 0, filled: 0, colour: 0, weight: 0, open: null };
  let lastMark = -Infinity;
  for (let at = lane.firstAfter(from); at < executions.length; at++) {
    const each = executions[at];
    if (each.start > to) break;
    frame.scanned++;
    if (each.end < from) continue;
    const x = Math.max(0, (each.start - from) * scale);
    const size = Math.min(width, (each.end - from) * scale) - x;
    if (size >= BIN) {
      frame.wide.push(each, x, y, size, height);
      if (each.failed) frame.failures.push(x, y, size, height);
      frame.drawn++;
    } else {
      collect(frame, bin, Math.floor(x / BIN), size, each.function.colour, y, height);
      if (each.failed && x - lastMark >= BIN * 1.5) {
        lastMark = x;
        frame.marks.push(x, y, height);
      }
    }
  }
  closeBin(frame, bin, y, height);
  flush(frame, bin, y, height);
}

/**
 * Add an execution to the bin at `place`. The function with the most time in a bin gives its colour (a weighted
 * majority vote).
 */
function collect(frame, bin, place, size, colour, y, height) {
  if (bin.place !== place) {
    closeBin(frame, bin, y, height);
    bin.place = place;
    bin.filled = bin.weight = 0;
    bin.colour = colour;
  }
  const weight = size + 1e-6;
  bin.filled += size;
  if (bin.colour === colour) bin.weight += weight;
  else if (bin.weight >= weight) bin.weight -= weight;
  else {
    bin.colour = colour;
    bin.weight = weight - bin.weight;
  }
}

/** Merge neighbouring bins of the same colour and strength into one bar. */
function closeBin(frame, bin, y, height) {
  if (bin.place < 0) return;
  const level = Math.max(1, Math.min(LEVELS, Math.ceil((bin.filled / BIN) * LEVELS)));
  const { open } = bin;
  if (open && open.end === bin.place && open.colour === bin.colour && open.level === level) open.end++;
  else {
    flush(frame, bin, y, height);
    bin.open = { begin: bin.place, end: bin.place + 1, colour: bin.colour, level };
  }
  bin.place = -1;
}

function flush(frame, bin, y, height) {
  const { open } = bin;
  if (!open) return;
  frame.bar(open.colour, open.level, open.begin * BIN, y, (open.end - open.begin) * BIN, height);
  bin.open = null;
}

/** The execution nearest to a time in a lane, and how many are within `tolerance` (milliseconds). */
export function findAt(lane, time, tolerance) {
  let [nearest, best, number] = [null, Infinity, 0];
  for (let at = lane.firstAfter(time - tolerance); at < lane.executions.length; at++) {
    const each = lane.executions[at];
    if (each.start > time + tolerance) break;
    const away = Math.max(each.start - time, time - each.end, 0);
    if (away > tolerance) continue;
    number++;
    if (away <= best) [nearest, best] = [each, away];
  }
  return { execution: nearest, number };
}
