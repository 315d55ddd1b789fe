// The picture: fills as colours and gauges, a badge that moves to what binds, details on demand.

import { h, s, write } from "./dom.js";
import { percentText, ranges, rateText } from "./words.js";

const LEVELS = [[0.999999999, "full"], [0.75, "high"], [0.5, "half"], [0.25, "some"], [1e-9, "low"]];

/** The name of a fill, for colours: none, low, some, half, high, full. */
export function levelOf(fill) {
  const step = LEVELS.find(([least]) => fill >= least);
  return step ? step[1] : "none";
}

/** What passes a resource in an answer: {load, capacity, fill, full, users}. */
export function use(model, solved, place) {
  const at = solved ? solved.matrix.resources.indexOf(place) : -1;
  const capacity = model.capacity(place);
  if (at < 0) return { load: 0, capacity, fill: 0, full: false, users: [] };
  const full = solved.full.includes(place);
  const load = full ? Math.max(solved.loads[at], capacity) : solved.loads[at];
  const { starts, columns } = solved.matrix;
  const users = [];
  for (let demand = 0; demand < starts.length - 1; demand++) {
    if (columns.slice(starts[demand], starts[demand + 1]).includes(at)) users.push(demand);
  }
  const fill = Number.isFinite(capacity) ? load / capacity : 0;
  return { load, capacity, fill: full ? 1 : fill, full, users, at };
}

// Where each shape of a drawing is, by what its list says after its classes (picture.py).
const GEOMETRY = {
  rect: ["x", "y", "width", "height"], path: ["d"], polygon: ["points"], polyline: ["points"],
  ellipse: ["cx", "cy", "rx", "ry"], text: ["x", "y"],
};

/** Make an element of a part of a drawing: a shape, or a group of those of a device or a wire. */
function drawn([tag, words, ...rest]) {
  if (!(tag in GEOMETRY)) {
    return s("g", { class: tag, [`data-${tag}`]: words, "data-resource": rest[0].join(" ") }, rest.slice(1).map(drawn));
  }
  const place = Object.fromEntries(GEOMETRY[tag].map((name) => [name, rest.shift()]));
  const text = tag === "text" ? rest.shift() : null;
  return s(tag, { class: words || null, ...place, ...rest[0] }, text);
}

/** Where a box is; a browser that measures has to lay out the whole page first. */
function boxOf(outline) {
  if (outline.tagName !== "rect") return outline.getBBox();
  const [x, y, width, height] = GEOMETRY.rect.map((name) => Number(outline.getAttribute(name)));
  return { x, y, width, height };
}

/** Where a text is, about: its middle, its width, and how far from it something else is clear of it. */
function wordsAt(node) {
  const width = 5.4 * node.textContent.length, [x, y] = [node.getAttribute("x"), node.getAttribute("y")].map(Number);
  return { x: node.getAttribute("text-anchor") === "middle" ? x : x + width / 2, y: y - 3, width, room: 13 };
}

/** Where a badge may go: at the top of a box; at an end of an upright wire, or on the left of its label. */
function placesOf({ isWire, outline, box }, width) {
  if (!isWire) return [[box.x + box.width / 2, box.y - 6]];
  const length = outline.getTotalLength();
  const [start, middle, end] = [9, length / 2, length - 9].map((at) => outline.getPointAtLength(at));
  if (Math.abs(start.y - end.y) < 1) return [[middle.x, middle.y + 12]];
  return [...[start, end].map(({ x, y }) => [x, y]), [middle.x - width / 2 + 4, middle.y], [middle.x, middle.y]];
}

/** The way of the chosen data path, beside it that of another if the reader asks for one. */
export class PictureView {
  constructor(model, drawings, root, details, against) {
    this.model = model;
    this.drawings = drawings;
    this.root = root;
    this.details = details;
    this.against = against;
    this.figures = new Map(); // made when they are first shown
    this.panes = [];
    this.pinned = null;
    root.addEventListener("keydown", (event) => this.walk(event));
    against.addEventListener("change", () => { model.against = against.value; model.update(); });
  }

  /** The drawing of a path's route, else the machine alone. */
  drawing(path) {
    const { pictures } = this.drawings, { name } = this.model.question;
    return pictures.find((each) => each.workload === name && each.data_path === path.data_path) || pictures[0];
  }

  show() {
    const { model } = this;
    this.choices();
    this.panes = [model.chosen, model.rival].filter(Boolean).map((path, side) => {
      const drawing = this.drawing(path), key = `${this.drawings.pictures.indexOf(drawing)} ${side}`;
      if (!this.figures.has(key)) this.figures.set(key, this.made(drawing));
      return { path, picture: this.figures.get(key) };
    });
    const isTwo = this.panes.length > 1;
    for (const { figure } of this.figures.values()) figure.hidden = !this.panes.some(({ picture }) => picture.figure === figure);
    this.root.classList.toggle("two", isTwo);
    this.root.closest(".work").classList.toggle("two", isTwo);
    this.root.closest(".work").classList.toggle("broad", this.panes.some(({ picture }) => picture.width > 1050));
    this.root.style.setProperty("--least", `${0.55 * Math.max(...this.panes.map(({ picture }) => picture.width))}px`);
    for (const { path, picture } of this.panes) {
      if (!picture.shapes) this.prepare(picture);
      picture.path = path;
      picture.caption.hidden = !isTwo;
      write(picture.caption.firstChild, path.data_path);
      write(picture.caption.lastChild, ` ${model.caption(path)}`);
      this.paint(picture, model.solved(path));
    }
    this.tell(this.panes.some(({ picture }) => picture.shapes.includes(this.told)) ? this.told : null);
  }

