// The answer in one line, the choice of workload and data path, the paths side by side, the ladder.

import { h, byId, write } from "./dom.js";
import { listed, percentText, ranges, rateText, sizeText, timeText } from "./words.js";

/** Tabs of workloads, and a button for each data path, the refused with their reasons below. */
export class QuestionView {
  constructor(model) {
    this.model = model;
    this.tabs = model.page.workloads.map((workload, number) => h("button", {
      role: "tab", type: "button", id: `tab-${number}`, "aria-controls": "answer",
      onclick: () => model.ask(number), onkeydown: (event) => this.walk(event, number),
    }, workload.name));
    byId("tabs").replaceChildren(...this.tabs);
    this.paths = byId("paths");
  }

  walk(event, number) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (number + step + this.tabs.length) % this.tabs.length;
    this.model.ask(next);
    this.tabs[next].focus();
  }

  show() {
    const { model } = this;
    this.tabs.forEach((tab, number) => {
      tab.setAttribute("aria-selected", String(number === model.workload));
      tab.setAttribute("tabindex", number === model.workload ? "0" : "-1");
    });
    const { paths } = model.question;
    if (this.shown !== model.question) {
      this.shown = model.question;
      this.buttons = paths.map((path, number) => path.matrix && h("button", {
        type: "button", title: path.title, onclick: () => model.ask(model.workload, number),
      }, h("b", {}, path.data_path), h("span", {})));
      this.paths.replaceChildren(...this.buttons.filter(Boolean));
      const refused = paths.filter((path) => !path.matrix);
      byId("refused").hidden = !refused.length;
      byId("refused").replaceChildren(
        h("summary", {}, `${refused.length} not possible here: ${listed(refused.map((path) => path.data_path))}`),
        h("dl", {}, refused.map((path) => [h("dt", {}, path.data_path), h("dd", {}, path.why.join("; "))])));
    }
    this.buttons.forEach((button, number) => {
      if (!button) return;
      const solved = model.solved(paths[number]);
      button.setAttribute("aria-pressed", String(number === model.path));
      write(button.lastChild, rateText(solved.rate));
    });
  }
}

/** The question and its answer. */
export class AnswerView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, { question, chosen } = model, solved = model.solved();
    const size = question.bytes === null ? "" : ` ${sizeText(question.bytes)}`;
    const [from, to] = [question.from, question.to].map((names) => ranges(names).join(", "));
    const what = question.collective ? `${question.collective}${size} over ${to}` : `${question.direction}${size}, ${from} to ${to}`;
    write(byId("question"), `${question.name} by ${chosen.data_path}: ${what}`);
    if (!solved) {
      write(byId("rate"), "not possible");
      write(byId("time"), "");
      write(byId("limit"), chosen.why.join("; "));
      write(byId("was"), "");
      return;
    }
    const most = solved.atMost ? "at most " : "", least = solved.atMost ? "at least " : "";
    write(byId("rate"), most + rateText(solved.rate));
    write(byId("time"), solved.time === null ? "" : least + timeText(solved.time));
    const words = model.limitWords(solved, chosen);
    const names = ranges(solved.full.map((place) => model.resources[place].resource));
    write(byId("limit"), words ? `limited by ${words}${names.length ? ` (${listed(names, 4)})` : ""}` : "");
    byId("answer").dataset.caption = model.caption(chosen);
    const apart = solved.time !== null && solved.rate !== solved.startRate;
    const notes = [model.busWords(solved, chosen), model.versus(solved)].filter(Boolean);
    if (apart) notes.push(`${rateText(solved.startRate)} while all run; they finish apart`);
    if (solved.atMost) {
      notes.push(`unknown: ${listed(solved.unknown.map((place) => model.resources[place].id), 3)}`);
    }
    if (model.changes.size) {
      const was = `${rateText(chosen.rate_bytes_per_s)}${chosen.time_s === null ? "" : `, ${timeText(chosen.time_s)}`}`;
      const factor = solved.rate / chosen.rate_bytes_per_s;
      notes.push(`${was} as the file says: ${factor.toFixed(2)} times that`);
    }
    write(byId("was"), notes.join(" · "));
    this.command();
  }

  command() {
    const { text, unsaid } = this.model.command();
    write(byId("command"), text);
    const notes = [];
    if (this.model.changes.size) {
      notes.push("Routes stay as they are laid here; topo lays them anew.");
    }
    if (unsaid.length) notes.push(`No --set says ${listed(unsaid, 3)}.`);
    write(byId("command-notes"), notes.join(" "));
  }
}

