"use strict";
// The worklist: one row for each trial with missing outcomes or marked values, and a box for each missing outcome. A box
// belongs to its trial. While a box has the focus or text that is not sent, the rows stay where they are.

const MOST_SHOWN = 200, MOST_WELLS = 6, DAY = 86400;
const rows = new Map();  // number → the row that is shown: {row, trial, boxes, key}
const selected = new Set();  // numbers
let order = {by: "number", down: false}, limit = MOST_SHOWN, columns = null, shownAt = 0, plate = null, isReading = false;

// Outcomes. A study without outcomes has one value, whose name is "".

const namesOf = study => study.outcomes.length ? study.outcomes.map(each => each.name) : [""];
const titleOf = name => name === "" ? "value" : name;
const isMissing = (trial, name) => name === "" ? trial.state === "pending" : trial.missing.includes(name);
const resultOf = (trial, name) => name === "" ? trial : trial.outcomes[name];

// Return a sentence about the present state of a trial.
function describe(trial) {
  const parts = (Object.keys(trial.outcomes).length ? Object.keys(trial.outcomes) : [""]).map(name => {
    const {state, value} = resultOf(trial, name);
    return `${isolated(titleOf(name))} ${value !== null ? format(value, 15) : state === "pending" ? "missing" : state}`;
  });
  return `Trial ${trial.number} has now: ${parts.join(", ")}.`;
}

// Return [key for sorting, text, class] for the state of a trial.
function stateOf(trial, now) {
  const since = `out for ${roughly(now - trial.started_at)}`;
  const rest = trial.lease_ends_at === null ? null : trial.lease_ends_at - now;
  if (trial.forbidden) return [0, `forbidden: do not run it. ${trial.forbidden}`, "forbidden"];
  if (trial.warnings.length) return [1, `marked: ${trial.warnings.map(rangeOf).join("; ")}`, "marked"];
  if (trial.state !== "pending") return [5, trial.state, trial.state];
  if (rest !== null && rest <= 0) return [2, `late for ${roughly(-rest)}, ${since}`, "late"];
  if (rest !== null && rest <= DAY) return [3, `due in ${timeLeft(rest)}, ${since}`, "due"];
  return [4, rest === null ? since : `${since}, due in ${timeLeft(rest)}`, "out"];
}

// Return the interval in which a marked value was expected.
function rangeOf({outcome, low, high}) {
  return `${outcome === null ? "" : `${isolated(outcome)}: `}expected ${format(low, 4)} to ${format(high, 4)}`;
}

// Return [title, sorting value of a trial, text of a trial, class] for the columns before the state.
function columnsOf(study, list) {
  const wells = new Set(), points = new Set(), contexts = new Set();
  for (const trial of list) {
    for (const name of Object.keys(trial.wells)) if (wells.size < MOST_WELLS) wells.add(name);
    for (const [name] of pointOf(trial)) points.add(name);
    for (const name of Object.keys(trial.context ?? {})) contexts.add(name);
  }
  const valuesOf = trial => trial.params_run ?? trial.params ?? {candidate: trial.index_run ?? trial.index ?? trial.x};
  return [...[...wells].map(name => ["well", name, trial => valueIn(trial.wells, name)]),
    ...[...contexts].map(name => ["context", name, trial => valueIn(trial.context, name)]),
    ...[...points].map(name => ["param", name, trial => valueIn(valuesOf(trial), name)])];
}

// Return a value by its name, which may be that of an inherited property.
const valueIn = (values, name) => values && Object.hasOwn(values, name) ? values[name] : undefined;

const cellText = value => value === undefined || value === null ? "–"
  : typeof value === "object" ? JSON.stringify(value) : format(value);

// Return the class of a cell: long texts may be divided anywhere.
const kindOf = text => text.length > 24 ? "point" : "short";

// Compare two values of a column: numbers before texts before missing values.
function compare(a, b) {
  const rank = value => typeof value === "number" ? 0 : value === undefined || value === null ? 2 : 1;
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) === 0 ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
}

// Return the trials of the worklist in their order.
function wantedTrials(now) {
  const list = [...trials.values()].filter(trial => trial.state === "pending" || trial.warnings.length);
  const key = order.by === "number" ? trial => trial.number : order.by === "state" ? trial => stateOf(trial, now)[0]
    : columns?.find(([kind, name]) => `${kind}:${name}` === order.by)?.[2] ?? (trial => trial.number);
  return list.sort((a, b) => (order.down ? -1 : 1) * compare(key(a), key(b)) || a.number - b.number);
}