  /** Bring what binds into view where a figure is wider than its room. */
  reveal() {
    for (const { picture } of this.panes) {
      const { figure, badges } = picture, badge = badges.find(({ node }) => !node.classList.contains("gone"));
      if (!badge || figure.scrollWidth <= figure.clientWidth) continue;
      const { left, width } = badge.node.getBoundingClientRect();
      figure.scrollLeft += left + width / 2 - figure.getBoundingClientRect().left - figure.clientWidth / 2;
    }
  }

  /** The data paths that may stand beside the chosen one. */
  choices() {
    const { model } = this, { chosen } = model;
    const names = model.question.paths.filter((path) => path.matrix && path !== chosen).map((path) => path.data_path);
    const key = names.join();
    if (this.offered !== key) {
      this.offered = key;
      this.against.replaceChildren(h("option", { value: "" }, "nothing"), ...names.map((name) => h("option", { value: name }, name)));
    }
    this.against.value = model.rival ? model.rival.data_path : "";
  }

  /** Make the figure of a drawing. */
  made({ size, shift, runs, workload, data_path: path }) {
    const parts = runs.flatMap(([first, count]) => this.drawings.parts.slice(first, first + count));
    const caption = h("figcaption", {}, h("b", {}), h("span", {}));
    const svg = s("svg", { viewBox: `0 0 ${size.join(" ")}` },
      s("g", { transform: `translate(${shift.join(" ")})` }, parts.map(drawn)));
    const figure = h("figure", { "data-workload": workload, "data-path": path }, caption, svg);
    this.root.append(figure);
    return { figure, caption, svg, width: size[0], badges: [] };
  }

  /** Give each shape a gauge and a place for a badge, and make it one to hover and to walk to. */
  prepare(picture) {
    const { svg } = picture;
    picture.words = [...svg.querySelectorAll("text")].map(wordsAt);
    picture.layer = s("g", { class: "badges", "aria-hidden": "true" });
    picture.shapes = [...svg.querySelectorAll("[data-resource]")].map((group) => {
      const outline = [...group.querySelectorAll(":scope>:not(text)")].at(-1); // those alike are behind it
      outline.classList.add("outline");
      const places = group.dataset.resource.split(" ").filter(Boolean).map(Number);
      const names = (group.dataset.device || group.dataset.wire).split("\n");
      const isWire = group.classList.contains("wire");
      const shape = { group, outline, places, names, isWire, picture };
      if (!isWire) {
        const box = boxOf(outline);
        shape.box = box;
        const gauge = { x: box.x + 7, y: box.y + box.height - 4.4, height: 3 };
        shape.back = s("rect", { class: "gauge-back", ...gauge, width: box.width - 14 });
        shape.gauge = s("rect", { class: "gauge", ...gauge, width: 0 });
        group.append(shape.back, shape.gauge);
      }
      group.setAttribute("tabindex", "-1");
      group.setAttribute("role", "img");
      for (const kind of ["pointerenter", "focus"]) group.addEventListener(kind, () => this.tell(shape));
      group.addEventListener("pointerleave", () => this.tell(this.pinned));
      group.addEventListener("click", () => {
        this.pinned = this.pinned === shape ? null : shape;
        this.tell(this.pinned || shape);
        if (this.onpick) this.onpick(shape.places);
      });
      return shape;
    });
    picture.shapes[0]?.group.setAttribute("tabindex", "0");
    svg.firstElementChild.append(picture.layer);
  }

  /** Colour every shape by the fullest of its resources. */
  paint(picture, solved) {
    const full = new Map();
    for (const shape of picture.shapes) {
      let most = null;
      for (const place of shape.places) {
        const used = use(this.model, solved, place);
        if (used.load > 0 && (!most || used.fill > most.fill || (used.full && !most.full))) most = { ...used, place };
      }
      shape.most = most;
      const level = most ? levelOf(most.full ? 1 : Math.min(most.fill, 0.9999)) : "none";
      shape.group.dataset.fill = level;
      const changed = shape.places.some((place) => this.model.changes.has(this.model.resources[place].knob));
      shape.group.classList.toggle("changed", changed);
      if (shape.gauge) {
        shape.gauge.setAttribute("width", (shape.box.width - 14) * Math.min(1, most ? most.fill : 0));
        shape.back.setAttribute("visibility", most ? "visible" : "hidden");
      }
      if (most?.full) full.set(shape.names.join(), full.get(shape.names.join()) || shape); // hops lie side by side on one link
      shape.group.setAttribute("aria-label", this.sentence(shape));
    }
    this.badge(picture, [...full.values()]);
  }

