"use strict";
// The study that is shown: its trials, figures and tables.

const PERIOD = 2000, MOST_ROWS = 50;
// number → trial, as the server last described it: the trials of the worklist that are shown, and those of entries
const trials = new Map();
const NOTHING = {arrivals: [], failures: [], curved: [], front: [], chart: null};
let lists = NOTHING;  // the other trials that are shown, and the points of the chart
let listed = -1, listsRestUntil = 0;  // the events that `lists` have at least, and when they may be fetched again
let listedUntil = 0;  // when the studies are listed again
let total = 0;  // the number of trials of the worklist, of which some may not be shown
let shown = null, shownId = null, events = 0, skew = 0, round = 0;
let latest = null, notice = "";  // the study that is drawn; what the user must know about the study
let fault = "";  // why the charts and the lists are not up to date; empty if they are
const known = new Map();  // name → the id of the study as this page last saw it; null if there was no study of this name
const answers = new Map();  // path → the last answer about the model, and what it was asked for

function forget(text, wrong) {
  for (const key of [KEY, LAST]) storage?.removeItem(key);
  for (const name of ["updated", "stored"]) find(name).textContent = "";
  token = null; user = null; shown = null; notice = ""; fault = ""; round += 1;
  if (find("dialog").open) closeDialog();
  find("login").hidden = false; find("chooser").hidden = true; find("study").hidden = true; find("unsent").hidden = true;
  find("entries").state = null;
  say(text, wrong);
  find("token").focus();
}

// Forget the token, after a question if entries are not sent.
async function forgetToken() {
  const n = sizeOfAll(ownEntries());
  const text = `${count(n, "value")} ${n === 1 ? "is" : "are"} not sent. This browser keeps them, and sends them only with your token.`;
  if (n && !await choose("Forget token", [element("p", text)], [["Forget token", true]])) return;
  forget("The token is forgotten.", false);
}

// Ask for the name and the role of the token.
async function learnUser() {
  const asked = token, found = await ask("/v1/user");
  if (asked === token) user = found;
}

function nameInAddress() {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }  // as "#%"
}

async function listStudies() {
  listedUntil = performance.now() + 5 * PERIOD;
  const select = find("name"), names = [];
  for (let start = 0; start !== null;) {
    const page = await ask(`/v1/studies?limit=1000&start=${start}`);
    names.push(...page.studies.map(each => each.name));
    start = page.next;
  }
  // A study that is deleted stays chosen: values must not be entered into another one by mistake.
  const chosen = select.value || nameInAddress();
  if (chosen && !names.includes(chosen)) names.push(chosen);
  if (names.join("\n") !== [...select.options].map(each => each.value).join("\n")) {
    select.replaceChildren(...names.map(name => new Option(name, name)));
    select.value = chosen || (names[0] ?? "");
  }
  return select.value;
}

// Return the values of nested params by flat names, which are joined by dots. `choices` has the flat names of the
// choices; it is null for flat params.
function flat(params, choices, prefix = "") {
  if (!params || !choices) return params;
  const found = Object.create(null);
  for (const [key, value] of Object.entries(params)) {
    const name = prefix + key;
    if (choices.includes(name)) {
      const [[option, inner]] = Object.entries(value);
      Object.assign(found, {[name]: option}, flat(inner, choices, `${name}.${option}.`));
    } else if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      Object.assign(found, flat(value, choices, `${name}.`));
    } else found[name] = value;
  }
  return found;
}

// Attributes and tracebacks are not kept, because they may be large; only short attributes such as wells.
const kept = ({attrs, error, ...trial}, choices) => ({
  ...trial, wells: Object.fromEntries(Object.entries(attrs).filter(([, value]) => typeof value === "number"
    || (typeof value === "string" && value.length <= 40)).slice(0, MOST_WELLS)),
  params: flat(trial.params, choices), params_run: flat(trial.params_run, choices), context: flat(trial.context, []),
  error: error && {type: error.type, message: error.message, traced: error.traceback !== null},
});

