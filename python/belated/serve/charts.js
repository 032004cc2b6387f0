"use strict";
// The charts. All functions draw into an SVG element of the page.

const TOP = 12, BOTTOM = 252, LEFT = 64, MOST_CURVES = 100, MOST_STEPS = 300;

const format = (value, digits = 6) => value === null || value === undefined ? "–"
  : typeof value === "number" ? String(Number(value.toPrecision(digits))) : String(value);

function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Return the smallest of 1, 2 and 5 times a power of ten that is at least `wanted`.
function roundStep(wanted) {
  const power = Number(`1e${Math.floor(Math.log10(wanted))}`) || Number.MIN_VALUE;
  return power * [1, 2, 5, 10].find(factor => factor * power >= wanted * 0.999);
}

// Return about five round values between two values. Equal values are returned once, if the step is too small to
// change them.
function ticks(low, high) {
  const step = roundStep((high - low) / 5), first = Math.ceil(low / step), found = [];
  for (let i = 0; i <= 10 && (first + i) * step <= high; i++) found.push((first + i) * step);
  return [...new Set(found)];
}

// Return round values between 10^low and 10^high.
function logTicks(low, high) {
  const stride = Math.max(1, Math.ceil((high - low) / 6)), powers = [], parts = [];
  for (let k = Math.floor(low); k <= high; k++) {
    for (const factor of [1, 2, 5]) {
      const value = Number(`${factor}e${k}`), at = Math.log10(value);
      if (at < low || at > high) continue;
      parts.push(value);
      if (factor === 1 && k % stride === 0) powers.push(value);
    }
  }
  if (powers.length > 2) return powers;
  return parts.length > 2 && parts.length < 10 ? parts : ticks(10 ** low, 10 ** high).filter(value => value > 0);
}

// Return [seconds, label] for round times between 0 and `span` seconds; `most` intervals at most.
function timeTicks(span, most) {
  const units = [["ms", 1e-3, [1, 2, 5, 10, 20, 50, 100, 200, 500]], ["s", 1, [1, 2, 5, 10, 20, 30]], ["min", 60, [1, 2, 5, 10, 20, 30]],
    ["h", 3600, [1, 2, 3, 6, 12]]];
  const [unit, length, step] = units.flatMap(([unit, length, steps]) => steps.map(step => [unit, length, step]))
    .find(([, length, step]) => span <= most * step * length) ?? ["d", 86400, Math.max(1, roundStep(span / most / 86400))];
  const found = [];
  for (let i = 0; i * step * length <= span; i++) found.push([i * step * length, i ? `${i * step} ${unit}` : "0"]);
  return found;
}

// Return the axis of values: a function from values to heights in pixels, and the values of its lines.
function valueAxis(values, direction, log) {
  let sorted = Float64Array.from(values).sort();
  const isLog = log && sorted.at(-1) > 0;
  if (isLog) sorted = sorted.filter(value => value > 0);
  // If the worst twentieth of the values were shown, the other values could look like a flat line.
  const cut = Math.floor(sorted.length / 20);
  let [low, high] = direction === "minimize" ? [sorted[0], sorted.at(-1 - cut)] : [sorted[cut], sorted.at(-1)];
  // The difference of the largest floats is infinite.
  [low, high] = isLog ? [Math.log10(low), Math.log10(high)] : [Math.max(low, -8e307), Math.min(high, 8e307)];
  // The margin is at least 10^-9 of the values, so that ticks are different numbers in floating point.
  const size = Math.max(Math.abs(low), Math.abs(high)), least = isLog ? 0.02 : size * (low === high ? 0.05 : 1e-9);
  const room = Math.max((high - low) * 0.05, least) || 1;
  low -= room; high += room;
  const place = value => isLog ? Math.log10(Math.max(value, 0)) : value;
  const y = value => BOTTOM - (BOTTOM - TOP) * ((Math.min(high, Math.max(low, place(value))) - low) / (high - low));
  const note = log && !isLog ? " A log scale needs positive values." : "";
  return {y, lines: isLog ? logTicks(low, high) : ticks(low, high), note};
}

// Draw the axes of a chart. `across` has pairs [pixels from the left, label].
function drawAxes(chart, width, axis, across, label) {
  for (const value of axis.lines)
    chart.append(shape("line", {class: "grid", x1: LEFT, x2: width - 8, y1: axis.y(value), y2: axis.y(value)}),
      shape("text", {x: LEFT - 8, y: axis.y(value) + 4, "text-anchor": "end"}, format(value, 8)));
  for (const [x, text] of across)
    chart.append(shape("line", {class: "tick", x1: x, x2: x, y1: BOTTOM, y2: BOTTOM + 5}),
      shape("text", {x, y: BOTTOM + 20, "text-anchor": x > width - 30 ? "end" : "middle"}, text));
  chart.append(shape("text", {x: (LEFT + width - 8) / 2, y: BOTTOM + 40, "text-anchor": "middle"}, label));
}

