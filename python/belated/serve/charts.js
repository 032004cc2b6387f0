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
  const cut = direction === null ? 0 : Math.floor(sorted.length / 20);
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

// Return an outline around a point: a circle, or a diamond.
const circle = (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`;
const diamond = (x, y) => `M${x - 5} ${y}l5 -5l5 5l-5 5Z`;

// Return the numbers of trials as text, at most ten.
function numbersOf(some) {
  const numbers = [...some].sort((a, b) => a - b), shown = numbers.slice(0, 10).join(", ");
  return `trial${some.length > 1 ? "s" : ""} ${shown}${some.length > 10 ? ", …" : ""}`;
}

// The points of the chart of values from left to right, and the number of the trial that a person looks at, or null.
let spots = [], lookedAt = null, drawnChart = null;

// Return the title of the chart of values.
function chartTitle(study, chart) {
  const best = chart.best.lastIndexOf(true), goal = study.outcomes?.find(each => each.name === chart.outcome)?.goal;
  if (best >= 0)
    return `Best value ${format(chart.value[best])} after ${chart.total} values, ${chart.n_best} of them improvements`;
  const isObjective = chart.outcome === null || (!study.pareto && ["maximize", "minimize"].includes(goal));
  return `${chart.total} values${isObjective ? ", none within the bounds" : ` of ${isolated(chart.outcome)}`}`;
}

// Draw a text in place of the chart of values.
function drawNoChart(text) {
  spots = [];
  const svg = find("chart"), width = emptied(svg, text);
  svg.append(shape("text", {x: width / 2, y: 150, "text-anchor": "middle"}, text.toLowerCase()));
  find("legend").textContent = "";
  lookAt(null);
}

// Draw the values by the last change of their trials or by their numbers, and the best value so far. The axis of time
// begins at `from` and ends at `until`, in seconds.
function drawChart(study, chart, from, until, log = false) {
  const svg = find("chart"), {value: values, number: numbers} = chart, n = values.length;
  if (!n) {
    drawNoChart(study.pareto && chart.outcome === null ? "Several objectives" : "No values yet");
    return;
  }
  spots = [];
  const width = emptied(svg, chartTitle(study, chart)), right = width - 8, byNumber = chart.order === "number";
  const [first, last] = byNumber ? [0, Math.max(1, numbers[n - 1])] : [from, Math.max(until, from + 1e-3)];
  const place = at => LEFT + (right - LEFT) * (at - first) / (last - first);
  const goal = study.outcomes?.find(each => each.name === chart.outcome)?.goal;
  const direction = goal === undefined || goal === study.direction ? study.direction : ["minimize", "maximize"].includes(goal) ? goal : null;
  const bounds = [chart.low, chart.high].filter(bound => bound !== null);
  const axis = valueAxis([...values, ...bounds], direction, log), stride = roundStep(last / (width < 600 ? 4 : 8));
  const across = byNumber
    ? Array.from({length: Math.floor(last / Math.max(1, stride)) + 1}, (_, i) => i * Math.max(1, stride)).map(at => [place(at), String(at)])
    : timeTicks(last - first, width < 600 ? 4 : 8).map(([at, label]) => [place(first + at), label]);
  drawAxes(svg, width, axis, across, byNumber ? "Number of the trial" : "Time since the first trial");
  for (const bound of bounds)
    svg.append(shape("line", {class: "bound", x1: LEFT, x2: right, y1: axis.y(bound), y2: axis.y(bound)}));
  const groups = [[], [], []], steps = [];
  for (let i = 0; i < n; i++) {
    const [x, y] = [place(byNumber ? numbers[i] : chart.changed_at[i]), axis.y(values[i])];
    groups[chart.kind[i]].push([Math.round(x), Math.round(y), numbers[i]]);
    if (chart.best[i]) steps.push([x, y]);
    spots.push({x, y, i, number: numbers[i]});
  }
  // One path draws all dots: lines of length 0 with round ends. Dots at the same pixel are drawn once. Values that do
  // not count, and marked values, are outlines.
  const [others, outside, marked] = groups, outlines = (some, draw) => [...new Set(some.map(([x, y]) => draw(x, y)))].join("");
  svg.append(shape("path", {class: "values", d: outlines(others, (x, y) => `M${x} ${y}h0`)}));
  if (outside.length) svg.append(shape("path", {class: "hollow", d: outlines(outside, circle)}));
  if (marked.length) svg.append(shape("path", {class: "hollow marked", d: outlines(marked, diamond)}));
  const path = steps.map(([x, y], i) => i ? `H${x}V${y}` : `M${x} ${y}`).join("");
  if (path) svg.append(shape("path", {class: "best", d: `${path}H${right}`}));
  svg.append(shape("circle", {class: "spot", r: 7, visibility: "hidden"}));
  const named = some => numbersOf(some.map(each => each[2]));
  const order = byNumber ? "by the number of their trials" : "by the last change of their trials";
  find("legend").textContent = (n < chart.total ? `${n} of ${chart.total} values are drawn, with all that are extreme. ` : "")
    + `${path ? "Line: the best value so far. " : ""}Dots: values ${order}; values outside the axis are drawn at the edge.`
    + (bounds.length ? ` Dashed lines: bounds (${bounds.map(bound => format(bound)).join(" and ")}).` : "")
    + (outside.length ? ` Circles: values beyond a bound or left out, which are not the best (${named(outside)}).` : "")
    + (marked.length ? ` Diamonds: marked values, which nobody has confirmed (${named(marked)}).` : "") + axis.note;
  spots.sort((a, b) => a.x - b.x);
  drawnChart = chart;
  lookAt(spots.find(spot => spot.number === lookedAt) ?? null);
}

// Return a sentence about a point.
function spotText({i, number}) {
  const {kind, best, value, changed_at: at} = drawnChart;
  const what = ["", ", beyond a bound or left out", ", marked"][kind[i]] + (best[i] ? ", the best so far" : "");
  return `Trial ${number}: ${format(value[i], 15)}${what}, ${moment(at[i])}`;
}

// Show which trial a point belongs to.
function lookAt(spot) {
  const mark = find("chart").querySelector(".spot");
  lookedAt = spot?.number ?? null;
  find("chart-point").textContent = spot ? spotText(spot) : "";
  if (!mark) return;
  mark.setAttribute("visibility", spot ? "visible" : "hidden");
  if (spot) { mark.setAttribute("cx", spot.x); mark.setAttribute("cy", spot.y); }
}

// Return the point that is nearest to a place on the screen, or null.
function spotAt(event) {
  const box = find("chart").getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let nearest = null, least = 30 ** 2;
  for (const spot of spots) {
    const distance = (spot.x - x) ** 2 + (spot.y - y) ** 2;
    if (distance < least) [nearest, least] = [spot, distance];
  }
  return nearest;
}

const openSpot = () => lookedAt !== null && latest && showTrial(latest.study, lookedAt);
{
  const area = find("chart-points");
  area.addEventListener("pointermove", event => lookAt(spotAt(event)));
  area.addEventListener("pointerleave", () => lookAt(null));
  area.addEventListener("click", event => { lookAt(spotAt(event)); openSpot(); });
  area.addEventListener("focus", () => { if (lookedAt === null && area.matches(":focus-visible")) lookAt(spots.at(-1) ?? null); });
  area.addEventListener("blur", () => lookAt(null));
  area.addEventListener("keydown", event => {
    const at = spots.findIndex(spot => spot.number === lookedAt), last = spots.length - 1;
    const to = {ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(last, at + 1), Home: 0, End: last}[event.key];
    if (event.key !== "Enter" && (to === undefined || last < 0)) return;
    event.preventDefault();  // the key would also press the button of the dialog that is opened
    if (event.key === "Enter") openSpot();
    else lookAt(spots[to]);
  });
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