// Take over a trial, unless a later answer is known.
function take(trial) {
  if ((trials.get(trial.number)?.event ?? 0) <= trial.event) trials.set(trial.number, trial);
}

const receive = (trial, study) => take(kept(trial, study.choices));

// Return the part of a query that leads to the next page, or null.
function nextOfPage({next, after}) {
  if (next !== null) return `&start=${next}`;
  return after && `&after=${after.number}${after.value === null ? "" : `&after_value=${encodeURIComponent(after.value)}`}`;
}

// Fetch at most `most` trials of a study, in pages. Return them with the total and the events of the first page.
async function fetchTrials(study, query, most = Infinity) {
  const found = {trials: [], total: 0, events: 0};
  for (let more = ""; more !== null && found.trials.length < most;) {
    const limit = Math.min(1000, most - found.trials.length);
    const page = await ask(`${pathOf(study.name)}/trials?study_id=${study.study_id}&limit=${limit}&${query}${more}`);
    if (more === "") Object.assign(found, {total: page.total, events: page.events});
    for (const trial of page.trials) found.trials.push(kept(trial, study.choices));
    more = nextOfPage(page);
  }
  return found;
}

// Fetch the trials that the worklist shows, and those that rows and entries are about.
async function fetchWorklist(study) {
  const page = await fetchTrials(study, `worklist=true${orderQuery(study)}`, limit), isSame = study.study_id === shownId;
  const found = new Map(page.trials.map(trial => [trial.number, trial]));
  const others = ownEntries().filter(each => each.study_id === study.study_id && each.number !== null).map(each => each.number);
  const missing = [...new Set([...(isSame ? rows.keys() : []), ...others])].filter(number => !found.has(number));
  for (let i = 0; i < missing.length; i += 1000) {
    const {trials: more} = await fetchTrials(study, `numbers=${missing.slice(i, i + 1000)}`);
    for (const trial of more) found.set(trial.number, trial);
  }
  if (study.name !== find("name").value) return false;
  // The user may have changed trials meanwhile.
  for (const [number, {event}] of trials) if (!isSame || (!found.has(number) && event <= page.events)) trials.delete(number);
  for (const trial of found.values()) take(trial);
  ({total, events} = page);
  shown = study.name; shownId = study.study_id;
  return true;
}

// Fetch what the tables below the worklist and the curves show.
async function fetchLists(study) {
  const newest = async (query, most) => (await fetchTrials(study, `${query}&sort=changed&descending=true`, most)).trials;
  const front = (study.pareto ?? []).slice(-MOST_ROWS), found = {...NOTHING, chart: lists.chart};
  found.arrivals = await newest("ended=true", MOST_ROWS);
  if (study.counts.failed || study.outcomes.length) found.failures = await newest("failed=true", MOST_ROWS);
  if (front.length) found.front = (await fetchTrials(study, `numbers=${front}`)).trials;
  if (study.steps !== null) {
    const chosen = [...await newest("curve=true&state=pending", MOST_CURVES), ...await newest("curve=true", MOST_CURVES),
      ...(study.best ? [kept(study.best, study.choices)] : [])];
    found.curved = [...new Map(chosen.map(trial => [trial.number, trial])).values()];
  }
  if (study.study_id === shownId) lists = found;
}

const fetchChart = study => ask(`${pathOf(study.name)}/chart?study_id=${study.study_id}&order=${find("chart-order").value}`
  + (chartOutcome(study) === null ? "" : `&outcome=${encodeURIComponent(chartOutcome(study))}`));

// Return the outcome that the chart shows: the chosen one, or the objective.
function chartOutcome(study) {
  const chooser = find("chart-outcome"), names = study.outcomes.map(each => each.name), key = JSON.stringify(names);
  if (chooser.key !== key) {
    chooser.key = key;
    chooser.replaceChildren(...names.map(name => new Option(name, name)));
    const goals = study.outcomes.filter(each => ["maximize", "minimize"].includes(each.goal));
    chooser.value = (goals[0] ?? study.outcomes[0])?.name ?? "";
    for (const each of [chooser, chooser.labels[0]]) each.hidden = names.length < 2;
  }
  return names.includes(chooser.value) ? chooser.value : null;
}

