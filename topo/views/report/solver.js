// Max-min fair rates, times of completion, ladders: what topo's own solvers do, step by step, so
// that the page has topo's answer to the last digit (topo/solve/maxmin.py, topo/solve/fluid.py,
// topo/study/bottleneck.py).
//
// A system is {capacities, starts, columns, multiplicities, weights, limits}: demand d uses
// resource columns[e] multiplicities[e] times for e from starts[d] up to starts[d + 1]. Capacities
// and limits are bytes/s, Infinity for none.

/** Two levels are one, and a resource is full, within this relative difference. */
export const TIE = 1e-9;
const SAME_TIME = 1e-12;

/** Add without losing digits (Neumaier): a total must not depend on how many demands there are. */
export function sum(values) {
  let total = 0, lost = 0;
  for (const value of values) {
    const next = total + value;
    lost += Math.abs(total) >= Math.abs(value) ? (total - next) + value : (value - next) + total;
    total = next;
  }
  return total + lost;
}

/** A heap of [level, index] pairs, the least level first, of equal ones the least index. */
class Heap {
  constructor() { this.levels = []; this.indices = []; }
  get size() { return this.levels.length; }
  before(a, b) {
    const difference = this.levels[a] - this.levels[b];
    return difference < 0 || (difference === 0 && this.indices[a] < this.indices[b]);
  }
  swap(a, b) {
    [this.levels[a], this.levels[b]] = [this.levels[b], this.levels[a]];
    [this.indices[a], this.indices[b]] = [this.indices[b], this.indices[a]];
  }
  push(level, index) {
    this.levels.push(level); this.indices.push(index);
    for (let place = this.size - 1; place > 0;) {
      const parent = (place - 1) >> 1;
      if (!this.before(place, parent)) break;
      this.swap(place, parent);
      place = parent;
    }
  }
  pop() {
    const least = [this.levels[0], this.indices[0]], last = this.size - 1;
    this.swap(0, last);
    this.levels.pop(); this.indices.pop();
    for (let place = 0;;) {
      let below = 2 * place + 1;
      if (below >= last) break;
      if (below + 1 < last && this.before(below + 1, below)) below += 1;
      if (!this.before(below, place)) break;
      this.swap(below, place);
      place = below;
    }
    return least;
  }
}

/** Give the max-min rate of each demand; NaN for one that nothing limits. */
export function fill(system) {
  const { capacities, starts, columns, multiplicities, weights, limits } = system;
  const count = weights.length;
  const rates = new Float64Array(count).fill(-1);
  const users = Array.from(capacities, () => []);
  const waiting = new Int32Array(capacities.length);
  const left = Float64Array.from(capacities), pull = new Float64Array(capacities.length);
  for (let demand = 0; demand < count; demand++) {
    for (let entry = starts[demand]; entry < starts[demand + 1]; entry++) {
      const resource = columns[entry];
      if (capacities[resource] === Infinity) continue;
      users[resource].push(demand, multiplicities[entry]);
      waiting[resource] += 1;
      pull[resource] += multiplicities[entry] * weights[demand];
    }
  }
  const heap = new Heap();
  for (let resource = 0; resource < users.length; resource++) {
    if (users[resource].length) heap.push(left[resource] / pull[resource], resource);
  }
  for (let demand = 0; demand < count; demand++) {
    if (limits[demand] !== Infinity) heap.push(limits[demand] / weights[demand], ~demand);
  }
  let rising = count, level = 0;
  const freeze = (demand, rate) => {
    rates[demand] = rate;
    rising -= 1;
    for (let entry = starts[demand]; entry < starts[demand + 1]; entry++) {
      const resource = columns[entry];
      if (capacities[resource] === Infinity) continue;
      left[resource] -= multiplicities[entry] * rate;
      pull[resource] -= multiplicities[entry] * weights[demand];
      waiting[resource] -= 1;
    }
  };
  // Of the users themselves, without what running sums have lost.
  const exactShare = (resource) => {
    let rest = capacities[resource], pulled = 0;
    const row = users[resource];
    for (let at = 0; at < row.length; at += 2) {
      const rate = rates[row[at]];
      if (rate < 0) pulled += row[at + 1] * weights[row[at]];
      else rest -= row[at + 1] * rate;
    }
    return rest / pulled;
  };
  while (rising > 0 && heap.size) {
    const [limit, index] = heap.pop();
    if (index < 0) {
      if (rates[~index] < 0) freeze(~index, limits[~index]);
      continue;
    }
    if (!waiting[index]) continue;
    const share = pull[index] > 0 ? left[index] / pull[index] : exactShare(index);
    if (heap.size && share > heap.levels[0]) {
      heap.push(share, index);
      continue;
    }
    level = Math.max(level, exactShare(index));
    const row = users[index];
    for (let at = 0; at < row.length; at += 2) {
      const demand = row[at];
      if (rates[demand] < 0) freeze(demand, Math.min(weights[demand] * level, limits[demand]));
    }
  }
  for (let demand = 0; demand < count; demand++) if (rates[demand] < 0) rates[demand] = NaN;
  return rates;
}

