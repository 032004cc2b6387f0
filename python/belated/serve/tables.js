"use strict";
// Tables that a person pastes into the worklist, and CSV files.

// Return the cells of a text, whose cells may be in quotes; raise an error if a quotation mark is at a wrong place.
function cellsIn(text, separator) {
  const found = [[]], plain = text.replace(/\r(?=\n|$)/g, "");
  let cell = "", isQuoted = false, isStart = true, isClosed = false;
  const end = () => { found.at(-1).push(cell); cell = ""; isStart = true; isClosed = false; };
  for (let i = 0; i < plain.length; i++) {
    const each = plain[i];
    if (isQuoted) {
      if (each !== '"') cell += each;
      else if (plain[i + 1] === '"') { cell += each; i++; } else { isQuoted = false; isClosed = true; }
    } else if (each === '"' && isStart) { isQuoted = true; isStart = false; }
    else if (each === separator) end();
    else if (each === "\n") { end(); found.push([]); }
    else if (isClosed && each !== " ") throw new Error(`Row ${found.length} has text after a closing quotation mark.`);
    else if (!isClosed) { cell += each; isStart = false; }
  }
  if (isQuoted) throw new Error(`Row ${found.length} has no closing quotation mark.`);
  end();
  if (found.at(-1).join("") === "" && found.at(-1).length === 1) found.pop();  // the text ends with a line break
  return found;
}

// Return a table that scrolls. Each row has the texts of its cells, and the last entry may be the class of the row.
function listTable(label, titles, lines) {
  const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  head.append(...titles.map(text => Object.assign(element("th", text), {scope: "col"})));
  for (const cells of lines) {
    const row = body.insertRow();
    row.append(...cells.slice(0, titles.length).map(text => element("td", String(text))));
    row.className = cells[titles.length] ?? "";
  }
  return Object.assign(group("div", "scroll", table), {tabIndex: 0, role: "region", ariaLabel: label});
}

const hasText = row => row.some(each => each.trim() !== "");

// Return the separator of a file: the most frequent one in its first line.
function separatorOf(text) {
  const line = text.split("\n", 1)[0].replace(/"[^"]*"/g, ""), n = each => line.split(each).length;
  return [";", "\t", ","].sort((a, b) => n(b) - n(a))[0];
}

// Return the text of a file in UTF-8, UTF-16 or Windows-1252.
function decoded(buffer) {
  const bytes = new Uint8Array(buffer), isWide = bytes[0] + bytes[1] === 0xfe + 0xff && Math.abs(bytes[0] - bytes[1]) === 1;
  if (isWide) return new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-16be").decode(buffer);
  try { return new TextDecoder("utf-8", {fatal: true}).decode(buffer); }
  catch { return new TextDecoder("windows-1252").decode(buffer); }
}

// Several cells that are pasted into a box.

async function pasteInto(study, box, event) {
  const refuse = reason => { event.preventDefault(); openDialog("Nothing was pasted", element("p", reason)); };
  let grid, hidden;
  try { grid = cellsIn(event.clipboardData.getData("text/plain"), "\t"); } catch (error) { refuse(error.message); return; }
  if (grid.length < 2 && (grid[0] ?? []).length < 2) return;
  event.preventDefault();
  try { hidden = await hiddenTrials(study); } catch (error) { refuse(error.message); return; }
  const {lines, reason} = planOf(study, box.outcome, grid, hidden);
  if (reason) { refuse(reason); return; }
  showPlan(study, lines);
}