// Empty a chart, set its title, and return its width in pixels.
function emptied(chart, title) {
  const name = chart.querySelector("title");
  name.textContent = title;
  chart.replaceChildren(name);
  return Math.max(chart.clientWidth, 240);
}

const isOutside = trial => Boolean(trial.outside || trial.left_out), isMarked = trial => trial.warnings?.length > 0;

// Return an outline around a point: a circle, or a diamond.
const circle = (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`;
const diamond = (x, y) => `M${x - 5} ${y}l5 -5l5 5l-5 5Z`;

// Return the numbers of trials as text, at most ten.
function numbersOf(some) {
  const numbers = some.map(trial => trial.number).sort((a, b) => a - b), shown = numbers.slice(0, 10).join(", ");
  return `trial${some.length > 1 ? "s" : ""} ${shown}${some.length > 10 ? ", …" : ""}`;
}

// Draw the values in the order of their arrival, and the best value so far. The axis begins at `from` and ends at
// `until`, in seconds.
function drawChart(study, observed, from, until, log = false) {
  const better = study.direction === "minimize" ? (a, b) => a < b : (a, b) => a > b;
  // Only values of the highest fidelity can be the best value.
  let highest = -Infinity;
  for (const trial of observed) highest = Math.max(highest, trial.fidelity ?? 0);
  let best = null;
  const steps = [];
  for (const trial of observed) {
    const counts = trial.within_bounds !== false && !isOutside(trial);
    if (counts && (trial.fidelity ?? 0) === highest && (best === null || better(trial.value, best))) {
      best = trial.value;
      steps.push([trial.changed_at, best]);
    }
  }
  const chart = find("chart");
  if (!observed.length) {
    const nothing = study.pareto ? "Several objectives" : "No values yet", width = emptied(chart, nothing);
    chart.append(shape("text", {x: width / 2, y: 150, "text-anchor": "middle"}, nothing.toLowerCase()));
    find("legend").textContent = "";
    return;
  }
  const width = emptied(chart, best === null ? `${observed.length} values, none within the bounds` :
    `Best value ${format(best)} after ${observed.length} values, ${steps.length} of them improvements`);
  const span = Math.max(until - from, 1e-3), right = width - 8;
  const x = at => LEFT + (right - LEFT) * (at - from) / span;
  const axis = valueAxis(observed.map(trial => trial.value), study.direction, log);
  const times = timeTicks(span, width < 600 ? 4 : 8).map(([at, label]) => [x(from + at), label]);
  drawAxes(chart, width, axis, times, "Time since the first trial");
  // One path draws all dots: lines of length 0 with round ends. Dots at the same pixel are drawn once. Values that do
  // not count, and marked values, are outlines.
  const outside = observed.filter(isOutside), marked = observed.filter(trial => isMarked(trial) && !isOutside(trial));
  const outlines = (some, draw) => {
    const places = some.map(trial => draw(Math.round(x(trial.changed_at)), Math.round(axis.y(trial.value))));
    return [...new Set(places)].join("");
  };
  const others = observed.filter(trial => !isOutside(trial) && !isMarked(trial));
  chart.append(shape("path", {class: "values", d: outlines(others, (x, y) => `M${x} ${y}h0`)}));
  if (outside.length) chart.append(shape("path", {class: "hollow", d: outlines(outside, circle)}));
  if (marked.length) chart.append(shape("path", {class: "hollow marked", d: outlines(marked, diamond)}));
  const path = steps.map(([at, value], i) => i ? `H${x(at)}V${axis.y(value)}` : `M${x(at)} ${axis.y(value)}`).join("");
  if (path) chart.append(shape("path", {class: "best", d: `${path}H${right}`}));
  find("legend").textContent =
    "Line: the best value so far. Dots: values as they arrived; values outside the axis are drawn at the edge."
    + (outside.length ? ` Circles: values beyond a bound or left out, which are not the best (${numbersOf(outside)}).` : "")
    + (marked.length ? ` Diamonds: marked values, which nobody has confirmed (${numbersOf(marked)}).` : "") + axis.note;
}

// State → text of the key of the curves. Curves of the last state are drawn last.
const CURVES = {abandoned: "abandoned", failed: "failed", stopped: "stopped", pending: "in flight", observed: "observed"};

// Return the trials with a curve, at most MOST_CURVES: the best trial, trials in flight, and the latest others.
function chosenCurves(all, best) {
  const rank = trial => trial.number === best ? 0 : trial.state === "pending" ? 1 : 2;
  return all.sort((a, b) => rank(a) - rank(b) || b.changed_at - a.changed_at).slice(0, MOST_CURVES);
}

// Draw the reported steps of trials, and the forecasts of the values at the last step.
function drawCurves(study, all, finals, log = false) {
  const reported = all.filter(trial => trial.state !== "withdrawn" && trial.curve.some(([, value]) => value !== null));
  find("curves-card").hidden = reported.length === 0;
  if (!reported.length) return;
  const best = study.best?.number, drawn = chosenCurves(reported, best), states = Object.keys(CURVES);
  drawn.sort((a, b) => (a.number === best) - (b.number === best) || states.indexOf(a.state) - states.indexOf(b.state));
  const counts = states.map(state => [state, drawn.filter(trial => trial.state === state).length]).filter(([, n]) => n);
  const width = emptied(find("curves"), `Learning curves of ${drawn.length} trials: ${
    counts.map(([state, n]) => `${n} ${CURVES[state]}`).join(", ")}`);
  const forecasts = new Map(finals.finals.map(each => [each.number, each]));
  let last = finals.step ?? 1;
  const values = finals.finals.map(each => each.mean), curves = drawn.map(trial => {
    const known = trial.curve.filter(([, value]) => value !== null), every = Math.ceil(known.length / MOST_STEPS);
    const thinned = known.filter((_, i) => (known.length - 1 - i) % every === 0);
    for (const [step, value] of thinned) { last = Math.max(last, step); values.push(value); }
    return [trial, thinned];
  });
  const axis = valueAxis(values, study.direction, log), right = width - 14, chart = find("curves");
  const x = step => LEFT + (right - LEFT) * step / last, stride = Math.max(1, roundStep(last / (width < 600 ? 4 : 8)));
  const across = Array.from({length: Math.floor(last / stride) + 1}, (_, i) => [x(i * stride), String(i * stride)]);
  drawAxes(chart, width, axis, across, "Step");
  const at = ([step, value]) => `${x(step).toFixed(1)} ${axis.y(value).toFixed(1)}`;
  for (const [trial, known] of curves) {
    const wide = trial.number === best ? " wide" : "", [step, value] = known.at(-1), [cx, cy] = [x(step), axis.y(value)];
    const path = shape("path", {class: `curve ${trial.state}${wide}`, "data-trial": trial.number,
      d: known.length > 1 ? `M${known.map(at).join("L")}` : `M${at(known[0])}h3`});
    path.append(shape("title", {}, `Trial ${trial.number}, ${trial.state}, step ${step}: ${format(value)}`));
    chart.append(path);
    if (trial.state === "stopped")
      chart.append(shape("rect", {class: "mark stopped", x: cx - 2, y: cy - 2, width: 4, height: 4}));
    if (trial.state === "failed")
      chart.append(shape("path", {class: "mark failed", d: `M${cx - 4} ${cy - 4}l8 8m0-8l-8 8`}));
    const ahead = forecasts.get(trial.number);
    if (trial.state === "pending" && ahead) {
      const [low, high] = [axis.y(ahead.mean - 1.96 * ahead.std), axis.y(ahead.mean + 1.96 * ahead.std)];
      chart.append(shape("path", {class: "ahead", d: `M${cx} ${cy}L${at([finals.step, ahead.mean])}`}),
        shape("path", {class: "interval", d: `M${x(finals.step)} ${low}V${high}m-4 0h8M${x(finals.step) - 4} ${low}h8`}));
    }
  }
  drawKeys(counts, drawn.some(trial => trial.number === best));
  const some = drawn.length < reported.length ? `${drawn.length} of ${reported.length} curves are drawn. ` : "";
  let ahead = "";
  if (forecasts.size) ahead = "Dashed lines lead to forecasts of the value at the last step, with 95 % intervals.";
  else if (finals.unknown && study.counts.pending) ahead = `No forecasts: ${finals.unknown}.`;
  find("curves-legend").textContent = (some + ahead + axis.note).trim();
}

function drawKeys(counts, hasBest) {
  const key = (state, text, wide = "") => {
    const made = document.createElement("li"), sample = shape("svg", {viewBox: "0 0 28 12", "aria-hidden": "true"});
    sample.append(shape("path", {class: `curve ${state}${wide}`, d: "M0 6H28"}));
    if (state === "stopped") sample.append(shape("rect", {class: "mark stopped", x: 22, y: 4, width: 4, height: 4}));
    if (state === "failed") sample.append(shape("path", {class: "mark failed", d: "M20 2l8 8m0-8l-8 8"}));
    made.append(sample, text);
    return made;
  };
  const keys = counts.map(([state, n]) => key(state, `${CURVES[state]} (${n})`));
  find("curves-keys").replaceChildren(...keys, ...(hasBest ? [key("observed", "best trial", " wide")] : []));
}

// Return a bar from 0 to `middle`, with a line from `low` to `high`. The whole width stands for `most`.
function shareBar({low, middle, high}, most) {
  const bar = shape("svg", {viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"});
  const [from, to] = [100 * low / most, 100 * high / most];
  bar.append(shape("rect", {class: "share", x: 0, y: 3, width: 100 * middle / most, height: 14}),
    shape("path", {class: "error", d: `M${from} 10H${to}`, "vector-effect": "non-scaling-stroke"}));
  return bar;
}
