// The visible range of time, and the position of a time on the canvas.

const MIN_SPAN = 0.02;
/** Room after the present time while following, as a share of the range. */
const MARGIN = 0.02;

/** Times are milliseconds of unix time. x is in pixels from the left edge of the time area. */
export class Viewport {
  constructor(span) {
    this.width = 1;
    this.from = 0;
    this.to = span;
    this.isFollowing = true;
    this.showsAll = true;
    this.oldest = -Infinity;
    this.newest = Infinity;
  }

  get span() {
    return this.to - this.from;
  }

  x(time) {
    return ((time - this.from) / this.span) * this.width;
  }

  time(x) {
    return this.from + (x / this.width) * this.span;
  }

  /**
   * Set the range that can be shown. Until the user zooms, all of it is visible. While following, the end stays at
   * `now`.
   */
  setRange(oldest, now) {
    this.oldest = oldest;
    this.newest = now;
    if (this.showsAll && this.isFollowing) this.fit();
    else if (this.isFollowing) this.#set(now + this.span * MARGIN - this.span, now + this.span * MARGIN);
  }

  /** Zoom in by a factor above 1, or out. The time at `x` stays in place. */
  zoom(factor, x = this.width / 2) {
    const most = (this.newest - this.oldest) * (1 + 2 * MARGIN);
    const span = Math.max(MIN_SPAN, Math.min(most, this.span / factor));
    const anchor = this.isFollowing ? this.to - this.span * MARGIN : this.time(x);
    const share = this.isFollowing ? 1 - MARGIN : x / this.width;
    this.showsAll = false;
    this.#set(anchor - span * share, anchor + span * (1 - share));
    this.#clamp();
  }

  pan(pixels) {
    const moved = (pixels / this.width) * this.span;
    this.isFollowing = false;
    this.#set(this.from + moved, this.to + moved);
    this.#clamp();
  }

  /** Show the whole range. */
  fit() {
    const room = (this.newest - this.oldest) * MARGIN;
    this.#set(this.oldest - room, this.newest + room);
    this.isFollowing = this.showsAll = true;
  }

  /** Make a time range visible. */
  reveal(start, end) {
    if (start >= this.from && end <= this.to) return;
    const { span } = this;
    const middle = (start + end) / 2;
    this.isFollowing = false;
    this.#set(middle - span / 2, middle + span / 2);
  }

  #clamp() {
    const { span } = this;
    const [least, most] = [this.oldest - span * MARGIN, this.newest + span * MARGIN];
    if (this.to > most) this.#set(most - span, most);
    else if (this.from < least) this.#set(least, least + span);
  }

  #set(from, to) {
    this.from = from;
    this.to = to;
  }
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000];

/** Times for the marks of the axis, at least `apart` pixels from each other, and the milliseconds between them. */
export function ticks(viewport, apart) {
  const least = (viewport.span / viewport.width) * apart;
  const step = STEPS.find((each) => each >= least) ?? STEPS[STEPS.length - 1];
  const times = [];
  const zone = new Date(viewport.from).getTimezoneOffset() * 60_000;
  for (let time = Math.ceil((viewport.from - zone) / step) * step + zone; time <= viewport.to; time += step) times.push(time);
  return { times, step };
}
