"use strict";
// Requests, the token, and elements of the page. Names and values of studies become text nodes and attributes, never
// HTML.

const KEY = "belated-token", LAST = "belated-last-input", ROLES = ["read", "report", "work", "all"], LONGEST_REST = 8 * 3600 * 1000;
const find = id => document.getElementById(id);
// The storage of the tab keeps the token. Only the scripts of this page can read it. It is null if the browser has no
// storage; a reload then asks for the token again.
const storage = (() => { try { return sessionStorage; } catch { return null; } })();
let token = storage?.getItem(KEY) ?? null, user = null;
// When the user last typed or clicked; a reload of the page does not change this time.
let lastInput = Math.min(Date.now(), Number(storage?.getItem(LAST) ?? Date.now()));

class Problem extends Error {
  constructor(status, data) { super(data.detail); Object.assign(this, {status, trials: data.trials}); }
}

// Send a request, with a body by POST; return the answer.
async function ask(path, body) {
  const options = {headers: {Authorization: `Bearer ${token}`}, cache: "no-store"};
  if (body) {
    Object.assign(options, {method: "POST", body: JSON.stringify(body)});
    options.headers["Content-Type"] = "application/json";
  }
  let answer, data = null;
  try {
    answer = await fetch(path, options);
    data = await answer.json().catch(() => null);
  } catch { /* there is no answer */ }
  // A server that is killed may send a part of an answer.
  if (!answer || (answer.ok && data === null)) throw new Problem(0, {detail: "The server does not answer; trying again."});
  if (!answer.ok) throw new Problem(answer.status, data ?? {detail: `The server answered with ${answer.status}.`});
  return data;
}

const pathOf = name => `/v1/studies/${encodeURIComponent(name)}`;

// Return whether the role of the user has the rights of a role.
const may = role => user !== null && ROLES.indexOf(user.role) >= ROLES.indexOf(role);

// Return a name that no other request has. `crypto.randomUUID` exists only with TLS or on this machine.
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, "0")).join("");

function say(text, wrong = false) {
  const message = find("message");
  if (message.textContent !== text) message.textContent = text;
  message.className = wrong ? "wrong" : "";
}

// Return a text that does not change the direction of the text around it.
function isolated(text) {
  const plain = String(text);
  if (!/[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/.test(plain)) return plain;
  return `\u2068${plain.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd")}\u2069`;
}

const count = (n, noun, plural = `${noun}s`) => `${n} ${n === 1 ? noun : plural}`;

function element(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// Return an element that contains others.
function group(tag, kind, ...children) {
  const made = element(tag, "", kind);
  made.append(...children);
  return made;
}

function button(text, act, kind) {
  const made = element("button", text, kind);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Return a label with a control in it.
function field(text, control) {
  control.id ||= `field-${newKey()}`;
  const label = element("label", text);
  label.htmlFor = control.id;
  return group("div", "field", label, control);
}

function input(type, value = "", options = {}) {
  const made = document.createElement(type === "textarea" ? "textarea" : "input");
  if (type !== "textarea") made.type = type;
  made.value = value;
  return Object.assign(made, {autocomplete: "off"}, options);
}

// Return a list of choices; `choices` has pairs [text, value], and the element has the chosen value in `chosen()`.
function select(choices) {
  const made = document.createElement("select");
  made.append(...choices.map(([text], i) => new Option(text, String(i))));
  made.chosen = () => choices[Number(made.value)]?.[1];
  return made;
}

// The dialog. One is open at a time.

function openDialog(title, ...content) {
  const dialog = find("dialog");
  find("dialog-title").textContent = title;
  find("dialog-content").replaceChildren(...content);
  if (!dialog.open) dialog.showModal();
}

const closeDialog = () => find("dialog").close();

// Ask a question; return the value of the button that was pressed, or null. `answers` has pairs [text, value].
function choose(title, content, answers) {
  return new Promise(resolve => {
    const finish = value => { find("dialog").removeEventListener("close", cancel); closeDialog(); resolve(value); };
    // The event of a former dialog can arrive when this dialog is open.
    const cancel = () => { if (!find("dialog").open) finish(null); };
    openDialog(title, ...content, group("p", "buttons", ...answers.map(([text, value]) => button(text, () => finish(value))),
      button("Cancel", () => finish(null))));
    find("dialog").addEventListener("close", cancel);
  });
}
find("dialog-close").addEventListener("click", closeDialog);
