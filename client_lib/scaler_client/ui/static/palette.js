// The colours of functions: the first twelve are fixed, and each further one differs from those before it.

const FIRST_COLOURS = {
  light: [
    "#2f6fde", "#c2620a", "#1d8657", "#8247cf", "#a07400", "#0c7f93",
    "#b83a85", "#66731c", "#5262cf", "#98502c", "#2b7878", "#77508f",
  ],
  dark: [
    "#6ea3ff", "#f0a055", "#4cc38a", "#b794f6", "#dfb341", "#4fc6dc",
    "#ee82c0", "#a9bb4a", "#97a3ff", "#d69a73", "#63b8b0", "#c9a6de",
  ],
};

/** Lightness in OKLCH: dark enough on white, or light enough on near black, for a contrast of 3. */
const LIGHTNESSES = { light: [0.4, 0.64, 0.52], dark: [0.9, 0.62, 0.76] };
const CHROMAS = [0.18, 0.1];
const GOLDEN_ANGLE = 137.50776;
/** The range of hues. Red is left out, because it means failure. */
const [FIRST_HUE, HUES] = [48, 305];
/** The number of candidates for each colour, and of earlier colours they are compared with. */
const [CANDIDATES, COMPARED_COLOURS] = [48, 96];
/** The number of colours. People cannot tell more colours apart, and each colour costs time. */
const COLOUR_COUNT = 100;

const generated = { light: [], dark: [] };

/** @param theme "light" or "dark" */
export function functionColour(number, theme) {
  const colours = generated[theme];
  if (!colours.length) colours.push(...FIRST_COLOURS[theme].map((hex) => ({ hex, oklab: oklabOf(linearIn(hex)) })));
  const oklab = number % COLOUR_COUNT;
  while (colours.length <= oklab) colours.push(mostDistinct(colours, theme));
  return colours[oklab].hex;
}

/** Of several candidates, the one that is farthest from its nearest earlier colour. */
function mostDistinct(colours, theme) {
  const others = colours.slice(-COMPARED_COLOURS);
  let [best, most] = [null, -1];
  for (let trial = 0; trial < CANDIDATES; trial++) {
    const found = candidate(colours.length * CANDIDATES + trial, LIGHTNESSES[theme]);
    const distance = Math.min(...others.map((other) => Math.hypot(...other.oklab.map((each, at) => each - found.oklab[at]))));
    if (distance > most) [best, most] = [found, distance];
  }
  return best;
}

function candidate(number, lightnesses) {
  const hue = FIRST_HUE + ((number * GOLDEN_ANGLE) % 360) * (HUES / 360);
  const chroma = CHROMAS[Math.floor(number / lightnesses.length) % CHROMAS.length];
  const channels = shownAs(lightnesses[number % lightnesses.length], chroma, hue);
  const hex = channels.map((channel) => Math.round(255 * encoded(channel)).toString(16).padStart(2, "0"));
  return { hex: `#${hex.join("")}`, oklab: oklabOf(channels) };
}

/** The colour with as much of the chroma as screens can show. */
function shownAs(lightness, chroma, hue) {
  const channels = linearOf(lightness, chroma, hue);
  const isShown = channels.every((channel) => channel >= 0 && channel <= 1);
  return isShown || chroma < 0.01 ? channels : shownAs(lightness, chroma - 0.01, hue);
}

/** OKLCH as linear red, green and blue, which may be outside of 0 to 1. */
function linearOf(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ];
}

/** Linear red, green and blue as OKLab, where distances match human perception. */
function oklabOf([red, green, blue]) {
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const middle = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return [
    0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
    1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
    0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
  ];
}

function linearIn(hex) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  return parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
}

function encoded(channel) {
  const bound = Math.min(1, Math.max(0, channel));
  return bound <= 0.0031308 ? 12.92 * bound : 1.055 * bound ** (1 / 2.4) - 0.055;
}