/** The usual data paths side by side: what each does, and how fast. */
export class CompareView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, { question, chosen } = model;
    const shown = question.paths.filter((path) => path.usual || path === chosen);
    const solved = shown.map((path) => model.solved(path));
    const best = Math.max(...solved.map((each) => (each ? each.rate : 0)));
    byId("compare").replaceChildren(...shown.map((path, at) => this.card(path, solved[at], best, path === chosen)));
  }

  card(path, solved, best, isChosen) {
    const { model } = this, { question } = model;
    const number = question.paths.indexOf(path);
    if (!solved) {
      return h("article", { class: "card" }, h("h3", {}, path.data_path, h("small", {}, path.title)),
        h("p", { class: "refused" }, `not possible: ${path.why.join("; ")}`));
    }
    const facts = [
      ["hops", path.logical_hops], ["links", path.physical_links],
      ["RAM traversals", path.ram_traversals], ["CPU memory copies", path.cpu_memory_copies],
      ["RAM traversals, other server", path.target ? path.target.ram_traversals : null],
      ["DRAM bytes", path.dram_bytes === null ? null : path.dram_bytes === 0 ? "0" : sizeText(path.dram_bytes)],
      ["cores busy copying", path.cores_needed ? (path.cores_needed * solved.rate / path.rate_bytes_per_s).toFixed(1) : "0"],
    ].filter(([, value]) => value !== null && value !== undefined);
    return h("article", { class: isChosen ? "card chosen" : "card" },
      h("h3", {}, h("button", { type: "button", class: "plain", onclick: () => model.ask(model.workload, number) }, path.data_path),
        h("small", {}, path.title)),
      h("ol", { class: "way", "aria-label": "waypoints" }, path.waypoints.map((name) => h("li", {}, name))),
      h("p", { class: "figures" }, h("b", {}, rateText(solved.rate)), solved.time === null ? "" : h("b", {}, timeText(solved.time)),
        h("span", { class: "bar wide" }, filled(solved.rate / best))),
      h("p", {}, `limited by ${model.limitWords(solved, path)}`),
      h("dl", { class: "counts" }, facts.map(([name, value]) => h("div", {}, h("dd", {}, String(value)), h("dt", {}, name)))));
  }
}

function filled(part) {
  const bar = h("i", {});
  bar.style.width = `${Math.min(100, part * 100)}%`;
  return bar;
}

/** The ladder: what binds, then what would bind next. */
export class LadderView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, solved = model.solved();
    if (!solved) { byId("ladder").replaceChildren(); return; }
    const { rungs, end, kept, own } = model.ladder(solved);
    const most = Math.max(...rungs.map((rung) => rung.rate));
    const words = (places) => listed([...model.byClass(places).values()].map((alike) => {
      const names = ranges(alike.map((place) => model.resources[place].resource));
      return `${model.classWords(alike)} (${listed(names, 4)})`;
    }));
    const why = {
      unlimited: "then nothing else in the file limits",
      "own-limits": `then ${own} is all that is left`,
      "not-for-sale": `${words(kept)} cannot be bought apart from the GPU`,
    }[end];
    byId("ladder").replaceChildren(...rungs.map((rung, at) => {
      const step = h("li", {}, h("b", {}, rateText(rung.rate)), h("span", { class: "bar wide" }, filled(rung.rate / most)),
        h("span", {}, `${at ? "then " : ""}${words(rung.full)}`, rung.time === null ? "" : ` · ${timeText(rung.time)}`));
      return step;
    }), h("li", { class: "end" }, why));
  }
}

/** What one GB/s more adds, for what binds: one of it, all alike, and all that bind at once. */
export class WorthView {
  constructor(model) { this.model = model; }

  show() {
    const { model } = this, solved = model.solved();
    if (!solved) { byId("worth").replaceChildren(); return; }
    const groups = [...model.byClass(solved.full).values()];
    const lines = groups.map((places) => this.line(solved, places, model.classWords(places)));
    if (groups.length > 1) lines.push(this.line(solved, solved.full, "all of them together"));
    byId("worth").replaceChildren(...lines.map((line) => h("li", {}, line)));
  }

  line(solved, places, words) {
    const { model } = this;
    const { rate, time } = model.gain(solved, new Set(places.map((place) => model.resources[place].knob)));
    const isOne = places.length === 1 && !model.resources[places[0]].count;
    const what = `1 GB/s more on ${isOne ? "" : "each of "}${words}`;
    if (rate === 0) return `${what} adds nothing.`;
    const saved = time > 0 ? ` and saves ${timeText(time)} (${percentText(time / solved.time)})` : "";
    return `${what} adds ${rateText(rate)}${saved}.`;
  }
}