// Return whether a cell of a block has a value of a trial. Files of the worklist have a quote before some texts.
function isEqual(given, value) {
  if (typeof value === "number" && given !== "" && Number(given.replace(",", ".")) === value) return true;
  return [given, given.replace(/^'(?=[=+\-@])/, "")].includes(String(value ?? "").trim());
}

// Return whether a cell of a block contradicts a value of a trial. Spreadsheets round numbers, and trials are kept
// without long texts.
function isOther(given, value) {
  if (given === "" || isEqual(given, value) || (value === undefined && given.length > 40)) return false;
  const plain = given.replace(",", "."), digits = plain.split(".")[1]?.length ?? 0;
  return typeof value !== "number" || Number(value.toFixed(Math.min(digits, 100))) !== Number(plain);
}

// Return a line {number, well, outcome, text, reason} for each cell with a value, or why the cells cannot be used.
function planOf(study, outcome, grid, hidden) {
  const inOrder = [...find("worklist").tBodies[0].rows].map(row => [...rows.values()].find(each => each.row === row).trial);
  const columnNames = name => name === "" ? [["value", ""]] : [[name, name], [`outcome_${name}`, name]];
  const outcomes = new Map(namesOf(study).flatMap(columnNames));
  const wells = columns.filter(([kind]) => kind === "well"), start = Math.max(0, grid.findIndex(hasText));
  const head = grid[start].map(each => each.trim()), isNumber = name => ["number", "trial"].includes(name.toLowerCase());
  const wellOf = name => wells.find(each => `attrs_${each[1]}` === name || (each[1] === name && !outcomes.has(name)
    && !(isNumber(name) && head.includes(`attrs_${name}`))));
  const used = new Set(), line = (trial, given, name, text, wrong) => {
    const box = trial && rows.get(trial.number)?.boxes.get(name), key = `${trial?.number} ${name}`;
    let reason = null;
    if (!trial) reason = `${given} is not in the worklist`;
    else if (wrong) reason = wrong;
    else if (!rows.has(trial.number)) reason = "its row is not shown in the worklist: show more rows, and paste again";
    else if (!box) reason = "this trial has a result already";
    else if (used.has(key)) reason = "it is there twice";
    else if (text.length > 100) reason = "the text is too long";
    if (!wrong) used.add(key);
    const well = trial ? wells.map(each => each[2](trial) ?? "").join(" ") : given;
    return {number: trial?.number ?? "–", well, name, text, reason, replaced: box?.value ?? ""};
  };
  if (!head.some(name => isNumber(name) || wellOf(name) || outcomes.has(name))) {
    if (grid.some(row => row.length > 1))
      return {reason: "Copy the block with its first line, which has the names of the columns: number or well, and the outcomes."};
    // A column may have empty cells; empty cells below the last row of the worklist are left out.
    while (grid.length > inOrder.length && !hasText(grid.at(-1))) grid.pop();
    const [n, shownRows] = [count(grid.length, "cell"), count(inOrder.length, "row")];
    if (grid.length !== inOrder.length) {
      return {reason: `The column has ${n}, and the worklist shows ${shownRows}. Copy it with a column number or well, `
        + "and with the names of the columns."};
    }
    return {lines: grid.map(([text], i) => line(inOrder[i], "", outcome, text.trim())).filter(each => each.text !== "")};
  }
  for (const name of head.filter(isNumber)) {
    const prefixed = wellOf(name) ? `attrs_${name}` : `outcome_${name}`;
    if ((wellOf(name) || outcomes.has(name)) && !head.includes(prefixed))
      return {reason: `The column ${name} may have numbers of trials or other values: call it ${prefixed}.`};
  }
  const byNumber = head.findIndex(isNumber), byWell = head.findIndex(wellOf), byStudy = head.indexOf("study_id");
  const filled = head.map((name, i) => [outcomes.get(name), i]).filter(([name, i]) => name !== undefined && i !== byNumber);
  if (byNumber < 0 && byWell < 0)
    return {reason: "The block has neither a column number nor a column of the worklist such as well."};
  if (!filled.length) return {reason: `The block has no column with one of these names: ${[...outcomes.keys()].join(", ")}.`};
  const lines = [];
  for (const row of grid.slice(start + 1)) {
    const cell = i => (row[i] ?? "").trim(), given = cell(byNumber >= 0 ? byNumber : byWell);
    const isMeant = trial => byNumber >= 0 ? /^\d+$/.test(given) && Number(given) === trial.number
      : given !== "" && isEqual(given, wellOf(head[byWell])[2](trial));
    const found = [...inOrder, ...hidden].filter(isMeant);
    if (found.length > 1) return {reason: `${given} is in several rows of the worklist: copy the column number, too.`};
    // The other columns of the block must agree with the trial.
    const [trial] = found, isWrong = (name, i) => trial && wellOf(name) && isOther(cell(i), wellOf(name)[2](trial));
    const differing = head.findIndex(isWrong);
    let wrong = null;
    if (byStudy >= 0 && cell(byStudy) !== "" && cell(byStudy) !== idOf(study)) wrong = "the row is of another study";
    else if (differing >= 0) {
      const [, name, of] = wellOf(head[differing]);
      const present = isolated(of(trial) ?? "empty");
      wrong = `${isolated(name)} is ${isolated(cell(differing))} in the block, and ${present} in the worklist`;
    }
    for (const [name, i] of filled) {
      if (cell(i) !== "") lines.push(line(trial, given, name, cell(i), wrong));
    }
  }
  return {lines};
}

// Show what would be filled in, and fill it in after a confirmation.
async function showPlan(study, lines) {
  const usable = lines.filter(each => each.reason === null), hasWells = lines.some(each => each.well !== "");
  const region = listTable("Cells", ["Trial", ...(hasWells ? ["Well"] : []), "Outcome", "Value", ""], lines.map(each => {
    const note = each.reason ? `left out: ${each.reason}` : each.replaced ? `in place of ${each.replaced}` : "";
    return [each.number, ...(hasWells ? [each.well] : []), titleOf(each.name), each.text, note, each.reason ? "wrong" : ""];
  }));
  const answers = usable.length ? [[`Fill ${count(usable.length, "box", "boxes")}`, true]] : [];
  if (!await choose(`Paste ${count(usable.length, "value")}`, [region], answers)) return;
  if (latest?.study.study_id !== study.study_id) {
    openDialog("Nothing was pasted", element("p", "Another study is shown now."));
    return;
  }
  const filled = [];
  for (const {number, name, text} of usable) {
    const box = rows.get(number)?.boxes.get(name);
    if (!box || box.disabled) continue;
    box.value = text;
    write(study, box, text);
    filled.push(box);
  }
  for (const box of filled) { const entry = entryOf(box); if (entry && !await readBox(entry, box.outcome)) break; }
}

// CSV files: a summary, and one confirmation.

// Return whether bytes are a workbook: a ZIP archive, or the format of Excel before 2007.
const isWorkbook = bytes => ["PK", "\xd0\xcf"].includes(String.fromCharCode(...bytes.slice(0, 2)));

async function openFile(study, file) {
  const refuse = reason => openDialog("Open a CSV file", element("p", `${isolated(file.name)} ${reason}`));
  const buffer = await file.arrayBuffer();
  if (/\.(xls[xmb]?|ods)$/i.test(file.name) || isWorkbook(new Uint8Array(buffer)))
    return refuse("is a workbook: save it as CSV, and open that file.");
  // A first line "sep=;" is for spreadsheets.
  const text = decoded(buffer).replace(/^sep=(.)\r?\n/i, "");
  let grid;
  try { grid = cellsIn(text, separatorOf(text)); }
  catch (error) { return refuse(`cannot be read. ${error.message}`); }
  const start = grid.findIndex(hasText), body = grid.slice(start + 1);
  if (!body.some(hasText)) return refuse("has no rows below the names of its columns.");
  const fields = {...compact(grid[start], body), amend: false, moved: false, decimal: null};
  return summarize(study, {fields, name: file.name, start}, "");
}

// Return the columns and rows of a table without empty cells at the ends of rows; empty columns become the last ones.
function compact(head, body) {
  const width = Math.max(head.length, ...body.map(row => row.length)), order = [];
  const isUsed = i => body.some(row => (row[i] ?? "").trim() !== "");
  for (let i = 0; i < width; i++) order.push([isUsed(i) ? 0 : 1, i]);
  order.sort((a, b) => a[0] - b[0]);
  const rows = body.map(row => {
    const cells = order.map(([, i]) => row[i] ?? "");
    while (cells.length && cells.at(-1).trim() === "") cells.pop();
    return cells;
  });
  return {columns: order.map(([, i]) => head[i] ?? ""), rows};
}

// Return what a table would change: the values, the cells that are refused, and what else is stored.
function changesOf(summary, start) {
  const part = each => JSON.stringify([each.number, each.outcome]), marks = new Map(summary.marked.map(each => [part(each), each]));
  const wells = each => Object.values(each.attrs).map(isolated).join(" "), hasWells = summary.changes.some(wells);
  const shown = value => value === null ? "–" : typeof value === "number" ? format(value, 15) : value;
  const lines = summary.changes.map(each => {
    const mark = marks.get(part(each)), note = mark ? `marked: ${rangeOf({...mark, outcome: null})}` : "";
    return [each.number, ...(hasWells ? [wells(each)] : []), isolated(titleOf(each.outcome ?? "")), shown(each.stored),
      shown(each.value), note, mark ? "far" : ""];
  });
  const cut = text => text.length > 60 ? `${text.slice(0, 60)}…` : text;
  const refused = summary.refused.map(each => [each.row + start, each.number ?? "–", isolated(each.column),
    isolated(cut(each.cell ?? "")), isolated(each.stored ?? "–"), each.reason, "wrong"]);
  const trialsIn = numbers => count(numbers.length, "trial") + (numbers.length > 20 ? "" : `: ${numbers.join(", ")}`);
  const more = [["Run at another point", summary.moved], ["New remarks or attributes", summary.noted]]
    .filter(([, numbers]) => numbers.length).map(([what, numbers]) => `${what}, ${trialsIn(numbers)}`);
  if (summary.ignored.length) more.push(`Columns that are not read: ${summary.ignored.map(isolated).join(", ")}`);
  return [element("p", summary.text.split("\n", 1)[0], "summary"),
    ...(lines.length ? [element("h3", "Values to store"),
      listTable("Values to store", ["Trial", ...(hasWells ? ["Well"] : []), "Outcome", "Present value", "New value", ""], lines)] : []),
    ...(refused.length ? [element("h3", "Cells that are refused"),
      listTable("Cells that are refused", ["Row", "Trial", "Column", "Cell", "Present value", "Reason"], refused)] : []),
    ...more.map(text => element("p", text))];
}

const NO_NUMBER = 'The file has no column "number". Fill in the file of "Download worklist (CSV)", or copy the cells with a '
  + 'column "well" and paste them into a box.';

// Show what a table would change, after a dry run. `start` is the number of lines of the file before the names.
async function summarize(study, {fields, name, start}, note) {
  const path = `${pathOf(study.name)}/table?study_id=${study.study_id}`, title = `Values of ${isolated(name)}`;
  let summary = null, reason = null;
  openDialog(title, element("p", "The table is read …"));
  try { summary = await ask(path, {...fields, dry_run: true}); }
  catch (error) { reason = error.status === 422 && !fields.columns.includes("number") ? NO_NUMBER : error.message; }
  if (!find("dialog").open || find("dialog-title").textContent !== title) return;
  const again = changes => summarize(study, {fields: {...fields, ...changes}, name, start}, "");
  const amend = input("checkbox", "", {checked: fields.amend}), moved = input("checkbox", "", {checked: fields.moved});
  const decimal = select([["as the file shows it", null], ["comma", ","], ["point", "."]]);
  decimal.value = String([null, ",", "."].indexOf(fields.decimal));
  amend.addEventListener("change", () => again({amend: amend.checked}));
  moved.addEventListener("change", () => again({moved: moved.checked}));
  decimal.addEventListener("change", () => again({decimal: decimal.chosen()}));
  const content = [element("p", note), element("p", reason ?? "", "reason"), field("Replace earlier values", amend),
    field("Many rows were run at other points than suggested", moved), field("Decimal separator", decimal)];
  if (summary) content.splice(1, 0, ...changesOf(summary, start));
  const n = summary ? summary.new.length + summary.corrected.length : 0;
  const rest = summary ? summary.noted.length + summary.moved.length : 0;
  const label = `${count(n, "value")} of ${isolated(name)}`;
  const isSure = await choose(title, content, n + rest ? [[n ? `Store ${count(n, "value")}` : "Store", true]] : []);
  if (!isSure) return;
  submit({...newEntry(study, null, summary.events, "table", {...fields, dry_run: false}, label), file: {name, start}});
}

// Show a new summary of a table whose trials have changed since the former summary.
function summarizeAgain(entry) {
  drop(entry);
  drawEntries();
  const {dry_run, ...fields} = entry.fields, study = {name: entry.study, study_id: entry.study_id, revision: entry.revision};
  summarize(study, {fields, ...entry.file}, "Trials of the table have changed since the last summary. Nothing was stored yet.");
}

find("open-file").addEventListener("click", () => find("file").click());
find("file").addEventListener("change", () => {
  const [file] = find("file").files;
  if (file) openFile(latest.study, file);
  find("file").value = "";
});
// Without these functions, the browser would leave the page and show the file.
const carriesFile = event => [...event.dataTransfer.types].includes("Files");
document.addEventListener("dragover", event => { if (carriesFile(event)) event.preventDefault(); });
document.addEventListener("drop", event => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (!file || !latest || !user) return;
  if (may("work")) openFile(latest.study, file);
  else openDialog("Open a CSV file", element("p", "Storing a table needs the role work."));
});