const sayState = () => say([notice, fault].filter(Boolean).join(" "), fault !== "");

// Fetch what the page shows of a study, if it has changed. The worklist is drawn before the rest is fetched.
async function follow(name, mine) {
  const study = await ask(pathOf(name));
  const before = known.get(name);
  if (before !== undefined && before !== study.study_id)
    notice = `The study ${isolated(name)} was created again while this page was open: its trials are new.`;
  known.set(name, study.study_id);
  skew = study.now - Date.now() / 1000;
  const isNew = name !== shown || study.study_id !== shownId;  // the id differs after a deletion and a new start
  if (!isNew && study.events === events && listed === events) return study;
  if (isNew) { lists = NOTHING; listed = -1; fault = ""; limit = MOST_SHOWN; order = {by: "number", down: false}; }
  if ((isNew || study.events !== events) && !await fetchWorklist(study)) return null;
  if (mine !== round) return null;  // the token is forgotten, or another study is chosen
  latest = {study};
  draw(study); sayState();
  // While a study changes all the time, the rest is fetched less often: in about 1 % of the time. The server may answer with
  // an old chart, for which the rest is fetched again.
  if (isNew || performance.now() > listsRestUntil) {
    const start = performance.now(), reached = events;
    try {
      await fetchLists(study);
      listsRestUntil = performance.now() + Math.min(5 * PERIOD, 100 * (performance.now() - start));
      const chart = await fetchChart(study);
      if (study.study_id === shownId) { lists = {...lists, chart}; listed = Math.min(reached, chart.events); fault = ""; }
    } catch (error) {
      // Without the charts, the worklist still follows the study, and values are sent.
      if (error.status < 422) throw error;
      if (study.study_id === shownId) fault = `The charts and the lists below the worklist are not up to date: ${error.message}`;
    }
  }
  return study;
}

// Show that there is no study of the name that is chosen.
function showMissing(name) {
  known.set(name, null);
  if (boxInFocus()) document.activeElement.blur();
  trials.clear(); rows.clear(); selected.clear();
  find("worklist").key = null;
  shown = null; shownId = null; latest = null; events = 0; total = 0; listed = -1; lists = NOTHING; notice = ""; fault = "";
  find("study").hidden = true; find("updated").textContent = "";
  say(`The study ${isolated(name)} was deleted, or was never created. Choose another study, or wait until it is created.`, true);
  drawEntries();
  deliver();
}

// Return whether an entry belongs to a study that was deleted. Its name may have been given to a new study.
const isFormer = entry => known.has(entry.study) && known.get(entry.study) !== entry.study_id;

async function refresh() {
  const mine = ++round;
  let name = null;
  try {
    if (token && Date.now() - lastInput > LONGEST_REST) forget("The token is forgotten, because nothing was typed for 8 hours.", false);
    if (token) {
      if (!user) await learnUser();
      if (mine !== round) return;
      const isListed = performance.now() < listedUntil && find("name").value;
      name = isListed ? find("name").value : await listStudies();
      if (mine !== round) return;
      try { storage?.setItem(KEY, token); storage?.setItem(LAST, String(lastInput)); }  // the server accepted it
      catch { /* the storage is full: the tab asks again for the token after a reload */ }
      find("login").hidden = true; find("chooser").hidden = false;
      if (!name) { find("study").hidden = true; say("The store has no study yet."); }
      else {
        const study = await follow(name, mine);
        if (study && mine === round) {
          latest = {study};
          draw(study); sayState(); find("updated").textContent = `Updated at ${new Date().toLocaleTimeString()}.${whoAmI()}`;
          deliver();
          drawEntries();
          readDrafts();
          if (await learn(study) && mine === round) draw(study);
        }
      }
    }
  } catch (error) {
    if (mine === round) {
      if (error.status === 401) forget("The token is wrong.", true);
      else if (error.status === 404 && name) showMissing(name);
      else say(error.message, true);
    }
  }
  if (mine === round) setTimeout(() => mine === round && (document.hidden ? pause(mine) : refresh()), PERIOD);
}