// Return the order of the worklist as a part of a query. Candidates without names are sorted by this page alone.
function orderQuery(study) {
  const [kind, ...rest] = order.by.split(":"), name = rest.join(":"), down = order.down ? "&descending=true" : "";
  if (["number", "state"].includes(order.by)) return `&sort=${order.by}${down}`;
  if (kind === "param" && !study.parameters?.includes(name)) return "";
  return `&sort=${encodeURIComponent(`${{well: "attrs", context: "context", param: "params"}[kind]}.${name}`)}${down}`;
}

// Return the trials of the worklist that are not shown.
async function hiddenTrials(study) {
  const all = isPartial() ? (await fetchTrials(study, "worklist=true")).trials : wantedTrials(Date.now() / 1000 + skew);
  return all.filter(trial => !rows.has(trial.number));
}

// Return whether the server has trials of the worklist that this page has not fetched.
const isPartial = () => total > wantedTrials(Date.now() / 1000 + skew).length;

// Fetch more or other rows, and draw them.
async function refetchWorklist() {
  const {study} = latest;
  try { if (await fetchWorklist(study)) drawWorklist(study, true); } catch (error) { say(error.message, true); }
}

const boxInFocus = () => document.activeElement?.classList.contains("box") ?? false;

// Draw the worklist. Rows stay where they are while someone types, unless `force` is true.
function drawWorklist(study, force = false) {
  const now = Date.now() / 1000 + skew, list = wantedTrials(now), key = JSON.stringify([study.study_id, user]);
  const table = find("worklist"), isSame = table.key === key, shown = list.slice(0, limit);
  const isHeld = isSame && !force && (boxInFocus() || ownEntries().some(entry => entry.texts && hasBoxes(entry)));
  if (isHeld) {
    const known = new Set(list.map(trial => trial.number));
    let n = shown.filter(trial => !rows.has(trial.number)).length;
    for (const each of rows.values()) {
      const present = trials.get(each.trial.number);
      const isChanged = !known.has(each.trial.number) || present.event !== each.trial.event;
      each.row.classList.toggle("changed", isChanged);
      n += isChanged;
      const [, text, kind] = stateOf(each.trial, now);
      setState(each, isChanged ? `changed; ${text}` : text, kind);
    }
    find("changes").hidden = n === 0;
    find("changes").textContent = `${n} changed: refresh`;
    drawBar();
    return;
  }
  find("changes").hidden = true;
  if (!isSame) { rows.clear(); selected.clear(); plate = null; limit = MOST_SHOWN; order = {by: "number", down: false}; }
  shownAt = events;
  columns = columnsOf(study, shown);
  setHead(study);
  const body = table.tBodies[0], kept = new Map();
  for (const trial of shown) {
    const rowKey = JSON.stringify([trial, table.head]), old = rows.get(trial.number);
    kept.set(trial.number, old?.key === rowKey ? old : makeRow(study, trial, rowKey));
  }
  rows.clear();
  for (const [number, each] of kept) { rows.set(number, each); setState(each, ...stateOf(each.trial, now).slice(1)); }
  for (const number of selected) if (!rows.has(number)) selected.delete(number);
  table.key = key;
  const wanted = [...kept.values()].map(each => each.row);
  if (wanted.length !== body.rows.length || wanted.some((row, i) => row !== body.rows[i])) body.replaceChildren(...wanted);
  table.parentElement.hidden = find("worklist-tools").hidden = list.length === 0;
  find("no-worklist").hidden = list.length > 0;
  const rest = Math.max(total, list.length) - shown.length;
  find("more").hidden = rest <= 0;
  find("more").textContent = `Show ${Math.min(MOST_SHOWN, rest)} of ${rest} more`;
  showEntriesInBoxes();
  drawSelection();
}

function setState({state}, text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = `state ${kind}`;
}

