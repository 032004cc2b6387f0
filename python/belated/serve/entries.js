"use strict";
// Entries: what a person has written and the server has not stored. An entry has the id of the study, the number of the
// trial, the event that the person saw, the user, the texts and a key. The browser keeps it until the server has
// acknowledged it, also if the page is closed. Each entry is an item of the storage, so tabs do not overwrite others'.
//
// The status is "draft" until the person sends it; "waiting" until the server has answered; "refused" with the reason;
// "changed" if the trial has changed since the person saw it.

const ENTRY = "belated-entry-", RESTING = 2000;
const disk = (() => { try { return localStorage; } catch { return null; } })();
const entries = new Map();  // id → entry
const unkept = new Set();  // ids of the entries that the browser has not stored
let isDelivering = false, restsUntil = 0;

// Return an object without inherited properties, because outcomes may have names such as "constructor".
const bare = values => Object.assign(Object.create(null), values);

// Take over an item of the storage. An entry stays the same object, so a function that waits for an answer sees changes.
function readEntry(id) {
  if (!disk || unkept.has(id)) return;
  let found = null;
  try { found = JSON.parse(disk.getItem(ENTRY + id)); } catch { /* not an entry */ }
  if (found === null) { entries.delete(id); return; }
  entries.set(id, Object.assign(entries.get(id) ?? {}, found,
    {texts: found.texts && bare(found.texts), readings: bare(found.readings)}));
}
for (const key of Object.keys(disk ?? {})) if (key.startsWith(ENTRY)) readEntry(key.slice(ENTRY.length));

// Take over what other tabs have changed in an entry. Return whether it still exists.
function isCurrent(entry) {
  readEntry(entry.id);
  return entries.get(entry.id) === entry;
}

function keep(entry) {
  entries.set(entry.id, entry);
  try {
    disk.setItem(ENTRY + entry.id, JSON.stringify(entry));
    unkept.delete(entry.id);
  } catch {
    unkept.add(entry.id);
    disk?.removeItem(ENTRY + entry.id);  // otherwise an earlier text would come back after a reload
  }
}

function drop(entry) {
  entries.delete(entry.id);
  unkept.delete(entry.id);
  disk?.removeItem(ENTRY + entry.id);
}

// Return a new entry of the user for the study that is shown. `route` is the path of the request in the study; `fields`
// are fields of its body. `number` is null if the request does not concern one trial.
function newEntry(study, number, expected, route, fields, label) {
  return {id: newKey(), key: newKey(), user: user.name, study: study.name, study_id: study.study_id, revision: study.revision,
    number, expected, route, fields, label, texts: null, readings: bare(), body: null, status: "draft", reason: null, trials: null,
    at: Date.now()};
}

const sorted = list => list.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
const ownEntries = () => user === null ? [] : sorted([...entries.values()].filter(each => each.user === user.name));
const foreignEntries = () => user === null ? [] : sorted([...entries.values()].filter(each => each.user !== user.name));
const sizeOf = entry => Math.max(1, Object.keys(entry.texts ?? {}).length);
const sizeOfAll = list => list.reduce((sum, each) => sum + sizeOf(each), 0);

// Send an entry as soon as the server can be reached.
function submit(entry) {
  Object.assign(entry, {status: "waiting", reason: null, trials: null});
  keep(entry);
  restsUntil = 0;
  deliver();
}

// Prepare a request that differs from the earlier one: it needs another key.
function renew(entry, changes) {
  Object.assign(entry, {key: newKey(), body: null, reason: null, trials: null}, changes);
  keep(entry);
}

// Send the entries of the user that wait, one after another.
async function deliver() {
  if (isDelivering || performance.now() < restsUntil) return;
  isDelivering = true;
  const stored = [];
  try {
    for (let next; token && (next = ownEntries().find(each => each.status === "waiting"));) {
      if (!await deliverOne(next, stored)) { restsUntil = performance.now() + RESTING; break; }
    }
  } finally { isDelivering = false; }
  const n = sizeOfAll(stored);
  const what = stored.length > 3 ? `${n} entries` : stored.map(each => each.label).join("; ");
  if (n) {
    find("stored").textContent = `Stored: ${what}.`;
    if (isTurning === null) reloadAll(table.starts);  // the person expects to see what was stored
  }
  drawEntries();
  redraw();
}

// Send an entry, and add it to `stored` if the server has stored it. Return whether the server has answered.
async function deliverOne(entry, stored) {
  // The body is stored before it is sent, because the key belongs to this body. It names the user, so that the server
  // refuses it if the token has another name now.
  const {key, expected} = entry, isFirst = !entry.body;
  if (isFirst) {
    const {revision, user: by} = entry;
    entry.body = {...entry.fields, key, by, ...(expected === null ? {} : {expected}), ...(entry.route === "table" ? {} : {revision})};
    keep(entry);
  }
  drawEntries();
  let answer;
  try { answer = await ask(`${pathOf(entry.study)}/${entry.route}?study_id=${entry.study_id}`, entry.body); }
  catch (error) {
    if ([403, 422].includes(error.status)) await learnUser().catch(() => {});
    if (isCurrent(entry) && entry.key === key && entry.status === "waiting") {
      // An entry of a user whose name the token does not have any longer waits for this user.
      const isLost = error.status === 0 || (error.status >= 500 && error.status !== 501) || error.status === 401
        || user?.name !== entry.user;
      if (!isLost) Object.assign(entry, {status: error.trials ? "changed" : "refused", trials: error.trials ?? null});
      keep(Object.assign(entry, {reason: error.trials ? "The trial has changed since you saw it." : error.message}));
      if (!isLost && entry.route === "table" && error.trials) summarizeAgain(entry);
      return !isLost;
    }
    return error.status !== 0;
  }
  drop(entry);
  // The answer to a repetition may contain changes that the user has not seen.
  const found = answer.trials ?? (answer.number === undefined ? [] : [answer]);
  for (const trial of found) accept(entry, trial, isFirst ? expected : Infinity);
  stored.push(entry);
  if (entry.route === "suggest") await showPlate(entry, answer.trials);
  return true;
}

