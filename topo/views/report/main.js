// The page: the document is read, every view shows it, and shows it again after every change.

import { AnswerView, CompareView, LadderView, QuestionView, WorthView } from "./answer.js";
import { FlowView, PairView, TimelineView } from "./charts.js";
import { byId, h, write } from "./dom.js";
import { DoubtView } from "./doubt.js";
import { Model } from "./model.js";
import { PictureView } from "./picture.js";
import { ResourceView } from "./resources.js";
import { answer, complete, ladder, maxMin } from "./solver.js";

const json = (id) => JSON.parse(byId(id).textContent);
const model = new Model(json("document"));
const picture = new PictureView(model, json("drawings"), byId("pictures"), byId("details"), byId("against"));
const resources = new ResourceView(model, byId("rows"), byId("more"));
// What a moving slider changes at once, and what may follow when it rests for a moment.
const views = [new AnswerView(model), picture, resources];
const timeline = new TimelineView(model);
const later = [
  new QuestionView(model), new CompareView(model), new LadderView(model), new WorthView(model),
  new DoubtView(model), new FlowView(model), new PairView(model), timeline,
];
picture.onpick = (places) => resources.pick(places);

let waiting = 0;
function show() {
  const start = performance.now();
  for (const view of views) view.show();
  byId("undo").disabled = !model.past.length;
  byId("redo").disabled = !model.future.length;
  byId("reset").disabled = !model.changes.size;
  document.documentElement.dataset.redraw = (performance.now() - start).toFixed(2);
  clearTimeout(waiting);
  waiting = setTimeout(follow, 40);
}

function follow() {
  for (const view of later) view.show();
}
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(follow, 100); });
addEventListener("afterprint", follow);

let writing = 0;
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    try { history.replaceState(null, "", `#${model.fragment()}`); } catch { /* a page without an address */ }
  }, 150);
}

byId("undo").addEventListener("click", () => model.undo());
byId("redo").addEventListener("click", () => model.redo());
byId("reset").addEventListener("click", () => model.reset());
byId("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});
for (const [button, text] of [["copy-link", () => `${location.href.split("#")[0]}#${model.fragment()}`], ["copy-command", () => model.command().text.replaceAll(" \\\n  ", " ")]]) {
  byId(button).addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      write(byId("told"), "copied");
    } catch {
      write(byId("told"), text());
    }
  });
}
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.target.matches("input[type=text]")) return;
  if (event.key === "z" || event.key === "y") {
    if (event.key === "y" || event.shiftKey) model.redo();
    else model.undo();
    event.preventDefault();
  }
});
addEventListener("hashchange", () => { if (location.hash.startsWith("#workload")) model.read(location.hash); });

function localityTable(rows) {
  const names = Object.keys(rows);
  return [
    h("thead", {}, h("tr", {}, h("td", {}), names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
      names.map((column) => h("td", { "data-class": (rows[name][column] || "").replace(/\d+/, "") }, rows[name][column] || "-"))))),
  ];
}

if (location.hash.startsWith("#workload")) model.read(location.hash);
model.listeners.push(show, remember);
show();
// The first paint waits for nothing that is further down.
let isWhole = false;
function finish() {
  if (isWhole) return;
  isWhole = true;
  follow();
  const { localities } = model.page;
  byId("locality").replaceChildren(...localityTable(localities));
  byId("locality-panel").classList.toggle("many", Object.keys(localities).length > 12);
  picture.reveal();
  document.documentElement.dataset.ready = performance.now().toFixed(1);
}
requestAnimationFrame(() => setTimeout(finish));
setTimeout(finish, 300); // where nothing is painted
addEventListener("beforeprint", () => { finish(); follow(); timeline.show(true); });
// For those who ask the page itself, as its tests do.
globalThis.topo = { model, answer, complete, ladder, maxMin };