// Set the head of the table and the choices of the order.
function setHead(study) {
  const table = find("worklist"), names = namesOf(study);
  const head = JSON.stringify([columns.map(each => each.slice(0, 2)), names, user?.role]);
  if (table.head === head) return;
  table.head = head;
  const inner = columns.map(([kind, name]) => [`${kind}:${name}`, name, ""]);
  const sortable = [["number", "Trial", "number"], ...inner, ["state", "State", ""]];
  const cells = sortable.map(([by, title, kind]) => {
    const cell = group("th", kind, button(title, () => sortBy(by, order.by === by && !order.down)));
    cell.scope = "col";
    cell.dataset.by = by;
    return cell;
  });
  const plain = (text, kind) => Object.assign(element("th", text, kind), {scope: "col"});
  const first = plain("Select", "select");
  table.tHead.rows[0].replaceChildren(first, ...cells, ...names.map(name => plain(titleOf(name), "outcome")));
  const chooser = find("order");
  chooser.replaceChildren(...sortable.map(([by, title]) => new Option(title, by)));
  chooser.value = order.by;
  markOrder();
}

function markOrder() {
  for (const cell of find("worklist").tHead.rows[0].cells) {
    if (!cell.dataset.by) continue;
    if (cell.dataset.by === order.by) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  find("order").value = order.by;
  find("down").checked = order.down;
}

function sortBy(by, down) {
  order = {by, down};
  markOrder();
  if (isPartial()) refetchWorklist();
  else drawWorklist(latest.study, true);
}

// Return what identifies a trial for a person.
function nameOf(trial) {
  const [well] = Object.entries(trial.wells);
  return `trial ${trial.number}${well ? `, ${isolated(well[0])} ${isolated(well[1])}` : ""}`;
}

// Return a button that shows a trial.
function trialButton(study, number) {
  const made = button(String(number), () => showTrial(study, number), "link");
  made.setAttribute("aria-label", `Trial ${number}`);
  return made;
}

function makeRow(study, trial, key) {
  const row = document.createElement("tr"), boxes = new Map(), cell = (content, kind, label) => {
    const made = group("td", kind, content);
    made.dataset.label = label;
    row.append(made);
    return made;
  };
  const tick = input("checkbox");
  tick.checked = selected.has(trial.number);
  tick.setAttribute("aria-label", `Select ${nameOf(trial)}`);
  tick.addEventListener("change", () => {
    if (tick.checked) selected.add(trial.number); else selected.delete(trial.number);
    plate = null;
    drawSelection();
  });
  cell(tick, "select", "");
  cell(trialButton(study, trial.number), "number", "Trial");
  for (const [kind, name, of] of columns) cell(cellText(of(trial)), `${kind} ${kindOf(cellText(of(trial)))}`, name);
  const state = cell("", "state", "State");
  for (const name of namesOf(study)) {
    const made = cell("", "outcome", titleOf(name));
    if (!isMissing(trial, name)) made.append(outcomeCell(resultOf(trial, name))[0]);
    else if (may("report")) boxes.set(name, makeBox(study, trial, name, made));
    else made.append(element("span", "missing", "missing"));
  }
  return {row, trial, boxes, key, state, tick};
}

// Show what the user has changed in the row of a trial. The boxes of other outcomes stay.
function refreshRow(trial) {
  const each = rows.get(trial.number);
  if (!each) return;
  for (const [name, box] of each.boxes) {
    box.trial = trial;
    if (isMissing(trial, name)) continue;
    box.parentElement.replaceChildren(outcomeCell(resultOf(trial, name))[0]);
    each.boxes.delete(name);
  }
  Object.assign(each, {trial, key: ""});  // the row is made again when the worklist is drawn again
  setState(each, ...stateOf(trial, Date.now() / 1000 + skew).slice(1));
}

// Boxes.

function makeBox(study, trial, name, cell) {
  const box = input("text", "", {className: "box", inputMode: "decimal", maxLength: 100, spellcheck: false});
  const note = element("div", "", "note");
  box.setAttribute("aria-label", `${isolated(titleOf(name))} of ${nameOf(trial)}`);
  note.id = `note-${newKey()}`;
  note.setAttribute("aria-live", "polite");
  box.setAttribute("aria-describedby", note.id);
  Object.assign(box, {trial, outcome: name, note});
  const take = () => { if (box.value !== (entryOf(box)?.texts[name] ?? "")) write(study, box, box.value); };
  for (const kind of ["input", "change"]) box.addEventListener(kind, take);
  box.addEventListener("blur", () => { const entry = entryOf(box); if (entry && !isEmpty(box)) readBox(entry, box.outcome); });
  box.addEventListener("keydown", event => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    nextOf(box, event.shiftKey).focus();
  });
  box.addEventListener("paste", event => pasteInto(study, box, event));
  cell.append(box, note);
  return box;
}

