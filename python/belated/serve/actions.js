"use strict";
// Forms: actions on a trial, an experiment that was not planned, and the next plate.

// Return a form; with a title, in a part that opens and closes. `act` returns a text if the form cannot be used.
function form(title, fields, label, act, isOpen = false) {
  const made = group("form", "fields", ...fields, element("button", label)), reason = element("p", "", "reason");
  reason.setAttribute("role", "alert");
  made.append(reason);
  made.addEventListener("submit", async event => { event.preventDefault(); reason.textContent = await act(made) ?? ""; });
  if (title === null) return made;
  const details = group("details", "", element("summary", title), made);
  details.open = isOpen;
  return details;
}

const moment = seconds => new Date(seconds * 1000).toLocaleString();

// Show a trial, what can be done with it, and its history.
async function showTrial(study, number) {
  const path = `${pathOf(study.name)}/trials/${number}`, title = `Trial ${number}`, query = `?study_id=${study.study_id}`;
  openDialog(title, element("p", "…"));
  let trial, past;
  try { [trial, past] = await Promise.all([ask(path + query), ask(`${path}/history${query}`)]); }
  catch (error) { find("dialog-content").replaceChildren(element("p", error.message, "reason")); return; }
  if (!find("dialog").open || find("dialog-title").textContent !== title) return;
  receive(trial, study);
  trial = {...kept(trial, study.choices), remarks: trial.remarks};
  const others = Object.entries({...trial.context, ...trial.wells}).map(([name, value]) => [name, cellText(value)]);
  const facts = [...pointOf(trial), ...others, ["State", stateOf(trial, Date.now() / 1000 + skew)[1]],
    ...namesOf(study).map(name => [titleOf(name), outcomeCell(resultOf(trial, name))[0]])];
  const pair = ([name, value]) => group("div", "", element("dt", name), element("dd", value));
  const figures = group("dl", "figures", ...facts.map(pair));
  const list = group("ol", "history", ...past.events.map(each => element("li", eventText(each))));
  openDialog(title, figures, ...formsOf(study, trial), element("h3", "History"), list);
}

// Return a sentence about an event of a trial.
function eventText(event) {
  const of = name => name === null ? "" : ` ${isolated(name)}`;
  const parts = event.results.map(each => {
    const value = each.value === null ? "" : ` ${format(each.value, 15)}`;
    return `${each.what}${of(each.outcome)}${value}${each.replaced === null ? "" : ` (before: ${format(each.replaced, 15)})`}`;
  });
  if (event.what === "suggested" || event.what === "added") parts.unshift(event.what);
  if (event.step !== null) parts.push(`step ${event.step}: ${format(event.value)}`);
  if (event.confirmed.length) parts.push(`confirmed${event.confirmed.map(of).join(",")}`);
  for (const name of ["remark", "reason", "error"]) if (event[name] !== null) parts.push(`${name}: ${isolated(event[name])}`);
  const what = parts.join("; ") || (event.what === "noted" ? "reported again what was known" : event.what);
  return `${moment(event.at)}${event.by === null ? "" : `, ${isolated(event.by)}`}: ${what}`;
}

