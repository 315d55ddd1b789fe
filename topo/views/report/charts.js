// Charts: the workloads over time with a scrubber, who fills what, what each pair can do alone.

import { byId, h, s, write } from "./dom.js";
import { levelOf } from "./picture.js";
import { listed, percentText, ranges, rateText, timeText } from "./words.js";

/** Workloads run at once, by each data path, all on one scale of time. */
export class TimelineView {
  constructor(model) {
    this.model = model;
    this.part = 0.25; // where the scrubber stands, of the whole time
    this.scrubber = byId("scrubber");
    this.scrubber.addEventListener("input", () => {
      this.part = Number(this.scrubber.value) / 1000;
      this.scrub();
    });
  }

  /** Show it as wide as there is room, or on paper. */
  show(paper = false) {
    const { model } = this, { timelines } = model.page;
    byId("timeline-panel").hidden = !timelines.length;
    if (!timelines.length) return;
    const asked = timelines.map((run) => ({ run, ...model.timeline(run) }));
    this.end = Math.max(...asked.map((run) => run.end));
    const names = [...new Set(asked.flatMap(({ run }) => run.matrix.workloads))];
    this.runs = this.withoutTwins(asked, names);
    // A lane is as high as its workload's highest rate by any data path.
    const most = new Map(names.map((name) => [name, Math.max(...this.runs.flatMap((run) => run.spans.map((span) => this.rateOf(run, span, name))))]));
    this.width = paper ? 720 : Math.max(300, byId("timeline").clientWidth || 1000);
    this.left = names.length > 1 ? 12 + 7 * Math.max(...names.map((name) => name.length)) : 0; // names of lanes
    byId("timeline").replaceChildren(...this.runs.map((run) => this.lanes(run, names, most, paper ? 17 : 34)));
    this.scrub();
  }

  /** The runs that differ in what is shown of them, each with the data paths that have it so. */
  withoutTwins(asked, names) {
    const runs = new Map();
    for (const run of asked) {
      const key = run.spans.map((span) => [timeText(span.start), timeText(span.end), this.fullIn(run, span),
        names.map((name) => rateText(this.rateOf(run, span, name)))].join()).join("\n");
      if (!runs.has(key)) runs.set(key, { ...run, paths: [] });
      runs.get(key).paths.push(run.run.data_path);
    }
    return [...runs.values()].map((run) => ({ ...run, words: listed(run.paths) }));
  }

  /** What is full during a span, as a list of names. */
  fullIn({ run }, span) {
    const full = new Set(span.stops.flat().map((at) => this.model.resources[run.matrix.resources[at]].resource));
    return listed(ranges(full), 4);
  }

  placeOf(time) { return this.left + (time / this.end) * (this.width - this.left); }

  rateOf({ run }, span, name) {
    let total = 0;
    span.demands.forEach((demand, at) => {
      if (run.matrix.workloads[demand] === name) total += span.rates[at] * run.matrix.counts[demand];
    });
    return total;
  }

  lanes(run, names, most, lane) {
    const { width, left } = this, gap = 6;
    const x = (time) => this.placeOf(time);
    const shapes = [];
    names.forEach((name, row) => {
      if (left) shapes.push(s("text", { x: 0, y: row * (lane + gap) + lane / 2 + 4, class: "lane-text" }, name));
      const bottom = row * (lane + gap) + lane;
      shapes.push(s("line", { x1: left, x2: width, y1: bottom, y2: bottom, class: "axis" }));
      for (const span of run.spans) {
        const rate = this.rateOf(run, span, name);
        if (!rate) continue;
        const high = Math.max(2, (rate / most.get(name)) * lane), wide = Math.max(1, x(span.end) - x(span.start) - 1);
        shapes.push(s("rect", { x: x(span.start), y: bottom - high, width: wide, height: high, class: `lane lane-${row % 6}` },
          s("title", {}, `${name}: ${rateText(rate)} from ${timeText(span.start)} to ${timeText(span.end)}`)));
        const words = rateText(rate);
        if (wide > words.length * 7 + 8) shapes.push(s("text", { x: x(span.start) + 6, y: bottom - Math.max(high, 12) / 2 + 4, class: "lane-text" }, words));
      }
    });
    run.line = s("line", { y1: 0, y2: names.length * (lane + gap), class: "scrub" });
    const endless = this.model.endless(run.run);
    const finishes = names.map((name) => {
      if (endless.has(name)) return `${name} goes on`;
      const its = run.run.matrix.workloads.flatMap((each, demand) => (each === name ? [run.finishes[demand]] : []));
      return `${name} ${timeText(Math.max(...its))}`;
    });
    return h("div", { class: "run" }, h("h3", {}, `${run.words}: all done after ${timeText(run.end)}`),
      h("p", { class: "soft" }, finishes.join(" · ")),
      s("svg", { viewBox: `0 0 ${width} ${names.length * (lane + gap)}`, role: "img", "aria-label": `${run.words}: ${finishes.join(", ")}` }, shapes, run.line));
  }