function pause(mine) {
  document.addEventListener("visibilitychange", () => mine === round && refresh(), {once: true});
}

// Request forecasts of results and curves, and the importance, after a change; return whether an answer is new. The server
// answers with the last one if it has used its time for models.
async function learn(study) {
  let isNew = false;
  const inform = async (what, version, rest) => {
    const path = `${pathOf(study.name)}/${what}`, known = answers.get(path);
    if (known && (known.version === version || performance.now() < known.again)) return;
    answers.set(path, {answer: await ask(path), version, again: performance.now() + rest});
    isNew = true;
  };
  // A forecast depends on the time, too.
  if (study.counts.pending) await inform("forecast", `${study.events} ${Math.floor(Date.now() / 60000)}`, 0);
  const version = `${study.study_id} ${study.events} ${Math.floor(Date.now() / 60000)}`;  // the last answer may be old
  if (lists.curved.length) await inform("finals", version, 5 * PERIOD);
  await inform("importance", version, 5 * PERIOD);
  return isNew;
}

// Display.

// Return a sentence about the token: forms and buttons that its role does not allow are not shown.
const whoAmI = () => user === null ? "" : ` ${user.name === null ? "Your token" : `${isolated(user.name)}: your token`} has the role ${user.role}.`;

function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

// Return the time that is left, in one unit. Days are not rounded down: 47 hours are not "1 d".
function timeLeft(seconds) {
  const round = unit => Math.round(seconds / unit);
  if (seconds < 60) return ago(seconds);
  return seconds < 5400 ? `${round(60)} min` : round(3600) < 48 ? `${round(3600)} h` : `${round(86400)} d`;
}

// Return a duration in one unit.
const roughly = seconds => ago(seconds).split(" ", 2).join(" ");

// Return [name, text] for each value of a trial's point.
function pointOf(trial) {
  const params = trial.params_run ?? trial.params;
  if (!params) return [["candidate", String(trial.x_run ?? trial.index_run ?? trial.index ?? trial.x)]];
  return Object.entries(params).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : format(value)]);
}

const point = trial => trial.params ? pointOf(trial).map(pair => pair.join(" = ")).join(", ") : pointOf(trial)[0].join(" ");

function forecastText(study, flight, forecast) {
  // Forecasts use the server's clock. If clients gave the times of trials, the times cannot be compared with it.
  const foreign = trial => study.clock === "seconds" && Math.abs(trial.suggested_at - trial.started_at) > 60;
  if (!forecast?.n_pending || flight.some(foreign)) return "";
  if (forecast.expected === null) return `No forecast yet: ${forecast.unknown}.`;
  const until = study.clock === "seconds" ? `within ${ago(forecast.by - forecast.now)}` : `by suggestion ${format(forecast.by)}`;
  const [expected, low, high, never] = ["expected", "low", "high", "never"].map(name => Math.round(forecast[name]));
  return `${expected} of ${forecast.n_pending} results expected ${until} (${low} to ${high})`
    + (never ? `; ${never} probably never.` : ".");
}