const isEmpty = box => box.value.trim() === "";
const boxesShown = () => [...find("worklist").querySelectorAll(".box:enabled")];

// Return the next box of the same outcome, or the first box of the next outcome. After the last box comes the button that
// sends the entries.
function nextOf(box, isBack) {
  const shown = boxesShown(), all = namesOf(latest.study).flatMap(name => shown.filter(each => each.outcome === name));
  const next = all[all.indexOf(box) + (isBack ? -1 : 1)];
  if (next) return next;
  find("send").disabled = false;  // the last text is read when the focus leaves its box
  return isBack ? box : find("send");
}

const boxOf = (entry, name) => entry.study_id === latest?.study.study_id ? rows.get(entry.number)?.boxes.get(name) : undefined;
const hasBoxes = entry => entry.texts !== null && Object.keys(entry.texts).every(name => boxOf(entry, name));
const entryOf = ({trial, outcome}) => ownEntries().find(entry => entry.texts && entry.study_id === latest.study.study_id
  && entry.number === trial.number && outcome in entry.texts);

function labelOf({number}, texts) {
  const parts = Object.entries(texts).map(([name, text]) => `${isolated(titleOf(name))} ${isolated(text)}`);
  return `trial ${number}: ${parts.join(", ")}`;
}

// Take over the text of a box into the entry of its trial.
function write(study, {trial, outcome}, text) {
  const own = ownEntries().filter(each => each.study_id === study.study_id && each.number === trial.number
    && isCurrent(each) && each.texts && each.status !== "waiting");
  let entry = own.find(each => outcome in each.texts) ?? own[0];
  if (!entry) {
    if (text.trim() === "") return;
    entry = newEntry(study, trial.number, trial.event, `trials/${trial.number}/observe`, {}, "");
    entry.texts = bare();
  }
  entry.texts[outcome] = text;
  if (text.trim() === "") delete entry.texts[outcome];
  delete entry.readings[outcome];
  if (!Object.keys(entry.texts).length) drop(entry);
  else {
    entry.label = labelOf(entry, entry.texts);
    renew(entry, {status: entry.status === "changed" ? "changed" : "draft"});
  }
  drawEntries();
  drawBar();
  showNote(entry, outcome);
}

// Ask the server for the number in the text of an entry. Return whether the server could read it.
async function readBox(entry, name) {
  const text = entry.texts?.[name];
  if (text === undefined || entry.readings[name] || entry.status === "waiting") return true;
  const body = {text, outcome: name === "" ? null : name};
  let reading, reason = null;
  try { reading = await ask(`${pathOf(entry.study)}/trials/${entry.number}/check?study_id=${entry.study_id}`, body); }
  catch (error) {
    // A missing right or a missing study says nothing about the text, which is read again later.
    const isLost = error.status === 0 || error.status >= 500 || error.status === 401;
    if (isLost || [403, 404, 409].includes(error.status)) reading = null;
    else reading = {value: null, readings: [], reason: error.message, mark: null};
    if (isLost) return false;
    reason = error.message;
  }
  // The text and the entry may have changed meanwhile, also in another tab.
  if (!isCurrent(entry) || entry.texts[name] !== text || entry.status === "waiting") return true;
  if (reading) entry.readings[name] = reading;
  const isOld = !reading && entry.reason === reason;
  if (entry.status === "draft") entry.reason = reading ? null : reason;
  if (!isOld) keep(entry);
  showNote(entry, name);
  drawEntries();
  drawBar();
  return reading !== null;
}

// Read the texts that are not read yet, such as those of an earlier visit.
async function readDrafts() {
  if (isReading) return;
  isReading = true;
  const open = drafts().flatMap(entry => Object.keys(entry.texts).map(name => [entry, name]));
  for (const [entry, name] of open) if (boxOf(entry, name) !== document.activeElement && !await readBox(entry, name)) break;
  isReading = false;
}

