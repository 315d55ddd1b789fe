// What the page knows: the document, what the reader changed, and the answers to it.

import { answer, bound, complete, gain, ladder } from "./solver.js";
import { listed, rateText, timeText } from "./words.js";

const NO_END = 1e30; // bytes of what goes on and on
const none = (value) => value ?? Infinity;

/** Holds the question, the changes and their history; `solved` is the answer to it. */
export class Model {
  constructor(page) {
    this.page = page;
    this.resources = page.resources;
    for (const resource of this.resources) resource.resource ??= resource.id;
    for (const asked of [...page.workloads.flatMap((workload) => workload.paths), ...page.timelines]) {
      asked.matrix = asked.matrix === null ? null : page.matrices[asked.matrix];
    }
    this.changes = new Map(); // a knob's first resource: GB/s, as text
    this.past = [];
    this.future = [];
    this.listeners = [];
    this.cache = new Map(); // of a workload's path, or of a run of all at once: its answer
    this.workload = 0;
    this.against = ""; // the data path that stands beside the chosen one
    this.path = opening(page.workloads[0].paths);
    this.knobs = new Map();
    this.resources.forEach((resource, place) => {
      if (!this.knobs.has(resource.knob)) this.knobs.set(resource.knob, []);
      this.knobs.get(resource.knob).push(place);
    });
  }

  get question() { return this.page.workloads[this.workload]; }
  get chosen() { return this.question.paths[this.path]; }
  get rival() {
    const { chosen } = this;
    return this.question.paths.find((path) => path.matrix && path !== chosen && path.data_path === this.against);
  }

  /** The capacity of a resource with the reader's changes, in bytes/s. */
  capacity(place) {
    const { knob } = this.resources[place], own = none(this.resources[place].capacity_bytes_per_s);
    const text = this.changes.get(knob);
    if (text === undefined) return own;
    const value = Number(`${text}e9`), base = none(this.resources[knob].capacity_bytes_per_s);
    return own === base || !Number.isFinite(base) || !Number.isFinite(own) ? value : own * (value / base);
  }

  /** The system of a matrix as the solver reads it. */
  system(matrix) {
    return {
      capacities: Float64Array.from(matrix.resources, (place) => this.capacity(place)),
      starts: matrix.starts,
      columns: matrix.columns,
      multiplicities: matrix.multiplicities,
      weights: matrix.weights,
      limits: this.limits(matrix),
      counts: matrix.counts,
    };
  }

  /** Each demand's own limit; one worker that does stage after stage is as fast as what it uses. */
  limits(matrix) {
    if (!matrix.stages || !this.changes.size) return matrix.limits.map(none);
    return matrix.stages.map((stages, demand) => {
      if (!stages) return none(matrix.limits[demand]);
      const seconds = stages.reduce((total, stage) => {
        const rates = stage.uses.map(([place, times]) => this.capacity(place) / times);
        return total + stage.share / Math.min(none(stage.rate), ...rates);
      }, 0);
      return Math.min(none(matrix.own_limits[demand]), matrix.workers[demand] / seconds);
    });
  }

  /** The words for some resources of one class: "the cards' chips". */
  classWords(places) {
    const count = places.reduce((total, place) => total + (this.resources[place].count ?? 1), 0);
    return `the ${this.page.classes[this.resources[places[0]].class][count > 1 ? "many" : "one"]}`;
  }

  /** Resources by their class, in the order in which they come. */
  byClass(places) {
    const classes = new Map();
    for (const place of places) {
      const kind = this.resources[place].class;
      classes.set(kind, [...(classes.get(kind) || []), place]);
    }
    return classes;
  }

  isLimit(matrix) { return (at) => this.resources[matrix.resources[at]].class === "workload-limit"; }

  /** The answer of a path of the current workload, or of any: null where it is refused. */
  solved(path = this.chosen, question = this.question) {
    if (!path.matrix) return null;
    if (!this.cache.has(path)) this.cache.set(path, this.solve(path, question));
    return this.cache.get(path);
  }

  solve(path, question) {
    const { matrix } = path, system = this.system(matrix);
    const sizes = question.bytes === null ? null : matrix.sizes;
    const result = answer(system, sizes);
    const full = bound(result, this.isLimit(matrix)).map((at) => matrix.resources[at]);
    const unknown = matrix.resources.filter((place, at) => this.unknown(place, result.peaks[at]));
    return { ...result, matrix, system, sizes, full, unknown, atMost: unknown.length > 0 };
  }

