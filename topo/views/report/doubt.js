// How sure the answer is: its range, a tornado of what makes it, what to measure first.

import { byId, h, s } from "./dom.js";
import { listed, percentText, rateText, timeText } from "./words.js";

const ROW = 34, BAR = 14, AFTER = 92; // AFTER: room for words right of the bars

/** The doubt about the chosen answer. topo found it: sliders have no part in it. */
export class DoubtView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, { chosen, question, page: { doubt } } = model;
    byId("doubt-panel").hidden = !chosen.matrix;
    if (!chosen.matrix) return;
    const width = Math.max(280, byId("doubt").clientWidth || 1000);
    const key = [question.name, chosen.data_path, model.changes.size > 0, width].join("\n");
    if (this.shown === key) return;
    this.shown = key;
    byId("doubt").dataset.of = `${question.name} by ${chosen.data_path}`;
    const asked = doubt.answers.find((each) => each.workload === question.name && each.data_path === chosen.data_path);
    byId("doubt").replaceChildren(...this.notes(), ...(asked ? this.answer(asked, width) : [
      h("p", {}, `This page has it of ${listed(question.paths.filter((path) => path.usual && path.matrix).map((path) => path.data_path))} alone. Of ${chosen.data_path}:`),
      h("pre", { tabindex: 0 }, model.words("doubt"))]));
  }

  notes() {
    const { model } = this, { doubt, basis } = model.page, notes = [];
    if (model.changes.size) notes.push("Sliders have no part in this: it is about the file as written.");
    if (doubt.basis !== basis) notes.push(`It is about ${doubt.basis} rates, where the guesses are; the rest of this page is ${basis}.`);
    return notes.map((words, at) => h("p", { class: at || !model.changes.size ? "soft" : "changed-note" }, words));
  }

  answer(asked, width) {
    const { doubt } = this.model.page, [low, high] = asked.rate_range_bytes_per_s;
    const most = asked.at_most ? "at most " : "", least = asked.at_most ? "at least " : "";
    const figures = [most + rateText(asked.rate_bytes_per_s), asked.time_s === null ? "" : least + timeText(asked.time_s)];
    const nominal = figures.filter(Boolean).join(", "), idle = listed(asked.without_effect);
    const blocks = [];
    if (low === high) {
      blocks.push(h("p", {}, h("b", {}, nominal), idle ? `, whatever is uncertain: ${idle} ${asked.without_effect.length > 1 ? "change" : "changes"} nothing.` : ", with nothing uncertain on its way."));
    } else {
      const times = asked.time_range_s ? `, ${least}${between(...asked.time_range_s.map(timeText))}` : "";
      blocks.push(
        h("p", {}, `At ${percentText(doubt.level)}: `, h("b", {}, `${most}${between(rateText(low), rateText(high))}${times}`), `; as figures are, ${nominal}.`),
        new Tornado(asked, doubt, width).draw(),
        h("p", { class: "legend" }, h("span", { "data-side": "range" }, `${percentText(doubt.level)} of ${doubt.draws} draws of all bands`),
          h("span", { "data-side": "less" }, "with the least of a band"), h("span", { "data-side": "more" }, "with the most of it"),
          h("span", { "data-side": "now" }, "as figures are")));
      if (asked.advice) blocks.push(h("p", {}, asked.advice));
      if (asked.command) blocks.push(h("pre", { tabindex: 0 }, asked.command), h("p", { class: "soft" }, "Then ", coded(asked.then), "."));
      if (idle) blocks.push(h("p", { class: "soft" }, `Nothing changes with ${idle}, within the band.`));
    }
    if (asked.unknown) blocks.push(h("p", {}, asked.unknown));
    const names = new Set([...asked.swings.map((swing) => swing.band), ...asked.without_effect]);
    const bands = doubt.bands.filter(({ name }) => names.has(name));
    if (bands.length) {
      blocks.push(h("details", {}, h("summary", {}, "Where the bands come from"),
        h("dl", {}, bands.map((band) => [h("dt", {}, `${band.name}, ${band.between}`), h("dd", {}, band.width)]))));
    }
    return blocks;
  }
}

/** A row for the range of all, and one for each band: the rate with the least and the most of it. */
class Tornado {
  constructor(asked, doubt, width) {
    Object.assign(this, { asked, doubt, width });
    this.isWide = width > 640;
    this.left = this.isWide ? 250 : 8;
    this.row = this.isWide ? ROW : ROW + 12;
    const [low, high] = asked.extremes_bytes_per_s, room = (high - low || high) * 0.09;
    this.low = Math.max(0, low - room);
    this.high = high + room;
  }