// Return the forms for what the user may do with a trial.
function formsOf(study, trial) {
  const names = namesOf(study), is = test => names.filter(name => test(resultOf(trial, name), name)), made = [];
  const send = (route, fields, what) => {
    closeDialog();
    const label = `trial ${trial.number}: ${what}`;
    submit(newEntry(study, trial.number, trial.event, `trials/${trial.number}/${route}`, fields, label));
  };
  const outcomesIn = (list, all) => list[0] === "" ? null
    : select([...(all && list.length > 1 ? [[all, null]] : []), ...list.map(name => [name, name])]);
  const fieldsFor = (chooser, ...others) => [...(chooser ? [field("Outcome", chooser)] : []), ...others];
  const chosen = chooser => chooser?.chosen() ?? null, of = name => name ? ` ${isolated(name)}` : "";
  // A value that arrives late, and a correction.
  const open = is((result, name) => !isMissing(trial, name) && (result.value === null || may("work")));
  if (may("report") && open.length) made.push(valueForm(study, trial, open, outcomesIn(open), send));
  const withResult = is(result => result.value !== null || ["failed", "stopped"].includes(result.state));
  if (may("work") && withResult.length) {
    const chooser = outcomesIn(withResult, "all"), reason = input("text", "", {maxLength: 2000});
    made.push(form("Withdraw the result", fieldsFor(chooser, field("Reason", reason)), "Withdraw", () => {
      if (!reason.value.trim()) return "Write the reason.";
      send("withdraw", {reason: reason.value, outcome: chosen(chooser)}, `withdraw${of(chosen(chooser))}`);
    }));
  }
  const missing = is((_, name) => isMissing(trial, name));
  if (may("report") && missing.length) {
    const failing = outcomesIn(missing, "all that are missing"), error = input("text", "", {maxLength: 2000});
    made.push(form("It failed", fieldsFor(failing, field("What went wrong", error)), "Report the failure", () => {
      send("fail", {error: error.value || null, outcome: chosen(failing)}, `failed${of(chosen(failing))}`);
    }));
    const leaving = outcomesIn(missing, "all that are missing");
    const about = element("p", "The result is no longer expected. A value that arrives later is still accepted.");
    made.push(form("Abandon it", fieldsFor(leaving, about), "Abandon",
      () => send("abandon", {outcome: chosen(leaving)}, `abandon${of(chosen(leaving))}`)));
  }
  if (may("report") && trial.warnings.length) {
    const chooser = outcomesIn(trial.warnings.map(each => each.outcome ?? ""), "all");
    const about = element("p", trial.warnings.map(each => `${format(each.value, 15)}: ${rangeOf(each)}`).join("; "));
    made.push(form("Confirm the marked value", fieldsFor(chooser, about), "It is right",
      () => send("confirm", {outcome: chosen(chooser)}, `confirm${of(chosen(chooser))}`), true));
  }
  if (may("report")) made.push(remarkForm(study, trial));
  return made;
}

// Return the form for a remark. What is typed becomes an entry at once, which is not sent before the person sends it.
function remarkForm(study, trial) {
  const route = `trials/${trial.number}/note`, isDraft = each => each.route === route && each.study_id === study.study_id
    && each.status === "draft" && isCurrent(each);
  let entry = ownEntries().find(isDraft);
  const remark = input("textarea", entry?.fields.remark ?? "", {maxLength: 2000});
  const take = () => {
    if (entry && !isDraft(entry)) entry = undefined;  // another tab has sent it, or discarded it
    if (!remark.value.trim()) { if (entry) drop(entry); entry = undefined; }
    else {
      entry ??= newEntry(study, trial.number, trial.event, route, {}, "");
      renew(entry, {fields: {remark: remark.value}, label: `trial ${trial.number}: remark ${isolated(remark.value)}`});
    }
    drawEntries();
  };
  remark.addEventListener("input", take);
  return form("Write a remark", [field("Remark", remark)], "Add the remark", () => {
    take();  // another tab may have changed the entry
    if (!entry) return "Write the remark.";
    closeDialog();
    submit(entry);
  }, Boolean(entry));
}

// Return the form for a value of an outcome that is not missing. The value is shown as it was read before it is sent.
function valueForm(study, trial, open, chooser, send) {
  const box = input("text", "", {inputMode: "decimal", maxLength: 100}), chosen = () => chooser ? chooser.chosen() : open[0];
  const title = open.some(name => resultOf(trial, name).value !== null) ? "Correct a value" : "Enter a value";
  const fields = [...(chooser ? [field("Outcome", chooser)] : []), field("Value", box)];
  const path = `${pathOf(study.name)}/trials/${trial.number}/check?study_id=${study.study_id}`;
  let read = null;
  return form(title, fields, "Read the value", async here => {
    const name = chosen(), before = resultOf(trial, name).value, text = box.value, label = here.querySelector("button");
    if (read?.text === text && read.name === name) {
      const what = `${isolated(titleOf(name))} ${read.value}`, value = name === "" ? read.value : {[name]: read.value};
      if (before === null) send("observe", {value}, what);
      else send("observe", {value, amend: true}, `${what} in place of ${format(before, 15)}`);
      return null;
    }
    read = null;
    label.textContent = "Read the value";
    let reading;
    try { reading = await ask(path, {text, outcome: name === "" ? null : name}); } catch (error) { return error.message; }
    if (reading.readings.length > 1) return `${reading.readings.join(" or ")}? Write one of them.`;
    if (reading.value === null) return reading.reason;
    read = {text, name, value: reading.value};
    label.textContent = before === null ? `Send ${reading.value}` : `Replace ${format(before, 15)} by ${reading.value}`;
    return reading.mark ? rangeOf({...reading.mark, outcome: null}) : null;
  });
}

// The definition of the study.