// Show below a box how its text was read.
function showNote(entry, name) {
  const box = boxOf(entry, name);
  if (!box) return;
  const reading = entry.texts[name] === undefined ? undefined : entry.readings[name];
  const isWaiting = entry.status === "waiting", note = box.note;
  const state = JSON.stringify([reading, entry.status, entry.reason, name in entry.texts, unkept.has(entry.id)]);
  box.classList.toggle("unsent", name in entry.texts);
  box.disabled = isWaiting && name in entry.texts;
  box.setAttribute("aria-invalid", String(Boolean(reading && reading.value === null)));
  if (note.state === state) return;
  note.state = state;
  note.className = "note";
  if (!(name in entry.texts)) note.replaceChildren();
  else if (isWaiting) note.replaceChildren("not stored yet");
  else if (entry.status === "changed") { note.replaceChildren("changed meanwhile: see Not sent"); note.classList.add("wrong"); }
  else if (entry.status === "refused") { note.replaceChildren(entry.reason); note.classList.add("wrong"); }
  else if (!reading) { note.replaceChildren(entry.reason ?? ""); note.classList.toggle("wrong", Boolean(entry.reason)); }
  else if (reading.readings.length > 1) {
    const take = text => {
      box.value = text;
      write(latest.study, box, text);
      readBox(entryOf(box), name);
      box.focus();
    };
    const choices = reading.readings.map(String).map(text => button(text, () => take(text)));
    note.replaceChildren(`${reading.readings.join(" or ")}?`, ...choices);
  } else if (reading.value === null) { note.replaceChildren(reading.reason); note.classList.add("wrong"); }
  else {
    note.replaceChildren(`= ${reading.value}`);
    if (reading.mark) { note.append(`, ${rangeOf({...reading.mark, outcome: null})}`); note.classList.add("far"); }
  }
  if (name in entry.texts && unkept.has(entry.id)) {
    note.append(element("div", "not kept if the page is closed"));
    note.classList.add("wrong");
  }
}

// Show the texts of entries in the boxes of their trials, also those of an earlier visit or of another tab.
function showEntriesInBoxes() {
  if (!latest || !user) return;
  for (const {boxes} of rows.values()) {
    for (const box of boxes.values()) {
      const entry = entryOf(box);
      if (entry) {
        if (document.activeElement !== box || box.disabled) box.value = entry.texts[box.outcome];
        showNote(entry, box.outcome);
      } else if (document.activeElement !== box || isEmpty(box)) {
        if (box.value !== "") box.value = "";
        if (box.note.state) { box.note.state = ""; box.note.replaceChildren(); box.classList.remove("unsent"); }
        box.disabled = false;
      }
    }
  }
  drawBar();
}

// Sending.

// Return the entries whose texts the boxes of this study show.
const drafts = () => ownEntries().filter(entry => ["draft", "refused"].includes(entry.status) && entry.texts && hasBoxes(entry));

function drawBar() {
  const all = drafts(), n = sizeOfAll(all);
  const readings = all.flatMap(entry => Object.keys(entry.texts).map(name => entry.readings[name]));
  const open = readings.filter(each => each && each.value === null).length;
  const send = find("send"), isFocused = document.activeElement === send;
  find("bar").hidden = !may("report") || (n === 0 && find("changes").hidden);
  send.hidden = n === 0;
  send.disabled = n === open;
  send.textContent = `Send ${count(n - open, "value")}`;
  if (isFocused && n === 0) find("work-title").focus();  // the button is hidden now
  find("open").textContent = open ? `${open} of ${count(n, "value")} cannot be sent yet: see below the boxes` : "";
}

// Read the texts of entries, and send those that are numbers. A text that changes meanwhile is not sent, nor is the text
// of a box to which the person moves meanwhile.
async function sendDrafts(list) {
  const asked = list.map(entry => [entry, new Map(Object.entries(entry.texts))]), focused = document.activeElement;
  for (const [entry, texts] of asked) {
    const isLeft = name => entry.texts[name] === texts.get(name)
      && (document.activeElement === focused || boxOf(entry, name) !== document.activeElement);
    for (const name of texts.keys()) {
      if (!isCurrent(entry) || !isLeft(name) || await readBox(entry, name)) continue;
      find("stored").textContent = entry.reason
        ?? "The server does not answer. The values are kept in this browser; send them later.";
      return;
    }
    if (!isCurrent(entry) || !["draft", "refused"].includes(entry.status)) continue;
    const usable = Object.keys(entry.texts).filter(name => isLeft(name) && typeof entry.readings[name]?.value === "number");
    if (!usable.length) continue;
    const rest = Object.keys(entry.texts).filter(name => !usable.includes(name));
    if (rest.length) {
      const other = {...structuredClone(entry), id: newKey(), key: newKey(), body: null,
        texts: bare(entry.texts), readings: bare(entry.readings)};
      for (const name of usable) { delete other.texts[name]; delete other.readings[name]; }
      for (const name of rest) { delete entry.texts[name]; delete entry.readings[name]; }
      keep(Object.assign(other, {label: labelOf(other, other.texts)}));
    }
    const values = Object.fromEntries(usable.map(name => [name, entry.readings[name].value]));
    entry.label = labelOf(entry, values);
    entry.fields = {...entry.fields, value: usable[0] === "" ? values[""] : values};
    submit(entry);
  }
  drawEntries();
  showEntriesInBoxes();
}