  /** Whether nobody knows that a resource lets so many bytes/s pass. */
  unknown(place, load) {
    const resource = this.resources[place];
    if (!resource.unknown || this.changes.has(resource.knob)) return false;
    return !(load < (resource.guess_bytes_per_s ?? 0) * (1 - 1e-9));
  }

  /** What limits an answer, in topo's words: the classes that bind, else what the demands say. */
  limitWords(solved, path) {
    const words = [...this.byClass(solved.full).values()].map((places) => this.classWords(places));
    if (words.length) return listed(words, 4);
    const own = new Set();
    const isLimit = this.isLimit(solved.matrix);
    for (const [demand, stops] of solved.stops) {
      if (stops.some(isLimit)) own.add(path.limit_words[0]);
      else if (!stops.length) {
        own.add(path.limit_words[solved.system.limits[demand] >= none(solved.matrix.own_limits[demand]) ? 0 : 1]);
      }
    }
    return listed(own, 4);
  }

  /** "busbw 46.4 GB/s" of a collective, as nccl-tests counts it; nothing of another. */
  busWords(solved, path) {
    if (!path.collective) return "";
    return `busbw ${solved.atMost ? "at most " : ""}${rateText(solved.rate * path.collective.bus_factor)}`;
  }

  /** "100 GB/s, 6.4 s: limited by the cards' chips": what `topo draw` writes above a path. */
  caption(path, question = this.question) {
    const solved = this.solved(path, question);
    if (!solved) return "";
    const most = solved.atMost ? "at most " : "", least = solved.atMost ? "at least " : "";
    const figures = [most + rateText(solved.rate), this.busWords(solved, path)].filter(Boolean);
    if (solved.time !== null) figures.push(least + timeText(solved.time));
    const limit = this.limitWords(solved, path);
    return limit ? `${figures.join(", ")}: limited by ${limit}` : figures.join(", ");
  }

  /** What one GB/s more on all that some knobs move adds to an answer: {rate, time}. */
  gain(solved, knobs) {
    const members = new Set([...knobs].flatMap((knob) => this.knobs.get(knob)));
    const at = solved.matrix.resources.flatMap((place, index) => (members.has(place) ? [index] : []));
    const isFull = at.some((index) => solved.peaks[index] >= solved.system.capacities[index] * (1 - 1e-9));
    if (!isFull) return { rate: 0, time: 0 };
    return gain(solved.system, solved.sizes, solved, at, 1e9);
  }

  /** "direct is 2 times as fast as legacy", where there is another and both are known. */
  versus(solved) {
    const { rival } = this, slower = rival && this.solved(rival);
    if (!slower || solved.atMost || slower.atMost) return "";
    const times = solved.time ? slower.time / solved.time : solved.rate / slower.rate;
    const names = (how) => `${this.chosen.data_path} is ${how} ${rival.data_path}`;
    if (Math.abs(times - 1) < 1e-9) return names("as fast as");
    return names(`${times > 0.995 && times < 1.005 ? times.toFixed(4) : times.toFixed(2)} times as fast as`);
  }

  ladder(solved) {
    const forSale = (at) => this.page.classes[this.resources[solved.matrix.resources[at]].class].for_sale;
    const { rungs, end, kept, stops } = ladder(solved.system, solved.sizes, this.isLimit(solved.matrix), forSale);
    const places = (full) => full.map((at) => solved.matrix.resources[at]);
    const own = stops ? this.limitWords({ ...solved, stops, full: [] }, this.chosen) : "";
    return { rungs: rungs.map((rung) => ({ ...rung, full: places(rung.full) })), end, kept: places(kept), own };
  }

  /** The names of the workloads that go on and on: nobody said how much they move. */
  endless(run) {
    return new Set(run.runs.filter(({ bytes }) => bytes === null).map(({ workload }) => workload));
  }

  /** The workloads run at once by one data path. */
  timeline(run) {
    if (!this.cache.has(run)) {
      const { sizes, arrivals, workloads } = run.matrix, endless = this.endless(run);
      const goesOn = workloads.map((name) => endless.has(name)), system = this.system(run.matrix);
      const timeline = complete(system, sizes.map((size, demand) => (goesOn[demand] ? NO_END : size)), arrivals);
      this.cache.set(run, { ...(endless.size ? untilDone(timeline, goesOn) : timeline), system });
    }
    return this.cache.get(run);
  }

  // --- changes --------------------------------------------------------------------------------