  x(rate) { return this.left + ((rate - this.low) / (this.high - this.low)) * (this.width - this.left - AFTER); }

  draw() {
    const { asked, doubt, width } = this, bottom = this.row * (asked.swings.length + 1) + 4;
    const band = (name) => doubt.bands.find((each) => each.name === name);
    const [low, high] = asked.rate_range_bytes_per_s, [least, most] = asked.extremes_bytes_per_s;
    const shapes = ticks(this.low, this.high, this.isWide ? 6 : 4).flatMap((rate) => [
      s("line", { x1: this.x(rate), x2: this.x(rate), y1: 0, y2: bottom, class: "axis" }),
      s("text", { x: this.x(rate), y: bottom + 14, "text-anchor": "middle", class: "tick" }, rateText(rate).split(" ")[0])]);
    shapes.push(s("text", { x: width - AFTER + 10, y: bottom + 14, class: "tick" }, rateText(this.high).split(" ")[1]));
    shapes.push(this.label(0, `${percentText(doubt.level)} of all draws`, ""),
      s("line", { x1: this.x(least), x2: this.x(most), y1: this.middle(0), y2: this.middle(0), class: "tried" }),
      this.bar(0, low, high, "range"));
    asked.swings.forEach((swing, at) => {
      const row = at + 1, now = asked.rate_bytes_per_s;
      shapes.push(this.label(row, swing.band, band(swing.band).between), ...[["less", swing.low_rate_bytes_per_s], ["more", swing.high_rate_bytes_per_s]].flatMap(([side, rate]) => (
        Math.abs(this.x(rate) - this.x(now)) < 0.5 ? [] : [this.bar(row, rate, now, side),
          s("text", { x: this.x(rate) + (rate < now ? -5 : 5), y: this.middle(row) + 4, "text-anchor": rate < now ? "end" : "start", class: "tick" }, rateText(rate).split(" ")[0])])),
      s("text", { x: width - AFTER + 10, y: this.middle(row) + 4, class: "tick" }, `settles ${settlesText(swing.settles)}`));
    });
    shapes.push(s("line", { x1: this.x(asked.rate_bytes_per_s), x2: this.x(asked.rate_bytes_per_s), y1: 0, y2: bottom, class: "now" }));
    const words = asked.swings.map((swing) => `${swing.band}, ${band(swing.band).between}: ${rateText(swing.low_rate_bytes_per_s)} with its least, ${rateText(swing.high_rate_bytes_per_s)} with its most, settles ${settlesText(swing.settles)}`);
    return s("svg", { viewBox: `0 -2 ${width} ${bottom + 24}`, role: "img", "aria-label": `Tornado: ${words.join("; ")}` }, shapes);
  }

  middle(row) { return row * this.row + this.row - (this.isWide ? this.row / 2 : BAR / 2 + 4); }

  label(row, name, band) {
    const y = row * this.row + (this.isWide ? (band ? 13 : 20) : 14);
    const soft = (x, top) => (band ? s("text", { x, y: top, class: "tick" }, band) : null);
    if (this.isWide) return [s("text", { x: 0, y, class: "lane-text" }, clipped(name, 36), s("title", {}, name)), soft(0, y + 14)];
    return [s("text", { x: 0, y, class: "lane-text" }, band ? clipped(`${name}, ${band}`, Math.floor(this.width / 7)) : name)];
  }

  bar(row, a, b, side) {
    const left = this.x(Math.min(a, b));
    return s("rect", { x: left, y: this.middle(row) - BAR / 2, width: Math.max(2, this.x(Math.max(a, b)) - left), height: BAR, "data-side": side });
  }
}

/** A sentence in which what stands between backticks is code. */
function coded(text) { return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part)); }

function clipped(text, most) { return text.length > most ? `${text.slice(0, most - 1)}…` : text; }

/** "6.4 to 7.2 s": two figures, the unit once where both have the same. */
function between(low, high) {
  const [number, unit] = low.split(/ (?=\S+$)/);
  return `${high.endsWith(` ${unit}`) ? number : low} to ${high}`;
}

/** To 5 %, as topo says it. */
function settlesText(part) {
  const share = Math.min(Math.round(part * 20), part < 1 ? 19 : 20) * 5;
  return share ? `${share} %` : "< 5 %";
}

/** Round numbers from one rate to another, about as many as asked for. */
function ticks(low, high, many) {
  const rough = (high - low) / many, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((each) => each >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, at) => (first + at) * step);
}