/** Say what rates mean: {rates, loads, stops}, the full resources that stop each demand. */
export function maxMin(system) {
  const { capacities, starts, columns, multiplicities, weights } = system;
  const rates = fill(system);
  const loads = new Float64Array(capacities.length), tops = new Float64Array(capacities.length);
  rates.forEach((rate, demand) => {
    const level = rate / weights[demand];
    for (let entry = starts[demand]; entry < starts[demand + 1]; entry++) {
      loads[columns[entry]] += multiplicities[entry] * rate;
      if (level > tops[columns[entry]]) tops[columns[entry]] = level;
    }
  });
  const bars = Array.from(tops, (top, resource) =>
    loads[resource] >= capacities[resource] * (1 - TIE) ? top * (1 - TIE) : Infinity);
  const stops = Array.from(rates, (rate, demand) => {
    const row = Array.from(columns.slice(starts[demand], starts[demand + 1]));
    return row.filter((resource) => rate / weights[demand] >= bars[resource]);
  });
  return { rates, loads, stops };
}

/** Take some demands of a system, with all resources. */
function only(system, demands) {
  if (demands.length === system.weights.length) return system;
  const part = { capacities: system.capacities, starts: [0], columns: [], multiplicities: [] };
  for (const demand of demands) {
    for (let entry = system.starts[demand]; entry < system.starts[demand + 1]; entry++) {
      part.columns.push(system.columns[entry]);
      part.multiplicities.push(system.multiplicities[entry]);
    }
    part.starts.push(part.columns.length);
  }
  part.weights = demands.map((demand) => system.weights[demand]);
  part.limits = demands.map((demand) => system.limits[demand]);
  return part;
}

/** Run until every demand has its bytes: {finishes, spans, end}, max-min fair at every moment. */
export function complete(system, sizes, arrivals) {
  const count = sizes.length, from = arrivals || new Array(count).fill(0);
  const coming = [...sizes.keys()].sort((a, b) => from[b] - from[a] || b - a);
  const left = Float64Array.from(sizes), finishes = Float64Array.from(from), spans = [];
  let running = [], clock = 0;
  while (running.length || coming.length) {
    if (!running.length) clock = Math.max(clock, from[coming.at(-1)]);
    while (coming.length && from[coming.at(-1)] <= clock * (1 + SAME_TIME)) {
      const demand = coming.pop();
      if (left[demand] > 0) running.push(demand);
    }
    if (!running.length) continue;
    running.sort((a, b) => a - b);
    const { rates, loads, stops } = maxMin(only(system, running));
    if (rates.some(Number.isNaN)) return { finishes: finishes.fill(NaN), spans, end: NaN };
    const ends = running.map((demand, at) => clock + left[demand] / rates[at]);
    const first = Math.min(...ends);
    const stop = coming.length ? Math.min(first, from[coming.at(-1)]) : first;
    spans.push({ start: clock, end: stop, demands: running, rates, loads, stops });
    running.forEach((demand, at) => {
      if (ends[at] <= stop * (1 + SAME_TIME)) {
        left[demand] = 0;
        finishes[demand] = stop;
      } else left[demand] -= rates[at] * (stop - clock);
    });
    running = running.filter((demand) => left[demand] > 0);
    clock = stop;
  }
  return { finishes, spans, end: finishes.reduce((a, b) => Math.max(a, b), 0) };
}