  /** Say what runs at the moment of the scrubber. */
  scrub() {
    const time = this.part * this.end;
    this.scrubber.value = Math.round(this.part * 1000);
    this.scrubber.setAttribute("aria-valuetext", timeText(time));
    write(byId("moment"), `at ${timeText(time)}`);
    byId("moments").replaceChildren(...this.runs.map((run) => {
      for (const end of ["x1", "x2"]) run.line.setAttribute(end, this.placeOf(time));
      const span = run.spans.find((each) => each.start <= time && time < each.end);
      if (!span) return h("li", {}, h("b", {}, run.words), ": nothing runs");
      const names = [...new Set(span.demands.map((demand) => run.run.matrix.workloads[demand]))];
      const rates = names.map((name) => `${name} ${rateText(this.rateOf(run, span, name))}`);
      const full = this.fullIn(run, span), stopped = full ? `; full: ${full}` : "";
      return h("li", {}, h("b", {}, run.words), `: ${rates.join(", ")}${stopped}`);
    }));
  }
}

/** Who fills what: the load of every link, from where data comes to where it goes. */
export class FlowView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, solved = model.solved();
    const edges = new Map();
    solved?.matrix.resources.forEach((place, at) => {
      const { from, to, id } = model.resources[place], load = solved.loads[at];
      if (!from || !(load > 0)) return;
      const key = `${from}\n${to}`, edge = edges.get(key) || { from, to, load: 0, fill: 0, ids: [] };
      edge.load += load;
      edge.fill = Math.max(edge.fill, solved.full.includes(place) ? 1 : Math.min(0.9999, load / model.capacity(place)));
      edge.ids.push(id);
      edges.set(key, edge);
    });
    const links = [...edges.values()];
    byId("flow-panel").hidden = !links.length;
    if (links.length) byId("flow").replaceChildren(this.draw(links));
  }

  draw(links) {
    const names = [...new Set(links.flatMap(({ from, to }) => [from, to]))];
    const depth = new Map(names.map((name) => [name, 0]));
    for (let round = 0; round < names.length; round++) { // the longest way to each
      let moved = false;
      for (const { from, to } of links) {
        if (depth.get(to) <= depth.get(from) && depth.get(from) < names.length) {
          depth.set(to, depth.get(from) + 1);
          moved = true;
        }
      }
      if (!moved || round > 12) break;
    }
    const columns = [];
    for (const name of names) (columns[depth.get(name)] ||= []).push(name);
    const filled = columns.filter(Boolean);
    const through = (name) => Math.max(
      links.filter((each) => each.from === name).reduce((total, each) => total + each.load, 0),
      links.filter((each) => each.to === name).reduce((total, each) => total + each.load, 0));
    const gap = 14, node = 12, label = 90;
    const width = Math.max(640, byId("flow").clientWidth || 1000);
    const rows = Math.max(...filled.map((column) => column.length));
    const height = Math.max(220, rows * 34);
    const scale = Math.min(...filled.map((column) => (height - gap * (column.length - 1))
      / column.reduce((total, name) => total + through(name), 0)));
    const places = new Map(), shapes = [];
    filled.forEach((column, number) => {
      const high = column.reduce((total, name) => total + through(name) * scale, 0) + gap * (column.length - 1);
      let y = (height - high) / 2;
      for (const name of column) {
        const size = through(name) * scale;
        const x = filled.length > 1 ? (number * (width - node - label)) / (filled.length - 1) : 0;
        places.set(name, { x, y, size, out: y, in: y });
        y += size + gap;
      }
    });
    for (const edge of links) {
      const a = places.get(edge.from), b = places.get(edge.to), wide = edge.load * scale;
      const y = a.out + wide / 2, end = b.in + wide / 2, middle = (a.x + node + b.x) / 2;
      a.out += wide;
      b.in += wide;
      shapes.push(s("path", { d: `M${a.x + node},${y}C${middle},${y} ${middle},${end} ${b.x},${end}`, "stroke-width": Math.max(1, wide), class: "ribbon", "data-fill": levelOf(edge.fill) },
        s("title", {}, `${edge.from} to ${edge.to}: ${rateText(edge.load)}, ${percentText(edge.fill)} full`)));
    }
    for (const [name, place] of places) {
      shapes.push(s("rect", { x: place.x, y: place.y, width: node, height: Math.max(2, place.size), class: "node" }),
        s("text", { x: place.x + node + 5, y: place.y + place.size / 2 - 1, class: "node-text" }, name),
        s("text", { x: place.x + node + 5, y: place.y + place.size / 2 + 11, class: "node-rate" }, rateText(through(name))));
    }
    const words = links.map((edge) => `${edge.from} to ${edge.to} ${rateText(edge.load)}`);
    return s("svg", { viewBox: `0 -4 ${width} ${height + 8}`, role: "img", "aria-label": `Who fills what: ${listed(words, 30)}` }, shapes);
  }
}

/** What each pair of storage (or of the card to it) and endpoint could do by itself. */
export class PairView {
  constructor(model) { this.model = model; }

  show() {
    const { chosen } = this.model, pairs = chosen.pairs_bytes_per_s || {};
    byId("pairs-panel").hidden = !Object.keys(pairs).length;
    if (this.shown === chosen) return;
    this.shown = chosen;
    const near = [...new Set(Object.values(pairs).flatMap(Object.keys))];
    const rates = Object.values(pairs).flatMap(Object.values);
    const most = Math.max(...rates.filter((rate) => rate !== null));
    const words = (rate) => (rate === null ? "?" : rate === undefined ? "–" : rateText(rate).replace(" GB/s", ""));
    const cell = (rate) => h("td", { "data-heat": rate ? Math.ceil((4 * rate) / most) : 0 }, words(rate));
    byId("pairs").replaceChildren(
      h("thead", {}, h("tr", {}, h("td", {}), near.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, Object.entries(pairs).map(([far, row]) => h("tr", {}, h("th", { scope: "row" }, far), near.map((name) => cell(row[name]))))));
  }
}