  /** Put a badge on each shape that binds; those that are there move, more or fewer come and go. */
  badge(picture, binding) {
    while (picture.badges.length < binding.length) {
      const text = s("text", { "text-anchor": "middle", y: 3.6 });
      const pill = s("rect", { height: 16, y: -8 });
      const node = s("g", { class: "badge" }, pill, text);
      picture.layer.append(node);
      picture.badges.push({ node, pill, text });
    }
    const placed = [];
    picture.badges.forEach((badge, number) => {
      const shape = binding[number];
      badge.node.classList.toggle("gone", !shape);
      if (!shape) return;
      write(badge.text, binding.length > 3 ? "FULL" : `BOTTLENECK ${rateText(shape.most.capacity)}`);
      const width = badge.text.textContent.length * 6.4 + 14;
      badge.pill.setAttribute("width", width);
      badge.pill.setAttribute("x", -width / 2);
      const isClear = ([x, y], things) => things.every((other) => Math.abs(other.x - x) >= (other.width + width) / 2 || Math.abs(other.y - y) >= other.room);
      const places = placesOf(shape, width), clear = places.filter((place) => isClear(place, placed));
      let [x, y] = clear.find((place) => isClear(place, picture.words)) || clear[0] || places[0];
      while (!isClear([x, y], placed)) y += 16;
      placed.push({ x, y, width, room: 16 });
      badge.node.style.transform = `translate(${x}px, ${y}px)`;
    });
  }

  sentence(shape) {
    const name = listedNames(shape.names), { most } = shape;
    if (!most) return `${name}: unused`;
    const { id } = this.model.resources[most.place];
    const of = Number.isFinite(most.capacity) ? ` of ${rateText(most.capacity)}, ${percentText(most.fill)}` : "";
    return `${name}: ${id} ${rateText(most.load)}${of}${most.full ? ", bottleneck" : ""}`;
  }

  /** Show what is known of a shape's resources. */
  tell(shape) {
    if (this.told) this.told.group.classList.remove("told");
    this.told = shape;
    if (!shape) {
      this.details.replaceChildren(h("p", { class: "hint" }, "Point at a part of the picture, or walk through it with the arrow keys: what it carries, what it can, and who says so stands here."));
      return;
    }
    shape.group.classList.add("told");
    const { model } = this, solved = model.solved(shape.picture.path);
    const rows = shape.places.map((place) => [place, use(model, solved, place)])
      .filter(([, used], at) => used.load > 0 || at < 2)
      .sort((a, b) => b[1].fill - a[1].fill).slice(0, 5);
    const device = shape.isWire ? null : model.page.devices.find(({ name }) => name === shape.names[0]);
    const words = device ? h("small", { class: "soft" }, ` ${device.title} `,
      device.line ? h("a", { href: `#line-${device.line}` }, `line ${device.line}`) : null) : null;
    this.details.replaceChildren(h("h3", {}, listedNames(shape.names), words), ...rows.map(([place, used]) => describe(model, solved, place, used)));
  }

  /** Walk from shape to shape with the arrow keys. */
  walk(event) {
    const picture = this.panes.find((pane) => pane.picture.figure.contains(document.activeElement))?.picture;
    if (!picture) return;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const at = picture.shapes.findIndex((shape) => shape.group === document.activeElement);
    if (at < 0) return;
    let next = null;
    if (event.key in steps) next = (at + steps[event.key] + picture.shapes.length) % picture.shapes.length;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = picture.shapes.length - 1;
    if (event.key === "Enter" || event.key === " ") this.onpick?.(picture.shapes[at].places);
    else if (next === null) return;
    event.preventDefault();
    if (next === null) return;
    picture.shapes[at].group.setAttribute("tabindex", "-1");
    picture.shapes[next].group.setAttribute("tabindex", "0");
    picture.shapes[next].group.focus();
  }
}

function listedNames(names) { return ranges(names).join(", "); }

/** One resource in full: figure, kind, source, load, users. */
export function describe(model, solved, place, used) {
  const resource = model.resources[place];
  const changed = model.changes.has(resource.knob), source = model.page.sources[resource.source];
  const figure = resource.unknown && !changed ? "unknown" : rateText(used.capacity);
  const facts = [
    ["carries", used.load > 0 && Number.isFinite(used.fill) && Number.isFinite(used.capacity) ? `${rateText(used.load)}, ${percentText(used.fill)} of it` : rateText(used.load)],
    ["capacity", `${figure}${changed ? " (changed here)" : `, ${resource.basis ?? model.page.basis}`}`],
    ["source", changed ? "you" : `${source.kind}: ${source.source}`],
  ];
  if (source.limited_by && !changed) facts.push(["limited by", source.limited_by]);
  if (used.users.length) {
    facts.push(["used by", ranges(used.users.map((demand) => solved.matrix.endpoints[demand])).join(", ")]);
  }
  if (resource.line) facts.push(["stated in", h("a", { href: `#line-${resource.line}` }, `line ${resource.line}`)]);
  return h("div", { class: "fact" },
    h("h4", {}, resource.id, used.full ? h("strong", { class: "pill" }, "bottleneck") : null),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