// Take over a trial from the answer to an entry. Other entries of the trial that were begun at the event `since` or later
// are not contradicted by it.
function accept(entry, trial, since) {
  const shown = latest?.study;
  if (shown?.study_id !== entry.study_id) return;
  receive(trial, shown);
  refreshRow(trials.get(trial.number));
  for (const other of ownEntries()) {
    const isOfTrial = other.study_id === entry.study_id && other.number === trial.number;
    if (!isOfTrial || other.body || other.status === "changed" || other.expected < since) continue;
    if (!Object.keys(other.texts ?? {}).every(name => isMissing(trial, name))) continue;
    keep(Object.assign(other, {expected: trial.event}));
  }
}

// The list of entries that are not sent.

// Return whether the boxes of the worklist show an entry.
const isInBoxes = entry => entry.status === "draft" && hasBoxes(entry);

function drawEntries() {
  for (const id of unkept) keep(entries.get(id));  // there may be room now
  find("unkept").textContent = unkept.size
    ? "This browser does not store entries: do not close the page before they are sent." : "";
  // An entry that is being sent for the first time is not listed.
  const isListed = entry => !isInBoxes(entry) && (entry.status !== "waiting" || entry.reason);
  const own = ownEntries().filter(isListed), others = foreignEntries(), list = find("entries");
  const state = JSON.stringify([own, others.length, own.map(presentTrials), own.map(isFormer)]);
  if (list.state === state) return;
  list.state = state;
  find("unsent").hidden = own.length + others.length === 0;
  list.replaceChildren(...own.map(entryItem), ...(others.length ? [foreignItem(others)] : []));
}

function foreignItem(others) {
  const details = element("ul", "");
  details.hidden = true;
  const author = each => each.user === null ? "" : `${isolated(each.user)}, `;
  details.append(...others.map(each => element("li", `${author(each)}${isolated(each.study)}: ${each.label}`)));
  const n = sizeOfAll(others), text = `${count(n, "value")} of another user ${n === 1 ? "is" : "are"} not sent`;
  return group("li", "", element("p", text), group("p", "buttons",
    button("Show", () => { details.hidden = !details.hidden; }),
    button("Discard", async () => {
      const isSure = await choose("Discard", [element("p", `${text}. If you discard them, they are lost.`)], [["Discard", true]]);
      if (isSure) { others.forEach(drop); drawEntries(); }
    })), details);
}

// Return the trials that an entry with a conflict must be compared with.
function presentTrials(entry) {
  if (entry.trials) return entry.trials;
  const isOpen = ["draft", "changed"].includes(entry.status) && entry.study_id === latest?.study.study_id;
  const trial = isOpen ? trials.get(entry.number) : null;
  return trial && (entry.status === "changed" || trial.event > entry.expected) ? [trial] : [];
}

function entryItem(entry) {
  const former = isFormer(entry) ? " (a former study)" : "";
  const item = group("li", entry.status, element("p", `${isolated(entry.study)}${former}, ${entry.label}`));
  if (entry.reason) item.append(element("p", entry.reason, "reason"));
  for (const reading of Object.values(entry.readings)) if (reading.reason) item.append(element("p", reading.reason, "reason"));
  if (entry.status === "waiting") item.append(element("p", "It is sent again until the server answers.", "reason"));
  const present = presentTrials(entry), buttons = [];
  for (const trial of present) item.append(element("p", describe(trial), "reason"));
  if (["changed", "draft"].includes(entry.status) && present.length) {
    const expected = Math.max(...present.map(trial => trial.event));
    const replaced = present.flatMap(trial => Object.keys(entry.texts ?? {}).filter(name => !isMissing(trial, name)));
    const again = fields => {
      renew(entry, {expected, status: "draft", fields: {...entry.fields, ...fields}});
      sendEntry(entry);
    };
    if (!replaced.length) buttons.push(button("Send anyway", () => again({})));
    else if (may("work")) buttons.push(button("Replace the present value", () => again({amend: true})));
    else item.append(element("p", "Replacing a value needs the role work.", "reason"));
  }
  const isElsewhere = entry.status === "draft" && !present.length;
  if (isElsewhere || entry.status === "refused")
    buttons.push(button(isElsewhere ? "Send" : "Send again", () => { renew(entry, {readings: bare()}); sendEntry(entry); }));
  if (entry.number !== null && entry.study_id === latest?.study.study_id)
    buttons.push(button(`Show trial ${entry.number}`, () => showTrial(latest.study, entry.number)));
  buttons.push(button("Discard", () => { drop(entry); drawEntries(); redraw(); }));
  item.append(group("p", "buttons", ...buttons));
  return item;
}

// Send an entry again. The texts of boxes are read first.
const sendEntry = entry => entry.texts ? sendDrafts([entry]) : submit(entry);

window.addEventListener("storage", event => {
  if (!event.key?.startsWith(ENTRY)) return;
  readEntry(event.key.slice(ENTRY.length));  // the event may be older than the item
  drawEntries();
  showEntriesInBoxes();
});
window.addEventListener("beforeunload", event => { if (ownEntries().length) event.preventDefault(); });
