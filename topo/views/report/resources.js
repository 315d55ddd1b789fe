// The resources by fill, each with a slider and a field for another capacity.

import { h, pieces, write } from "./dom.js";
import { isRate } from "./model.js";
import { levelOf, use } from "./picture.js";
import { percentText, rateText, timeText } from "./words.js";

const FEW = 14;
const NOTCHES = 120; // of a slider: from an eighth to eight times, evenly by ratio

/** The capacity in GB/s as a person would type it. */
export function typed(rate) {
  return Number.isFinite(rate) ? String(Number((rate / 1e9).toPrecision(6))) : "";
}

export class ResourceView {
  constructor(model, body, more) {
    this.model = model;
    this.body = body;
    this.more = more;
    this.rows = new Map();
    this.all = false;
    more.addEventListener("click", () => { this.all = !this.all; this.show(); });
  }

  /** The knobs that the answer depends on, the fullest first: each with its fullest resource. */
  ranked() {
    const { model } = this, solved = model.solved();
    if (!solved) return [];
    const used = new Map();
    for (const place of solved.matrix.resources) {
      const resource = model.resources[place], its = use(model, solved, place);
      if (resource.class === "workload-limit") continue;
      if (!Number.isFinite(its.capacity) && !resource.unknown) continue; // stated to be unlimited
      const best = used.get(resource.knob);
      if (!best || its.fill > best.fill) used.set(resource.knob, { ...its, place, knob: resource.knob });
    }
    return [...used.values()].sort((a, b) => b.full - a.full || b.fill - a.fill || a.place - b.place);
  }

  show() {
    const { model } = this, solved = model.solved();
    const ranked = this.ranked();
    let order = ranked;
    if (this.held) { // while a slider is held, rows stay where they are
      const place = new Map(this.order.map((knob, at) => [knob, at]));
      order = [...ranked].sort((a, b) => (place.get(a.knob) ?? 1e9) - (place.get(b.knob) ?? 1e9));
    }
    this.order = order.map((each) => each.knob);
    const shown = this.all ? order : order.filter((each, at) => at < FEW || model.changes.has(each.knob));
    this.more.hidden = order.length <= FEW;
    write(this.more, this.all ? "show fewer" : `show all ${order.length}`);
    const gains = new Map();
    const nodes = shown.map((each) => {
      if (!this.rows.has(each.knob)) this.rows.set(each.knob, this.row(each.knob));
      const row = this.rows.get(each.knob);
      this.update(row, each, solved, gains);
      return row.node;
    });
    const before = [...this.body.children];
    if (nodes.length !== before.length || nodes.some((node, at) => node !== before[at])) {
      const active = document.activeElement;
      this.body.replaceChildren(...nodes);
      if (this.body.contains(active)) active.focus();
    }
  }

  row(knob) {
    const { model } = this, resource = model.resources[knob];
    const base = resource.capacity_bytes_per_s ?? 50e9;
    const exact = (position) => typed(base * 8 ** (position / NOTCHES));
    const name = h("span", { class: "name" });
    const bar = h("i", {}), level = h("span", { class: "level" });
    const load = h("small", {});
    const slider = h("input", {
      type: "range", min: -NOTCHES, max: NOTCHES, step: 1, "aria-label": `capacity of ${resource.resource}`,
      oninput: () => {
        if (!this.held) model.remember();
        this.held = true;
        model.change(knob, Number(slider.value) === 0 ? "" : exact(Number(slider.value)), { keep: false });
      },
      onchange: () => { this.held = false; this.show(); },
      ondblclick: () => model.change(knob, ""),
    });
    const field = h("input", {
      type: "text", inputmode: "decimal", size: 7, "aria-label": `capacity of ${resource.resource} in GB/s`,
      onchange: () => {
        const text = field.value.trim().replace(",", ".");
        const valid = text === "" || isRate(text);
        field.setAttribute("aria-invalid", String(!valid));
        if (valid) model.change(knob, text === typed(base) ? "" : text);
      },
    });
    const adds = h("td", { class: "adds" });
    const node = h("tr", { "data-knob": knob },
      h("th", { scope: "row" }, name, load), h("td", { class: "fill" }, h("div", { class: "bar" }, bar), level),
      h("td", { class: "knob" }, slider, field), adds);
    return { node, name, bar, level, load, slider, field, adds, base };
  }

  update(row, each, solved, gains) {
    const { model } = this, resource = model.resources[each.place];
    const changed = model.changes.has(each.knob), known = Number.isFinite(each.capacity);
    if (row.name.textContent !== resource.id) row.name.replaceChildren(...pieces(resource.id));
    row.node.classList.toggle("full", each.full);
    row.node.classList.toggle("changed", changed);
    row.bar.style.width = `${Math.min(100, each.fill * 100)}%`;
    row.bar.dataset.fill = levelOf(each.full ? 1 : Math.min(each.fill, 0.9999));
    write(row.level, known ? (each.full ? "full" : percentText(each.fill)) : "unknown");
    write(row.load, known ? `${rateText(each.load)} of ${rateText(each.capacity)}` : rateText(each.load));
    const knobRate = model.capacity(each.knob);
    if (document.activeElement !== row.field) row.field.value = typed(knobRate);
    const position = Number.isFinite(knobRate) ? Math.round(NOTCHES * Math.log(knobRate / row.base) / Math.log(8)) : 0;
    if (Number(row.slider.value) !== position) row.slider.value = position;
    row.slider.setAttribute("aria-valuetext", rateText(knobRate));
    let { rate, time } = model.gain(solved, [each.knob]), words = "";
    if (rate === 0 && each.full) { // what is full together with others of its class
      const { class: kind } = resource;
      if (!gains.has(kind)) {
        const alike = new Set(solved.full.map((place) => model.resources[place]).filter((other) => other.class === kind).map((other) => other.knob));
        gains.set(kind, { ...model.gain(solved, alike), count: alike.size });
      }
      const together = gains.get(kind);
      if (together.rate !== 0) [rate, time, words] = [together.rate, together.time, `all ${together.count}: `];
    }
    write(row.adds, rate === 0 ? "–" : `${words}+${rateText(rate).replace(" GB/s", "")}${time > 0 ? `, −${timeText(time)}` : ""}`);
    row.adds.classList.toggle("worth", rate !== 0);
  }

  /** Bring the row of one of some resources into view. */
  pick(places) {
    const knobs = places.map((place) => this.model.resources[place].knob);
    const best = this.ranked().find((each) => knobs.includes(each.knob));
    if (!best) return;
    if (!this.rows.get(best.knob)?.node.isConnected) { this.all = true; this.show(); }
    const { node } = this.rows.get(best.knob);
    node.scrollIntoView({ block: "nearest" });
    for (const row of this.body.children) row.classList.toggle("picked", row === node);
  }
}
