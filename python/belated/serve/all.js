"use strict";
// The table of all trials: pages from the server, which sorts and filters. It shows the trials as they were at one event.

const PAGE = 50;
// Name → the part of a query.
const KINDS = {
  all: "", ...Object.fromEntries(["pending", "observed", "failed", "abandoned", "stopped", "withdrawn"]
    .map(state => [state, `&state=${state}`])),
  late: "&late=true", marked: "&marked=true", forbidden: "&forbidden=true",
};
// The page that is shown: the study, its trials, the query, and the queries of the pages before it.
let table = {study_id: null, trials: [], total: 0, events: 0, query: "", starts: [""], next: null, at: 0}, isTurning = null;

// Return [title, cell] for the columns.
function allColumns(study, list) {
  const cell = text => [text, kindOf(text)];
  const values = columnsOf(study, list).map(([, name, of]) => [name, trial => cell(cellText(of(trial)))]);
  const results = namesOf(study).map(name => [titleOf(name), trial => outcomeCell(resultOf(trial, name))]);
  return [["Trial", trial => numberCell(study, trial)], ...values, ...results,
    ["State", trial => [trial.warnings.length ? `${trial.state}, marked` : trial.state, trial.state]],
    ["Reported by", trial => cell(trial.finished_by ?? "–")], ["Last change", trial => [moment(trial.changed_at), "short"]]];
}

// Return [title, query] for the orders.
function allOrders(study) {
  const ofOutcome = name => [titleOf(name), `&sort=value${name === "" ? "" : `&outcome=${encodeURIComponent(name)}`}`];
  const ofParameter = name => [name, `&sort=${encodeURIComponent(`params.${name}`)}`];
  return [["Trial", "&sort=number"], ["Last change", "&sort=changed"], ...namesOf(study).map(ofOutcome),
    ...(study.parameters ?? []).map(ofParameter)];
}

function allQuery() {
  const by = find("all-by").value.trim();
  return KINDS[find("all-kind").value] + (find("all-order").value || "&sort=number")
    + (find("all-down").checked ? "&descending=true" : "") + (by ? `&by=${encodeURIComponent(by)}` : "");
}

// Fetch the page after the trials that `starts` ends with.
async function loadAll(study, starts) {
  const query = allQuery(), mine = isTurning = {};
  let page;
  try { page = await ask(`${pathOf(study.name)}/trials?study_id=${study.study_id}&limit=${PAGE}${query}${starts.at(-1)}`); }
  catch (error) {
    if (isTurning === mine) { isTurning = null; find("all-page").textContent = error.message; }
    return;
  }
  if (isTurning !== mine) return;
  isTurning = null;
  if (latest?.study.study_id !== study.study_id) return;
  table = {study_id: study.study_id, trials: page.trials.map(trial => kept(trial, study.choices)), query, starts, next: nextOfPage(page),
    total: starts.length > 1 ? table.total : page.total, events: page.events, at: Date.now()};
  showAll(study);
}

function showAll(study) {
  const head = allColumns(study, table.trials), shown = find("all"), titles = JSON.stringify(head.map(each => each[0]));
  if (shown.head !== titles) {
    shown.head = titles;
    shown.tBodies[0].replaceChildren();  // the cells have the names of their columns
    shown.tHead.rows[0].replaceChildren(...head.map(([title]) => Object.assign(element("th", title), {scope: "col"})));
  }
  fill("all", table.trials.map(trial => head.map(([, cell]) => cell(trial))));
  const first = (table.starts.length - 1) * PAGE + 1, last = first + table.trials.length - 1;
  find("all-page").textContent = table.trials.length ? `${first} to ${last} of ${table.total}` : "";
  drawAll(study);
}

// Show whether the table is outdated. Its rows stay, because a person may be reading them.
function drawAll(study) {
  const orders = allOrders(study), chooser = find("all-order"), key = JSON.stringify(orders);
  if (chooser.key !== key) {
    chooser.key = key;
    chooser.replaceChildren(...orders.map(each => new Option(...each)));
  }
  if (table.study_id !== study.study_id) {
    if (isTurning === null) loadAll(study, [""]);
    return;
  }
  // Trials become late without an event.
  if (find("all-kind").value === "late" && isTurning === null && Date.now() > table.at + PERIOD) loadAll(study, table.starts);
  const n = Math.max(0, study.events - table.events);
  find("all-changes").hidden = n === 0;
  find("all-changes").textContent = `${n} changed: refresh`;
  find("all-back").disabled = table.starts.length === 1;
  find("all-next").disabled = table.next === null;
}

const reloadAll = starts => latest && loadAll(latest.study, starts);
for (const id of ["all-kind", "all-order", "all-down", "all-by"]) find(id).addEventListener("change", () => reloadAll([""]));
find("all-back").addEventListener("click", () => reloadAll(table.starts.slice(0, -1)));
find("all-next").addEventListener("click", () => reloadAll([...table.starts, table.next]));
find("all-changes").addEventListener("click", () => reloadAll([""]));
find("all-kind").replaceChildren(...Object.keys(KINDS).map(kind => new Option(kind, kind)));
