// Numbers and names in words, as topo's own pages write them (topo/units.py, topo/phrases.py).

/** Round as Python does: what lies exactly between goes to the even digit. */
function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const isBetween = Number.isInteger(value * 2 ** (digits + 1)) && scaled % 1 === 0.5;
  return (isBetween ? 2 * Math.round(scaled / 2) / 10 ** digits : value).toFixed(digits);
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function digits(value) {
  if (value > 0 && value < 0.001) return String(Number(value.toPrecision(3)));
  return trimmed(value < 1 ? fixed(value, 3) : fixed(value, 2));
}

function scaled(value, scales, smallest) {
  if (value === Infinity) return "unlimited";
  if (value === 0) return `0 ${scales[0][0]}`;
  for (const [unit, worth, start] of scales) {
    if (value >= start * (1 - 1e-6)) return `${digits(value / worth)} ${unit}`;
  }
  return `${digits(value)} ${smallest}`;
}

export function rateText(rate) {
  return scaled(rate, [["GB/s", 1e9, 1e8], ["MB/s", 1e6, 1e5], ["kB/s", 1e3, 1e2]], "B/s");
}

export function sizeText(size) {
  return scaled(size, [["TB", 1e12, 1e12], ["GB", 1e9, 1e9], ["MB", 1e6, 1e6], ["kB", 1e3, 1e3]], "B");
}

function fourDigits(value) {
  return trimmed(fixed(value, Math.max(0, 4 - String(Math.trunc(value)).length)));
}

export function timeText(seconds) {
  if (!Number.isFinite(seconds)) return "never";
  for (const [unit, worth] of [["years", 365.25 * 86400], ["days", 86400]]) {
    if (seconds >= 2 * worth) return `${fourDigits(seconds / worth)} ${unit}`;
  }
  for (const [unit, worth] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    const rounded = fourDigits(seconds / worth);
    if (Number(rounded) >= 1 || seconds === 0) return `${rounded} ${unit}`;
  }
  return `${digits(seconds / 1e-9)} ns`;
}

export function percentText(ratio) {
  return `${trimmed(fixed(ratio * 100, ratio < 0.1 ? 1 : 0))} %`;
}

/** Write "a, b and 3 more". */
export function listed(names, most = Infinity) {
  let items = [...names];
  if (items.length > most) items = [...items.slice(0, most - 1), `${items.length - most + 1} more`];
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** Write names with what repeats as ranges: slot[1-2]/p[1-2]. */
export function ranges(names) {
  const groups = new Map();
  for (const name of new Set(names)) {
    const words = name.split(/\d+/), key = words.join("\n");
    if (!groups.has(key)) groups.set(key, { words, numbers: [] });
    groups.get(key).numbers.push(name.match(/\d+/g) || []);
  }
  return [...groups.values()].flatMap(({ words, numbers }) => rangesOf(words, numbers));
}

function rangesOf(words, numbers) {
  const woven = (chosen) => words.map((word, at) => (at ? chosen[at - 1] : "") + word).join("");
  numbers = [...numbers].sort((a, b) => {
    const at = a.findIndex((digit, place) => Number(digit) !== Number(b[place]));
    return at < 0 ? 0 : a[at] - b[at];
  });
  if (numbers.length <= 2) return numbers.map(woven);
  const places = [...numbers[0].keys()];
  const values = places.map((place) => [...new Set(numbers.map((row) => row[place]))]);
  const spans = values.map((different) => {
    if (different.length === 1) return different[0];
    const first = Number(different[0]);
    const run = different.every((value, step) => value === String(first + step));
    return run ? `[${first}-${first + different.length - 1}]` : "";
  });
  const all = values.reduce((product, different) => product * different.length, 1);
  const varying = values.filter((different) => different.length > 1);
  const paired = varying.length > 1 && numbers.length === varying[0].length
    && varying.every((different) => different.length === numbers.length) && words.some((word) => /\s/.test(word));
  if (spans.every(Boolean) && (all === numbers.length || paired)) return [woven(spans)];
  const splits = places.map((place) => {
    const parts = new Map();
    for (const row of numbers) parts.set(row[place], [...(parts.get(row[place]) || []), row]);
    return [...parts.values()];
  }).filter((parts) => parts.length > 1 && parts.length < numbers.length);
  if (!splits.length) return numbers.map(woven);
  const best = splits.reduce((a, b) => (b.length < a.length ? b : a));
  return best.flatMap((part) => rangesOf(words, part));
}
