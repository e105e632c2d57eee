// Dragging, pinching, wheel and pointing, for all drawings that can be moved and zoomed.

const TAP_DISTANCE = 4;
const WHEEL_LINES = 40;

/**
 * Positions are pixels within the target.
 *
 * @param target an element with touch-action: none
 * @param on.drag(dx, dy), on.zoom(factor, x, y), on.wheel(event, x, y) returning whether it handled the event,
 *   on.hover(x, y, event), on.leave(), on.tap(x, y)
 */
export function attachGestures(target, on) {
  const pointers = new Map();
  let travelled = 0;

  const place = (event) => {
    const box = target.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  target.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, place(event));
    target.setPointerCapture(event.pointerId);
    if (pointers.size === 1) travelled = 0;
  });

  target.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      on.hover?.(now.x, now.y, event);
      return;
    }
    const spread = pointers.size === 2 ? distance(pointers) : 0;
    pointers.set(event.pointerId, now);
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (travelled < TAP_DISTANCE) return;
    target.classList.add("dragged");
    on.leave?.();
    if (pointers.size === 1) on.drag(now.x - before.x, now.y - before.y);
    else if (spread > 0) {
      const [a, b] = [...pointers.values()];
      on.zoom(distance(pointers) / spread, (a.x + b.x) / 2, (a.y + b.y) / 2);
    }
  });

  const release = (event) => {
    const at = pointers.get(event.pointerId);
    if (!at) return;
    pointers.delete(event.pointerId);
    target.classList.remove("dragged");
    if (event.type === "pointerup" && !pointers.size && travelled < TAP_DISTANCE) on.tap?.(at.x, at.y);
  };
  target.addEventListener("pointerup", release);
  target.addEventListener("pointercancel", release);
  target.addEventListener("pointerleave", () => pointers.size || on.leave?.());

  target.addEventListener(
    "wheel",
    (event) => {
      const { x, y } = place(event);
      if (on.wheel?.(event, x, y)) {
        event.preventDefault();
        return;
      }
      if (event.shiftKey || !event.deltaY) return;
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * WHEEL_LINES;
      on.zoom(Math.exp(-Math.max(-240, Math.min(240, pixels)) / 400), x, y);
    },
    { passive: false },
  );
}

function distance(pointers) {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a.x - b.x, a.y - b.y);
}