// Selected trials.

function drawSelection() {
  for (const {row, tick, trial} of rows.values()) {
    tick.checked = selected.has(trial.number);
    row.classList.toggle("unselected", selected.size > 0 && !selected.has(trial.number));
  }
  find("abandon").hidden = !may("report") || selected.size === 0;
  find("abandon").textContent = `Abandon ${count(selected.size, "trial")}`;
  find("plate").hidden = plate === null;
  find("plate").textContent = `The new trials ${plate} are selected: print them, or download them as a file.`;
}

// Select the trials of a new plate.
async function showPlate(entry, list) {
  const numbers = list.map(trial => trial.number);
  await refresh();
  if (latest?.study.study_id !== entry.study_id) return;
  drawWorklist(latest.study, true);
  selected.clear();
  for (const number of numbers) selected.add(number);
  plate = numbers.length > 1 ? `${numbers[0]} to ${numbers.at(-1)}` : String(numbers[0]);
  drawSelection();
}

async function abandonSelected() {
  const numbers = [...selected].sort((a, b) => a - b), what = `trial${numbers.length === 1 ? "" : "s"} ${numbers.join(", ")}`;
  const {study} = latest, expected = shownAt;  // what the person sees now; both may change before the answer
  const text = `Abandon ${what}? Missing results are no longer expected. A value that arrives later is still accepted.`;
  if (!await choose("Abandon trials", [element("p", text)], [["Abandon", true]])) return;
  submit(newEntry(study, null, expected, "abandon", {numbers}, `abandon ${what}`));
  selected.clear();
  drawSelection();
}

// Return the rows that are shown, or those of the selected trials.
const chosenTrials = () => [...rows.values()].map(each => each.trial)
  .filter(trial => !selected.size || selected.has(trial.number));

// The worklist as a file, with the columns that `observe` reads.
function worklistCsv(study, list) {
  const names = study.outcomes.length ? study.outcomes.map(each => `outcome_${each.name}`) : ["value"];
  const prefixes = {well: "attrs_", context: "context_", param: "params_"};
  const inner = columns.map(([kind, name]) => kind === "param" && study.parameters === null ? "index" : prefixes[kind] + name);
  const head = ["study", "study_id", "number", "as_of", ...inner, "forbidden", ...names, "remarks"];
  const lines = list.map(trial => [study.name, idOf(study), trial.number, shownAt, ...columns.map(([, , of]) => of(trial)),
    trial.forbidden ?? "", ...namesOf(study).map(name => resultOf(trial, name).value), ""]);
  return [head, ...lines].map(line => line.map(cellOf).join(",")).join("\r\n") + "\r\n";
}

// The id of a study as tables have it.
const idOf = study => `id-${study.study_id.toString(16).padStart(12, "0")}`;

find("send").addEventListener("click", () => sendDrafts(drafts()));
find("changes").addEventListener("click", () => { drawWorklist(latest.study, true); find("work-title").focus(); });
find("more").addEventListener("click", () => { limit += MOST_SHOWN; refetchWorklist(); });
find("order").addEventListener("change", () => sortBy(find("order").value, order.down));
find("down").addEventListener("change", () => sortBy(order.by, find("down").checked));
find("abandon").addEventListener("click", abandonSelected);
find("print").addEventListener("click", () => window.print());
window.addEventListener("beforeprint", () => {
  find("printed").textContent = latest ? `${latest.study.name}, ${moment(Date.now() / 1000 + skew)}, as of event ${shownAt}` : "";
});
find("worklist-file").addEventListener("click", () => {
  save(worklistCsv(latest.study, chosenTrials()), `${latest.study.name} worklist.csv`);
});