// Return the value in a text, or raise an error that names the field.
function numberOf(text, name) {
  const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text.trim());
  if (!isNumber) throw new Error(`${isolated(name)}: write a number such as 0.81.`);
  return Number(text);
}

// Return a label with the range of a parameter.
const rangeLabel = ({name, low, high}) =>
  typeof low === "number" ? `${isolated(name)} (${format(low)} to ${format(high)})` : isolated(name);

// Return the number in a text, or raise an error unless it is in the range of a parameter.
function numberIn({name, kind, low, high, step}, text) {
  const number = numberOf(text, name), wrong = expected => { throw new Error(`${isolated(name)}: write ${expected}.`); };
  if (kind === "Integer" && !Number.isInteger(number)) wrong("a whole number");
  if (number < low || number > high) wrong(`a number from ${low} to ${high}`);
  const steps = step ? (number - low) / step : 0;
  if (Math.abs(steps - Math.round(steps)) > 1e-6) wrong(`one of the numbers ${low}, ${Number((low + step).toPrecision(12))}, …, ${high}`);
  return number;
}

// Return a control for a parameter: {element, value()}; the value is undefined if it was left open. An experiment that
// was not planned may lie beyond the range, and other numbers must be in the range if `isChecked`.
function controlOf(dimension, isOptional, isChecked = false) {
  const choices = dimension.choices ?? dimension.values;
  if (choices) {
    const list = choices.map(each => [typeof each === "string" ? each : JSON.stringify(each), each]);
    const made = select([...(isOptional ? [["any", undefined]] : []), ...list]);
    return {element: made, value: () => made.chosen()};
  }
  const made = input("text", "", {inputMode: "decimal", placeholder: `${format(dimension.low)} to ${format(dimension.high)}`});
  return {element: made, value: () => {
    if (made.value.trim() === "" && isOptional) return undefined;
    return isChecked ? numberIn(dimension, made.value) : numberOf(made.value, dimension.name);
  }};
}

// Return {space, contexts, fidelity, rows}: the parameters, the contexts, the fidelity or null, and the rows of a study
// with candidates, or null.
async function dimensionsOf(study) {
  const {problem: {space, context, candidates, fidelity}} = await ask(`${pathOf(study.name)}/definition?study_id=${study.study_id}`);
  if (!candidates) return {space, contexts: context ?? [], fidelity, rows: null};
  const names = candidates.names ?? [], choicesOf = i => [...new Set(candidates.rows.map(row => row[i]))].sort(compare);
  const cell = (value, k) => (names.length ? `${isolated(names[k])} = ` : "") + isolated(cellText(value));
  const rows = candidates.rows.map((row, i) => [`${i}: ${row.map(cell).join(", ")}`, i]);
  return {space: names.map((name, i) => ({name, choices: choicesOf(i)})), contexts: context ?? [], fidelity, rows};
}

// Return the values of controls by name, without those that were left open.
function filledIn(list) {
  return Object.fromEntries(list.map(([name, control]) => [name, control.value()]).filter(([, value]) => value !== undefined));
}

async function opened(title, study, show) {
  openDialog(title, element("p", "…"));
  try { show(await dimensionsOf(study)); }
  catch (error) { find("dialog-content").replaceChildren(element("p", error.message, "reason")); }
}

// Run a function that may raise an error about a field; return its message.
function attempt(act) {
  try { act(); } catch (error) { return error.message; }
  return null;
}

const addTrial = study => opened("An experiment that was not planned", study, ({space, contexts, rows: candidates}) => {
  const row = select(candidates ?? []), params = space.map(each => [each.name, controlOf(each, Boolean(each.when))]);
  const around = contexts.map(each => [each.name, controlOf(each)]);
  const values = namesOf(study).map(name => [name, input("text", "", {inputMode: "decimal"})]);
  const point = candidates ? [field("Candidate", row)] : params.map(([name, control]) => field(name, control.element));
  const made = form(null, [...point, ...around.map(([name, control]) => field(name, control.element)),
    ...values.map(([name, box]) => field(`${titleOf(name)} (may be empty)`, box))], "Add the experiment", () => attempt(() => {
    const found = values.filter(([, box]) => box.value.trim() !== "")
      .map(([name, box]) => [name, numberOf(box.value, titleOf(name))]);
    const fields = {params: candidates ? row.chosen() : filledIn(params)};
    const beyond = candidates ? [] : space.filter(each => typeof each.low === "number" && each.name in fields.params
      && (fields.params[each.name] < each.low || fields.params[each.name] > each.high));
    const key = JSON.stringify(fields.params);
    if (beyond.length && made.agreed !== key) {
      made.agreed = key;
      const parts = beyond.map(each => `${isolated(each.name)} is not in the range from ${format(each.low)} to ${format(each.high)}`);
      throw new Error(`${parts.join(", and ")}. If this point was run, add it again.`);
    }
    if (found.length) fields.value = found[0][0] === "" ? found[0][1] : Object.fromEntries(found);
    if (around.length) fields.context = filledIn(around);
    const text = Object.entries(candidates ? {candidate: fields.params} : fields.params)
      .map(([name, value]) => `${isolated(name)} = ${isolated(cellText(value))}`).join(", ");
    closeDialog();
    submit(newEntry(study, null, null, "add", fields, `experiment at ${text}`));
  }));
  openDialog("An experiment that was not planned", made);
});