/**
 * Answer one question: {rate, startRate, time, rates, loads, stops, spans, peaks}.
 *
 * With sizes the rate is all bytes over the time until the last one, and `stops` are of those that
 * are done last; without (`sizes` null), the rate while all run. `peaks` are the most that ever
 * passes each resource. Each demand stands for `counts` of them, one unless a system says more.
 */
export function answer(system, sizes) {
  const { rates, loads, stops } = maxMin(system);
  const whole = (values) => sum(Array.from(values, (value, demand) => value * (system.counts?.[demand] ?? 1)));
  const total = whole(rates), all = stops.map((full, demand) => [demand, full]);
  const plain = { rates, loads, peaks: loads, startRate: total, rate: total, time: null };
  if (!sizes) return { ...plain, stops: all, spans: [] };
  const times = Array.from(rates, (rate, demand) => sizes[demand] / rate);
  const last = Math.max(...times);
  if (!(last > Math.min(...times) * (1 + TIE))) return { ...plain, time: last, stops: all, spans: [] };
  const { finishes, spans, end } = complete(system, sizes);
  const late = new Set([...finishes.keys()].filter((demand) => finishes[demand] >= end * (1 - TIE)));
  const seen = new Map();
  for (const span of spans) {
    span.demands.forEach((demand, at) => {
      const full = span.stops[at];
      if (late.has(demand)) seen.set(`${demand}:${full}`, [demand, full]);
    });
  }
  const peaks = Float64Array.from(loads);
  for (const span of spans) {
    span.loads.forEach((load, resource) => { peaks[resource] = Math.max(peaks[resource], load); });
  }
  return { ...plain, peaks, rate: whole(sizes) / end, time: end, stops: [...seen.values()], spans };
}

/** List the full resources that stop those who are done last, ascending. */
export function bound(solved, isLimit) {
  const full = new Set(solved.stops.flatMap(([, stops]) => stops));
  return [...full].filter((resource) => !isLimit(resource)).sort((a, b) => a - b);
}

/**
 * Climb the ladder: what binds, then what would bind next: {rungs: [{rate, time, full}], end, kept,
 * stops}, `stops` where it ends by the demands' own limits.
 *
 * `isLimit` is of what is no part of the machine, `forSale` of what can be bought.
 */
export function ladder(system, sizes, isLimit, forSale) {
  const rungs = [], capacities = Float64Array.from(system.capacities);
  for (;;) {
    const solved = answer({ ...system, capacities }, sizes);
    if (Number.isNaN(solved.startRate)) return { rungs, end: "unlimited", kept: [] };
    const full = bound(solved, isLimit);
    if (!full.length) return { rungs, end: "own-limits", kept: [], stops: solved.stops };
    rungs.push({ rate: solved.rate, time: solved.time, full });
    const kept = full.filter((resource) => !forSale(resource));
    const raised = full.filter(forSale);
    const stuck = solved.stops.every(([, stops]) => stops.some((stop) => kept.includes(stop)));
    if (!raised.length || stuck) return { rungs, end: "not-for-sale", kept };
    for (const resource of raised) capacities[resource] = Infinity;
  }
}

/** Say what `more` bytes/s on each of some resources does: {rate, time} gained. */
export function gain(system, sizes, solved, resources, more) {
  const capacities = Float64Array.from(system.capacities);
  for (const resource of resources) capacities[resource] += more;
  const next = answer({ ...system, capacities }, sizes);
  const rate = next.rate - solved.rate, time = sizes ? solved.time - next.time : 0;
  return {
    rate: Math.abs(rate) <= TIE * solved.rate ? 0 : rate,
    time: Math.abs(time) <= TIE * (solved.time || 0) ? 0 : time,
  };
}
