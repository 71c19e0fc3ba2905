"use strict";
// The panels beside the map: resources, selection, orders.

const markSpeed = choice($("speeds"), SPEEDS.map(value => `${value}×`), i => setSpeed(i));
const markRepeat = choice($("repeats"), [1, 2, 3].map(count => `× ${count}`), i => {
  repeat = i + 1;
  showCommands();
});

function mine(kinds) {  // whether a selected unit is of one of these types
  return selected.some(tag => kinds.includes(byTag(tag).type));
}

const ready = command => Object.values(command.functions).some(i => frame.can.includes(i));
const shownCommands = () => commands.filter(command => command.key && mine(command.capable));

function figure(id, label, value, short) {
  $(id).replaceChildren(element("small", "", label), String(value));
  $(id).classList.toggle("short", !!short);
}

let shownKey = "";

function showPanels() {
  const {player} = frame;
  figure("minerals", "minerals", player.minerals);
  if (setup.geyserVespene) figure("vespene", "vespene", player.vespene);
  figure("supply", "supply", `${player.food_used}/${player.food_cap}`,
         player.food_used >= player.food_cap);
  figure("idle", "idle workers", player.idle_worker_count);
  $("idle").hidden = !player.idle_worker_count;
  $("clock").textContent = frame.clock;
  $("waiting").textContent = frame.waiting ? `${frame.waiting} waiting` : "";
  $("pause").setAttribute("aria-pressed", frame.paused);
  markSpeed(SPEEDS.indexOf(frame.speed));
  $("upgrades").hidden = !frame.upgrades.length;
  $("upgrades").replaceChildren(...frame.upgrades.map(name => element("span", "chip", name)));
  if (frame.over || frame.paused) {
    $("banner").replaceChildren(frame.over || "Paused", element("small", "", frame.over
      ? `at ${frame.clock}; the replay is saved` : "space or the button resumes"));
  }
  $("banner").hidden = !(frame.over || frame.paused);
  showSelected();
  showCommands();
}

function showSelected() {
  const rows = selected.map(byTag), counts = new Map();
  for (const row of rows) counts.set(row.type, (counts.get(row.type) || 0) + 1);
  const title = element("h2", "", rows.length ? `${rows.length} selected` : "Nothing selected");
  const kinds = element("div", "kinds");
  for (const [kind, count] of counts) {
    const button = element("button", "", `${types[kind].name}${count > 1 ? ` × ${count}` : ""}`);
    button.onclick = () => select(selected.filter(tag => byTag(tag).type === kind));
    kinds.append(button);
  }
  const lines = [];
  if (rows.length === 1) {
    const [row] = rows, doing = row.orders.map(order => setup.orders[order] || "another order");
    lines.push(describe(row).replace(`${typeOf(row).name} `, "health "));
    if (doing.length) lines.push(`${doing.join(", ")}${typeOf(row).structure
      ? ` (${row.progress}%${row.length > 1 ? `, ${row.length} in the queue` : ""})` : ""}`);
    if (row.workers[1]) lines.push(`${row.workers[0]} of ${row.workers[1]} workers`);
  }
  $("selected").replaceChildren(title, kinds, ...lines.map(line => element("p", "", line)));
}

// Why a command is unavailable; "" if it is available.
function reasonOf(command) {
  if (ready(command)) return "";
  const given = Object.values(command.functions).map(i => frame.reasons[i]).find(text => text);
  return given || "not possible now";
}

function commandButton(command) {
  const reason = reasonOf(command);
  const button = element("button", `${reason ? "no" : ""} ${aiming === command ? "aim" : ""}`);
  const prices = [command.minerals, command.vespene && `${command.vespene}g`,
                  command.food && `${command.food}f`].filter(price => price);
  const name = command.label.replace(/^(Build|Train|Research) /, "");
  button.append(element("kbd", "", command.key), element("span", "", name),
                element("small", "", prices.join(" ")));
  if (reason) button.append(element("em", "", reason));
  button.title = reason ? `${command.label}: ${reason}` : command.label;
  button.setAttribute("aria-disabled", Boolean(reason));
  button.onclick = () => choose(command);
  return button;
}

function showCommands() {
  const list = shownCommands();
  const key = JSON.stringify([list.map(({label}) => label), list.map(reasonOf),
                              aiming && aiming.label, repeat, queue]);
  if (key === shownKey) return;
  shownKey = key;
  $("commands").replaceChildren(...list.map(commandButton));
  if (!list.length) $("commands").append(element("small", "", "select units to see their orders"));
  markRepeat(repeat - 1);
  $("queue").setAttribute("aria-pressed", queue);
}