function pairs(id, entries) {
  find(id).replaceChildren(...entries.map(([name, value]) => {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

// Fill the rows of a table. A cell is [content, class, key]; the content is a text, or a function that makes an element
// for the key. Cells that stay equal are not touched, so that the focus and a selection of text persist.
function fill(id, rows) {
  const table = find(id), body = table.tBodies[0];
  table.parentElement.hidden = rows.length === 0;
  find(`no-${id}`).hidden = rows.length > 0;
  while (body.rows.length > rows.length) body.deleteRow(-1);
  const heads = [...table.tHead.rows[0].cells].filter(cell => !cell.hidden);
  rows.forEach((cells, i) => {
    const row = body.rows[i] ?? body.insertRow();
    cells.forEach(([content, kind, key = content], j) => {
      const cell = row.cells[j] ?? row.insertCell();
      if (cell.className !== (kind ?? "")) cell.className = kind ?? "";
      cell.dataset.label ??= heads[j].textContent;
      if (cell.key === String(key)) return;
      cell.key = String(key);
      cell.replaceChildren(typeof content === "function" ? content() : String(content));
    });
  });
}

// Set the columns of outcomes of a table: in place of the column of the value, or before the last column.
function setOutcomes(id, names) {
  const table = find(id), row = table.tHead.rows[0], key = JSON.stringify(names);
  if ((row.dataset.outcomes ?? "[]") === key) return;
  row.dataset.outcomes = key;
  table.tBodies[0].replaceChildren();  // the cells have the names of their columns
  for (const old of row.querySelectorAll(".outcome")) old.remove();
  const value = row.querySelector(".value"), heads = names.map(name => element("th", name, "number outcome"));
  for (const head of heads) head.scope = "col";
  if (value) value.hidden = names.length > 0;
  (value ?? row.lastElementChild).before(...heads);
}

// Return the cell of an outcome: its value or else its state.
const outcomeCell = outcome => outcome.value !== null ? [format(outcome.value), "number"]
  : outcome.state === "pending" ? ["missing", "number missing"] : [outcome.state, `number ${outcome.state}`];

const numberCell = (study, trial) => [() => trialButton(study, trial.number), "number", `${study.study_id} ${trial.number}`];

// Return the error of a trial; its traceback is fetched when it is opened.
function errorOf(study, trial) {
  if (!trial.error) return document.createTextNode("–");
  const text = [trial.error.type, trial.error.message].filter(Boolean).join(": ");
  if (!trial.error.traced) return document.createTextNode(text);
  const details = document.createElement("details"), trace = element("pre", "…");
  details.append(element("summary", text), trace);
  details.addEventListener("toggle", async () => {
    try {
      trace.textContent = (await ask(`${pathOf(study.name)}/trials/${trial.number}`)).error?.traceback ?? "–";
    } catch (error) { trace.textContent = error.message; }
  }, {once: true});
  return details;
}

// Return the first and the last time of the axis. While trials are in flight, the axis ends now. Trials in flight may
// belong to a run that was killed, so the axis is at most twice as long as the time to the last event.
function timesOf(all, now) {
  let first = Infinity, last = -Infinity, isRunning = false;
  for (const trial of all) {
    first = Math.min(first, trial.started_at);
    last = Math.max(last, trial.changed_at);
    isRunning ||= trial.state === "pending" && (trial.lease_ends_at === null || trial.lease_ends_at > now);
  }
  return [first, isRunning ? Math.max(last, Math.min(now, 2 * last - first)) : last];
}

function draw(study) {
  const now = Date.now() / 1000 + skew, best = study.best && kept(study.best, study.choices), {chart} = lists;
  document.title = `${study.name} – belated`;
  if (nameInAddress() !== study.name) location.replace(`#${encodeURIComponent(study.name)}`);
  const outcomes = study.outcomes.map(each => each.name), outcomeCells = trial => outcomes.map(name => outcomeCell(trial.outcomes[name]));
  find("no-best").hidden = best !== null;
  find("no-best").textContent = chart?.total || study.counts.observed ? "No trial has values within all bounds yet." : "No trial has a value yet.";
  if (study.pareto) {
    find("no-best").hidden = study.pareto.length > 0;
    find("no-best").textContent = "No trial has values of all objectives within all bounds yet.";
  }
  find("best-title").textContent = study.pareto ? `Front of ${study.pareto.length} trials` : "Best trial";
  pairs("best", best === null ? lists.front.map(trial => [`Trial ${trial.number}`, outcomeCells(trial).map(cell => cell[0]).join(", ")]) : [
    ...(outcomes.length ? outcomes.map((name, i) => [name, outcomeCells(best)[i][0]]) : [["Value", format(best.value)]]),
    ["Trial", best.number],
    ...(best.fidelity === null ? [] : [["Fidelity", format(best.fidelity)]]), ...pointOf(best)]);
  pairs("figures", [["In flight", study.counts.pending], ["Observed", study.counts.observed],
    ["Failed", study.counts.failed], ["Abandoned", study.counts.abandoned],
    ...(study.counts.stopped ? [["Stopped", study.counts.stopped]] : []),
    ...(study.counts.withdrawn ? [["Withdrawn", study.counts.withdrawn]] : []),
    ["Optimizer", study.optimizer], ["Direction", study.direction]]);
  for (const [id, role] of [["next", "work"], ["off-plan", "work"], ["open-file", "work"]]) find(id).hidden = !may(role);
  drawWorklist(study);
  const forecast = study.counts.pending ? answers.get(`${pathOf(study.name)}/forecast`)?.answer : null;
  const flight = [...trials.values()].filter(trial => trial.state === "pending");
  find("forecast").textContent = forecastText(study, flight, forecast);
  find("study").hidden = false;
  setOutcomes("arrivals", outcomes);
  fill("arrivals", lists.arrivals.map(trial => [
    numberCell(study, trial), ...(outcomes.length ? outcomeCells(trial) : [[format(trial.value), "number"]]),
    [trial.state, trial.state],
    [`${roughly(now - trial.changed_at)} ago`, "short"], [point(trial), "point"]]));
  fill("failures", lists.failures.map(trial => [
    numberCell(study, trial), [`${roughly(now - trial.changed_at)} ago`, "short"],
    [() => errorOf(study, trial), "error", JSON.stringify([study.name, trial.number, trial.error])],
    [point(trial), "point"]]));
  if (lists === NOTHING) for (const id of ["no-arrivals", "no-failures"]) find(id).hidden = true;  // it is not known yet
  if (chart) {
    const ends = {state: "", started_at: chart.started_at ?? now, changed_at: chart.ended_at ?? now};
    drawChart(study, chart, ...timesOf([...trials.values(), ends], now), find("chart-log").checked);
  } else drawNoChart("The values are not known yet");
  const learned = what => answers.get(`${pathOf(study.name)}/${what}`)?.answer;
  drawCurves(study, [...lists.curved], learned("finals") ?? {step: null, finals: [], unknown: null}, find("curves-log").checked);
  drawAll(study);
  drawImportance(learned("importance") ?? {importance: [], context: null, unknown: "the server has not answered yet"});
}

function drawImportance({importance, context, unknown}) {
  const most = Math.max(1, ...importance.map(each => each.high));
  fill("importance", importance.map(each => [[each.name],
    [() => shareBar(each, most), "bar", [each.low, each.middle, each.high, most].join()],
    [`${each.middle.toFixed(2)} (${each.low.toFixed(2)} to ${each.high.toFixed(2)})`, "number"]]));
  find("no-importance").textContent = unknown === null ? "" : `Not known: ${unknown}.`;
  const where = context === null ? "" : ` Context: ${Object.entries(context).map(pair => pair.join(" = ")).join(", ")}.`;
  find("importance-legend").textContent = unknown === null
    ? `Part of the variance of the model that remains if all other parameters are fixed.${where}` : "";
}

// The trials as a CSV file, with the columns of `trials_dataframe(curves=True)`, except attributes.

function cellOf(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  let text = typeof value === "string" ? value : JSON.stringify(value);
  // Spreadsheets would execute such a text as a formula. Some divide cells at semicolons.
  if (/^[=+\-@\t\r\n]./s.test(text)) text = `'${text}`;
  text = text.replace(/([;\t\r\n])(?=[=+\-@])/g, "$1'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOf(all) {
  const names = new Set(all.flatMap(trial => Object.keys(trial.params ?? {})));
  let run = "run_";
  while ([...names].some(name => names.has(run + name))) run += "_";
  const moment = seconds => new Date(seconds * 1000).toISOString();
  const prefixed = (prefix, values) => Object.entries(values ?? {}).map(([name, value]) => [prefix + name, value]);
  const rows = all.map(trial => new Map([
    ...["number", "state", "value", "std", "cost", "duration", "suggested_at", "observed_at", "ended_at", "delay",
      "expires_at"].map(name => [name, trial[name]]),
    ["started_at", moment(trial.started_at)], ["changed_at", moment(trial.changed_at)],
    ["error", trial.error && [trial.error.type, trial.error.message].filter(Boolean).join(": ")],
    ...(trial.withdrawal ? [["withdrawn_value", trial.withdrawal.value],
      ["withdrawn_reason", trial.withdrawal.reason]] : []),
    ...Object.entries(trial.outcomes ?? {}).flatMap(([name, each]) => [[`outcome_${name}`, each.value], [`std_${name}`, each.std],
      [`state_${name}`, each.state], ...(each.withdrawal ? [[`withdrawn_value_${name}`, each.withdrawal.value],
        [`withdrawn_reason_${name}`, each.withdrawal.reason]] : [])]),
    ["fidelity", trial.fidelity], ["outside", trial.outside], ...(trial.left_out ? [["left_out", trial.left_out]] : []),
    ...(trial.params ? [] : [["index", trial.index], ["index_run", trial.index_run],
      ...prefixed("x_", trial.index === null ? trial.x : null), ...prefixed("x_run_", trial.x_run)]),
    ...prefixed("params_", trial.params), ...prefixed(`params_${run}`, trial.params_run),
    ...prefixed("context_", trial.context), ...trial.curve.map(([step, value]) => [`curve_${step}`, value])]));
  const columns = [...new Set(rows.flatMap(row => [...row.keys()]))];
  return [columns, ...rows.map(row => columns.map(name => row.get(name)))]
    .map(line => line.map(cellOf).join(",")).join("\r\n") + "\r\n";
}

function save(text, name) {
  const address = URL.createObjectURL(new Blob([text], {type: "text/csv"})), link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Fetch all trials, and save them as a file.
async function download() {
  if (!latest) return;
  const {study} = latest, button = find("download");
  button.disabled = true;
  try { save(csvOf((await fetchTrials(study, "")).trials), `${study.name}.csv`); }
  catch (error) { say(error.message, true); }
  finally { button.disabled = false; }
}

find("login").addEventListener("submit", event => {
  event.preventDefault();
  token = find("token").value.trim();
  find("token").value = "";
  // A request cannot have other characters.
  if (!/^[\x21-\x7e]+$/.test(token)) { forget("The token is wrong: it has a space, or a letter with an accent.", true); return; }
  lastInput = Date.now();
  refresh();
});
find("forget").addEventListener("click", forgetToken);
for (const kind of ["keydown", "pointerdown", "input"]) document.addEventListener(kind, () => { lastInput = Date.now(); }, true);
find("download").addEventListener("click", download);
find("name").addEventListener("change", () => { find("study").hidden = true; notice = ""; fault = ""; refresh(); });
const redraw = () => latest && !find("study").hidden && draw(latest.study);
for (const id of ["chart-log", "curves-log"]) find(id).addEventListener("change", redraw);
for (const id of ["chart-order", "chart-outcome"]) find(id).addEventListener("change", async () => {
  const study = latest?.study;
  if (!study) return;
  try {
    const chart = await fetchChart(study);
    if (study.study_id === shownId && lists !== NOTHING) lists = {...lists, chart};
  } catch (error) { listed = -1; say(error.message, true); }
  redraw();
});
window.addEventListener("resize", redraw);
if (token) { find("login").hidden = true; say(""); refresh(); }