  /** Set what a knob gives, in GB/s as text; an empty text takes the change back. */
  change(knob, text, { keep = true } = {}) {
    if (keep) this.remember();
    if (text === "") this.changes.delete(knob);
    else this.changes.set(knob, text);
    this.update();
  }

  remember() {
    this.past.push(new Map(this.changes));
    this.future = [];
  }

  undo() {
    if (!this.past.length) return;
    this.future.push(this.changes);
    this.changes = this.past.pop();
    this.update();
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.changes);
    this.changes = this.future.pop();
    this.update();
  }

  reset() {
    if (!this.changes.size) return;
    this.remember();
    this.changes = new Map();
    this.update();
  }

  ask(workload, path) {
    const before = this.chosen.data_path;
    this.workload = workload;
    const paths = this.question.paths;
    const same = paths.findIndex((each) => each.data_path === before && each.matrix);
    this.path = path ?? (same >= 0 ? same : opening(paths));
    if (this.against === this.chosen.data_path) this.against = before; // the two change places
    this.update();
  }

  update() {
    this.cache.clear();
    for (const listener of this.listeners) listener();
  }

  // --- the state as text ------------------------------------------------------------------------

  /** The fragment that brings this question and these changes back. */
  fragment() {
    const words = new URLSearchParams({ workload: this.question.name, via: this.chosen.data_path });
    if (this.rival) words.set("beside", this.rival.data_path);
    for (const [knob, text] of this.changes) words.append("set", `${this.resources[knob].id}=${text}`);
    return words.toString();
  }

  /** Take up a fragment; what it names and is not there is left out. */
  read(fragment) {
    const words = new URLSearchParams(fragment.replace(/^#/, ""));
    const workload = this.page.workloads.findIndex((each) => each.name === words.get("workload"));
    if (workload >= 0) this.workload = workload;
    const paths = this.question.paths;
    const path = paths.findIndex((each) => each.data_path === words.get("via") && each.matrix);
    if (path >= 0) this.path = path;
    else if (!this.chosen?.matrix) this.path = opening(paths);
    this.against = words.get("beside") ?? "";
    this.changes = new Map();
    for (const text of words.getAll("set")) {
      const cut = text.lastIndexOf("=");
      const resource = this.resources.find((each) => each.id === text.slice(0, cut));
      const value = text.slice(cut + 1);
      if (resource && isRate(value)) this.changes.set(resource.knob, value);
    }
    this.update();
  }

  /** The command line that asks a verb about the chosen answer, changes apart. */
  words(verb) {
    const words = ["topo", verb, ...this.page.command.map(quoted)];
    if (this.page.asks_workload) words.push("--workload", quoted(this.question.name));
    return [...words, "--via", quoted(this.chosen.data_path)].join(" ");
  }

  /** The command line with the same answer, and the changes that no `--set` can say. */
  command() {
    const lines = [this.words("compare")], unsaid = [];
    for (const [knob, text] of this.changes) {
      const { set } = this.resources[knob];
      if (set) lines.push(`--set ${quoted(`${set[0]}${set[1] > 1 ? text / set[1] : text} GB/s`)}`);
      else unsaid.push(this.resources[knob].id);
    }
    return { text: lines.join(" \\\n  "), unsaid };
  }
}

/** Where the path stands that a question opens with: direct, else the fastest of the usual. */
function opening(paths) {
  const possible = paths.filter((path) => path.matrix), usual = possible.filter((path) => path.usual);
  const faster = (a, b) => (b.rate_bytes_per_s > a.rate_bytes_per_s * (1 + 1e-9) ? b : a);
  const direct = usual.find((path) => path.data_path === "direct");
  return paths.indexOf(direct || (usual.length ? usual.reduce(faster) : possible[0] || paths[0]));
}

/** A timeline until all demands are done that do not go on and on. */
function untilDone({ finishes, spans }, goesOn) {
  const end = finishes.reduce((latest, finish, demand) => (goesOn[demand] ? latest : Math.max(latest, finish)), 0);
  return {
    end,
    finishes: finishes.map((finish) => Math.min(finish, end)),
    spans: spans.filter((span) => span.start < end).map((span) => ({ ...span, end: Math.min(span.end, end) })),
  };
}

/** Whether a text is a rate in GB/s that topo would take. */
export function isRate(text) {
  const value = Number(`${text}e9`);
  return /^[0-9]+(\.[0-9]+)?$/.test(text) && value >= 1e3 && value <= 1e18;
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
}
