"use strict";
// The table of all trials, in pages.

const PAGE = 50;
let page = 0;

// Name → whether a trial is shown.
const KINDS = {
  "": () => true,
  ...Object.fromEntries(["pending", "observed", "failed", "abandoned", "stopped", "withdrawn"]
    .map(state => [state, trial => trial.state === state])),
  late: trial => trial.state === "pending" && trial.lease_ends_at !== null && trial.lease_ends_at <= Date.now() / 1000 + skew,
  marked: trial => trial.warnings.length > 0, forbidden: trial => trial.forbidden !== null,
};

// Return [title, sorting value of a trial, cell] for the columns.
function allColumns(study, list) {
  const cell = text => [text, kindOf(text)];
  const values = columnsOf(study, list).map(([, name, of]) => [name, of, trial => cell(cellText(of(trial)))]);
  const results = namesOf(study).map(name =>
    [titleOf(name), trial => resultOf(trial, name).value, trial => outcomeCell(resultOf(trial, name))]);
  return [["Trial", trial => trial.number, trial => numberCell(study, trial)], ...values, ...results,
    ["State", trial => trial.state, trial => [trial.warnings.length ? `${trial.state}, marked` : trial.state, trial.state]],
    ["Reported by", trial => trial.finished_by, trial => cell(trial.finished_by ?? "–")],
    ["Last change", trial => trial.changed_at, trial => [moment(trial.changed_at), "short"]]];
}

function drawAll(study) {
  const table = find("all"), chooser = find("all-order"), kind = find("all-kind").value;
  const found = [...trials.values()].filter(KINDS[kind]);  // trials become late without an event
  const key = () => JSON.stringify([study.study_id, events, trials.size, kind, found.length, chooser.value,
    find("all-down").checked, page]);
  if (table.key === key()) return;
  const head = allColumns(study, found.slice(0, 1000));
  const titles = head.map(each => each[0]);
  if (table.head !== JSON.stringify(titles)) {
    table.head = JSON.stringify(titles);
    table.tBodies[0].replaceChildren();  // the cells have the names of their columns
    table.tHead.rows[0].replaceChildren(...titles.map(title => Object.assign(element("th", title), {scope: "col"})));
    const chosen = chooser.value;
    chooser.replaceChildren(...titles.map((title, i) => new Option(title, String(i))));
    chooser.value = chosen in titles ? chosen : "0";
  }
  const of = head[Number(chooser.value)][1], sign = find("all-down").checked ? -1 : 1;
  found.sort((a, b) => sign * compare(of(a), of(b)) || a.number - b.number);
  page = Math.max(0, Math.min(page, Math.ceil(found.length / PAGE) - 1));
  const shownNow = found.slice(page * PAGE, (page + 1) * PAGE);
  fill("all", shownNow.map(trial => head.map(each => each[2](trial))));
  find("all-page").textContent = found.length ? `${page * PAGE + 1} to ${page * PAGE + shownNow.length} of ${found.length}` : "";
  find("all-back").disabled = page === 0;
  find("all-next").disabled = (page + 1) * PAGE >= found.length;
  table.key = key();
}

const turn = change => { page += change; if (latest) drawAll(latest.study); };
for (const id of ["all-kind", "all-order", "all-down"]) find(id).addEventListener("change", () => turn(-page));
find("all-back").addEventListener("click", () => turn(-1));
find("all-next").addEventListener("click", () => turn(1));
find("all-kind").replaceChildren(...Object.keys(KINDS).map(kind => new Option(kind || "all", kind)));