// Return the wells in a text: names, and ranges such as A1-B12, row by row.
function wellsIn(text) {
  return text.split(/[\s,;]+/).filter(Boolean).flatMap(each => {
    const range = /^([A-Z])(\d+)-([A-Z])(\d+)$/i.exec(each.toUpperCase()), found = [];
    if (!range) return [each];
    for (let row = range[1].charCodeAt(0); row <= range[3].charCodeAt(0); row++) {
      for (let column = Number(range[2]); column <= Number(range[4]) && found.length < 1000; column++)
        found.push(`${String.fromCharCode(row)}${column}`);
    }
    return found;
  });
}

const SECONDS = [["hours", 3600], ["days", DAY], ["minutes", 60]];

const nextPlate = study => opened("Next plate", study, ({space, contexts, fidelity}) => {
  const n = input("number", "1", {min: 1, max: 100, required: true}), wells = input("textarea");
  const lease = input("text", "", {inputMode: "decimal"}), unit = select(SECONDS);
  const fixed = space.map(each => [each, controlOf(each, true, true)]);
  const around = contexts.map(each => [each, controlOf(each, false, true)]);
  const degree = fidelity && {...fidelity, name: "Fidelity"}, level = degree && controlOf(degree, true, true);
  const shared = space.map(({name}) => [name, input("checkbox")]);
  wells.addEventListener("input", () => { n.value = String(wellsIn(wells.value).length || 1); });
  unit.setAttribute("aria-label", "Unit of the time");
  const leaseField = field("Results are expected within (may be empty)", lease);
  leaseField.append(unit);
  const parts = [field("Number of trials", n), field("Wells, such as A1-B12 or A1, A3 (may be empty)", wells), leaseField,
    ...(level ? [field(`${rangeLabel(degree)}, may be empty`, level.element)] : []),
    ...around.map(([each, control]) => field(rangeLabel(each), control.element))];
  const same = shared.map(([name, box]) => field(name, box));
  if (space.length) {
    const held = fixed.map(([each, control]) => field(rangeLabel(each), control.element));
    parts.push(group("fieldset", "", element("legend", "Fixed values (may be empty)"), ...held),
      group("fieldset", "ticks", element("legend", "One value in all of these trials"), ...same));
  }
  const made = form(null, parts, "Start the trials", () => attempt(() => {
    const found = wellsIn(wells.value), fields = {n: Math.trunc(numberOf(n.value, "Number of trials"))};
    if (found.length && found.length !== fields.n)
      throw new Error(`There are ${count(found.length, "well")} for ${count(fields.n, "trial")}.`);
    if (new Set(found).size < found.length) throw new Error("A well is there twice.");
    if (found.length) fields.attrs = found.map(well => ({well}));
    if (lease.value.trim() !== "") fields.expires_after = numberOf(lease.value, "Results are expected within") * unit.chosen();
    const named = list => filledIn(list.map(([each, control]) => [each.name, control]));
    const values = named(fixed), degreeOf = level?.value(), names = shared.filter(([, box]) => box.checked).map(([name]) => name);
    if (Object.keys(values).length) fields.fixed = values;
    if (names.length) fields.shared = names;
    if (around.length) fields.context = named(around);
    if (degreeOf !== undefined) fields.fidelity = degreeOf;
    closeDialog();
    submit(newEntry(study, null, null, "suggest", fields, count(fields.n, "new trial")));
  }));
  openDialog("Next plate", made);
});

find("next").addEventListener("click", () => nextPlate(latest.study));
find("off-plan").addEventListener("click", () => addTrial(latest.study));
