"use strict";
// A person's game of Skirmish: asks the server for pictures of what the person sees, draws them,
// and posts orders. Places are fractions of the map's side; tags name units for as long as they
// live.

const $ = id => document.getElementById(id);
const setup = JSON.parse($("setup").textContent);
const SELF = 1, ENEMY = 4, MINERALS = -1, SPEEDS = [0.5, 1, 2, 4], FADE = 1.6;
const {mapSize, types, commands} = setup, MOST = setup.most, FAR = 4 / mapSize;
const SMART = commands.find(({label}) => label === "Smart");

let frame = null, before = new Map(), arrived = 0, facing = new Map();
let selected = [], groups = {}, aiming = null, queue = false, repeat = 1, deaths = [], flashes = [];
let pointer = null, drag = null, messageUntil = 0, lastClick = {time: 0, tag: 0};

function element(tag, classes, text) {
  const made = document.createElement(tag);
  made.className = classes || "";
  if (text !== undefined) made.textContent = text;
  return made;
}

async function post(path, body) {
  const answer = await fetch(path, {method: "POST", body: JSON.stringify(body),
                                    headers: {"Content-Type": "application/json"}});
  if (!answer.ok) say((await answer.json()).error);
}

function say(text) {
  $("message").textContent = text;
  $("message").hidden = false;
  messageUntil = performance.now() + 2500;
}

// ---- What is seen ----

const own = () => frame.rows.filter(row => row.side === SELF);
const byTag = tag => frame.rows.find(row => row.tag === tag);
const typeOf = row => types[row.type];
const isResource = row => row.type < 0;
const stepMilliseconds = () => 1000 * setup.secondsPerStep / frame.speed;

function take(next) {
  const old = frame ? new Map(frame.rows.map(row => [row.tag, row])) : new Map();
  const now = performance.now();
  for (const row of next.rows) {
    const last = old.get(row.tag);
    if (isResource(row)) continue;
    const same = last && last.type === row.type;
    const moved = same ? Math.hypot(row.x - last.x, row.y - last.y) : 0;
    row.hurt = same && row.health + row.shield < last.health + last.shield;
    row.fired = same && row.cooldown > last.cooldown;
    if (moved > 0.002 && moved < FAR)
      facing.set(row.tag, Math.atan2(row.y - last.y, row.x - last.x));
    else if (!same) facing.set(row.tag, Math.atan2(0.5 - row.y, 0.5 - row.x));
  }
  const there = new Set(next.rows.map(row => row.tag)), cells = next.visibility.length;
  for (const [tag, row] of old) {
    if (there.has(tag) || isResource(row) || row.ghost) continue;
    const seen = next.visibility[Math.floor(row.y * cells)][Math.floor(row.x * cells)] === "2";
    if (row.side === SELF || seen)
      deaths.push({time: now, x: row.x, y: row.y, type: typeOf(row),
                   player: row.side === SELF ? 0 : 1});
  }
  before = old;
  frame = next;
  arrived = now;
  selected = selected.filter(tag => there.has(tag) && byTag(tag).side === SELF);
  if (frame.message) say(frame.message);
  showPanels();
}

function placed(row, part) {  // between the picture before and this one
  const last = before.get(row.tag);
  const near = last && last.type === row.type && Math.hypot(row.x - last.x, row.y - last.y) < FAR;
  if (!near) return [row.x, row.y];
  return [last.x + part * (row.x - last.x), last.y + part * (row.y - last.y)];
}

function thingsNow() {
  const part = Math.min(1, (performance.now() - arrived) / stepMilliseconds());
  return frame.rows.filter(row => !isResource(row) && !row.ghost).map(row => {
    const [x, y] = placed(row, part);
    return {
      row, x, y, type: typeOf(row), player: row.side === SELF ? 0 : 1, health: row.health,
      most: row.ratio ? Math.max(row.health, Math.round(row.health * 255 / row.ratio)) : 1,
      shield: row.shield, facing: facing.get(row.tag) || 0, hurt: row.hurt, fired: row.fired,
      stimmed: row.buff === "stimmed", boosted: row.buff === "boosted",
      injected: row.buff === "injected", minerals: row.buff === "minerals",
      vespene: row.buff === "vespene", built: row.built,
      product: typeOf(row).structure && row.orders.length, trained: row.progress};
  });
}

function shotsOf(shown) {
  const shots = [], hit = shown.filter(thing => thing.hurt && thing.player);
  for (const one of shown) {
    if (!one.fired) continue;
    const apart = thing => Math.hypot(thing.x - one.x, thing.y - one.y) * mapSize
      - thing.type.radius - one.type.radius;
    const best = hit.reduce((a, b) => !a || apart(b) < apart(a) ? b : a, null);
    if (best && apart(best) < one.type.reach + 1)
      shots.push({x: one.x, y: one.y, toX: best.x, toY: best.y, player: one.player});
  }
  return shots;
}

const terrain = setup.terrain && {
  cells: setup.terrain.high.length,
  passable: (row, column) => setup.terrain.passable[row][column] > 0,
  high: (row, column) => setup.terrain.high[row][column] > 0};

function draw() {
  requestAnimationFrame(draw);
  if (!frame) return;
  const now = performance.now(), shown = thingsNow(), cells = frame.visibility.length;
  deaths = deaths.filter(death => now - death.time < 1000 * FADE);
  flashes = flashes.filter(flash => now - flash.time < 600);
  const creep = [];
  frame.creep.forEach((line, row) => {
    for (let column = 0; column < line.length; column++)
      if (line[column] > 0) creep.push({x: (column + 0.5) / cells, y: (row + 0.5) / cells,
                                        radius: 0.8 * mapSize / cells});
  });
  const size = drawScene($("map"), {
    mapSize, terrain, creep, things: shown, shots: shotsOf(shown), scans: [], cells,
    shade: (row, column) => 2 - frame.visibility[row][column],
    ghosts: frame.rows.filter(row => row.ghost && !isResource(row))
      .map(row => ({type: typeOf(row), x: row.x, y: row.y, player: 1})),
    patches: frame.rows.filter(isResource).map(row => ({
      x: row.x, y: row.y, geyser: row.type !== MINERALS,
      share: row.contents / (row.type === MINERALS ? setup.patchMinerals : setup.geyserVespene)})),
    deaths: deaths.map(death => ({...death, age: (now - death.time) / (1000 * FADE)}))});
  drawOver(shown, size);
  if (now > messageUntil) $("message").hidden = true;
}

function drawOver(shown, size) {
  const [context] = sized($("over")), scale = size / mapSize, now = performance.now();
  context.clearRect(0, 0, size, size);
  for (const {row, x, y, type} of shown) {
    if (!selected.includes(row.tag)) continue;
    context.beginPath();
    context.arc(x * size, y * size, Math.max(7, type.radius * scale * 1.2), 0, 2 * Math.PI);
    context.strokeStyle = "#4ade80";
    context.lineWidth = 1.6;
    context.stroke();
  }
  for (const {x, y, time, colour} of flashes) {
    context.beginPath();
    context.arc(x * size, y * size, 4 + (now - time) / 40, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.stroke();
  }
  if (drag && drag.far) {
    context.fillStyle = "rgba(74, 222, 128, .12)";
    context.strokeStyle = "#4ade80";
    context.lineWidth = 1;
    const box = [drag.x, drag.y, pointer.x - drag.x, pointer.y - drag.y];
    context.fillRect(...box);
    context.strokeRect(...box);
  }
  if (aiming && pointer) drawAim(context, size, scale);
  showTip(shown, size);
}

function drawAim(context, size, scale) {
  const x = pointer.x / size, y = pointer.y / size;
  if (!aiming.building) {
    context.beginPath();
    context.arc(pointer.x, pointer.y, 9, 0, 2 * Math.PI);
    context.moveTo(pointer.x - 14, pointer.y);
    context.lineTo(pointer.x + 14, pointer.y);
    context.moveTo(pointer.x, pointer.y - 14);
    context.lineTo(pointer.x, pointer.y + 14);
    context.strokeStyle = "#facc15";
    context.lineWidth = 1.5;
    context.stroke();
    return;
  }
  const type = types[aiming.product], geyser = aiming.gas && near(x, y, row => row.type === -2);
  const at = geyser ? [geyser.x, geyser.y] : [x, y];
  const fits = aiming.gas ? !!geyser : canStand(x, y, type);
  context.globalAlpha = 0.7;
  structureShape(context, type, at[0] * size, at[1] * size, type.radius * scale,
                 fits ? "#4ade80" : "#f87171");
  context.globalAlpha = 1;
}

function canStand(x, y, type) {  // as far as the person can know
  const radius = type.radius / mapSize, ground = setup.terrain && setup.terrain.buildable;
  if (Math.min(x, y) < radius || Math.max(x, y) > 1 - radius) return false;
  for (const dx of [-0.8, 0, 0.8])
    for (const dy of ground ? [-0.8, 0, 0.8] : []) {
      const row = ground[Math.floor((y + dy * radius) * ground.length)];
      if (row && row[Math.floor((x + dx * radius) * ground.length)] === "0") return false;
    }
  if (setup.race === "zerg" && !type.creep) {
    const row = frame.creep[Math.floor(y * frame.creep.length)];
    if (!row || row[Math.floor(x * row.length)] !== "1") return false;
  }
  return frame.rows.every(row => {
    if (!isResource(row) && !typeOf(row).structure) return true;
    const other = (isResource(row) ? 1 : typeOf(row).radius) / mapSize;
    return Math.hypot(row.x - x, row.y - y) >= radius + other;
  });
}

function near(x, y, wanted) {  // the row nearest to a place, if the place lies on it
  let best = null, least = 1;
  for (const row of frame.rows) {
    if (!wanted(row)) continue;
    const radius = Math.max(0.8, isResource(row) ? 1.1 : typeOf(row).radius) / mapSize;
    const far = Math.hypot(row.x - x, row.y - y) / radius;
    // Units stand before structures: they are smaller.
    const rank = isResource(row) || typeOf(row).structure ? far : far * 0.5;
    if (far <= 1 && rank < least) [best, least] = [row, rank];
  }
  return best;
}

function describe(row) {
  if (isResource(row)) return `${row.type === MINERALS ? "minerals" : "vespene"} ${row.contents}`;
  let text = typeOf(row).name;
  if (row.ghost) return `${text}, as last seen`;
  text += ` ${row.health}`;
  if (typeOf(row).shield) text += ` + ${row.shield}`;
  if (row.energy) text += `, ${row.energy} energy`;
  if (row.built < 100) text += `, ${row.built}% built`;
  return text;
}

function showTip(shown, size) {
  const tip = $("tip"), shows = pointer && !drag;
  const row = shows && near(pointer.x / size, pointer.y / size, () => true);
  tip.hidden = !row;
  if (!row) return;
  tip.textContent = describe(row);
  tip.style.left = `${Math.min(pointer.x + 14, size - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(pointer.y + 16, size - tip.offsetHeight - 4)}px`;
}

// ---- Beside the map ----

function mine(kinds) {  // whether anybody selected is of these types
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
  [...$("speeds").children].forEach((button, i) =>
    button.setAttribute("aria-pressed", SPEEDS[i] === frame.speed));
  $("upgrades").hidden = !frame.upgrades.length;
  $("upgrades").replaceChildren(...frame.upgrades.map(name => element("span", "chip", name)));
  if (frame.over || frame.paused) {
    $("banner").replaceChildren(frame.over || "Paused", element("small", "", frame.over
      ? `at ${frame.clock}; the replay is saved` : "space goes on"));
  }
  $("banner").hidden = !(frame.over || frame.paused);
  showSelected();
  showCommands();
}

function showSelected() {
  const rows = selected.map(byTag), counts = new Map();
  for (const row of rows) counts.set(row.type, (counts.get(row.type) || 0) + 1);
  const title = element("h2", "", rows.length ? `${rows.length} selected` : "Nothing selected");
  const who = element("div", "who");
  for (const [kind, count] of counts) {
    const button = element("button", "", `${types[kind].name}${count > 1 ? ` × ${count}` : ""}`);
    button.onclick = () => select(selected.filter(tag => byTag(tag).type === kind));
    who.append(button);
  }
  const lines = [];
  if (rows.length === 1) {
    const [row] = rows, doing = row.orders.map(order => setup.orders[order] || "busy");
    lines.push(describe(row).replace(`${typeOf(row).name} `, "health "));
    if (doing.length) lines.push(`${doing.join(", ")}${typeOf(row).structure
      ? ` (${row.progress}%${row.length > 1 ? `, ${row.length} in the queue` : ""})` : ""}`);
    if (row.workers[1]) lines.push(`${row.workers[0]} of ${row.workers[1]} workers`);
  }
  $("selected").replaceChildren(title, who, ...lines.map(line => element("p", "", line)));
}

function showCommands() {
  const list = shownCommands();
  const key = JSON.stringify([list.map(({label}) => label), list.map(ready), aiming && aiming.label,
                              repeat, queue]);
  if (key === shownKey) return;
  shownKey = key;
  $("commands").replaceChildren(...list.map(command => {
    const button = element("button", `${ready(command) ? "" : "no"} ${
      aiming === command ? "aim" : ""}`);
    const prices = [command.minerals, command.vespene && `${command.vespene}g`,
                    command.food && `${command.food}f`].filter(price => price);
    const name = command.label.replace(/^(Build|Train|Research) /, "");
    button.append(element("kbd", "", command.key), element("span", "", name),
                  element("small", "", prices.join(" ")));
    button.title = command.label;
    button.onclick = () => choose(command);
    return button;
  }));
  if (!list.length) $("commands").append(element("small", "", "select somebody"));
  [...$("repeats").children].forEach((button, i) =>
    button.setAttribute("aria-pressed", i + 1 === repeat));
  $("queue").setAttribute("aria-pressed", queue);
}

// ---- What the person does ----

function select(tags) {
  if (tags.length > MOST) say(`${MOST} at most are selected at once`);
  selected = [...new Set(tags)].slice(0, MOST);
  aiming = null;
  showSelected();
  showCommands();
}

function order(functionIndex, extra, shift) {
  post("/order", {function: functionIndex, units: selected, queued: queue || shift, repeat,
                  ...extra});
}

function choose(command, shift = false) {  // at once, or aimed by the next click
  const {quick} = command.functions;
  if (!ready(command)) say(`${command.label}: not possible now`);
  else if (quick !== undefined) order(quick, {}, shift);
  else aiming = aiming === command ? null : command;
  showCommands();
}

function aimAt(command, x, y, shift) {
  const {point, unit} = command.functions;
  const target = near(x, y, row => command.gas ? row.type === -2 : true);
  if (unit !== undefined && target) order(unit, {target: target.tag}, shift);
  else if (point !== undefined) order(point, {x, y}, shift);
  else return say(`${command.label}: click on what it is for`);
  const colour = target && target.side === ENEMY ? "#f87171" : "#4ade80";
  flashes.push({x, y, time: performance.now(), colour});
}

function place(event) {
  const box = $("map").getBoundingClientRect();
  return {x: Math.min(Math.max(0, event.clientX - box.left), box.width - 1),
          y: Math.min(Math.max(0, event.clientY - box.top), box.height - 1), size: box.width};
}

function pressedMap(event) {
  if (!frame || frame.over) return;
  event.preventDefault();
  const at = place(event), x = at.x / at.size, y = at.y / at.size;
  pointer = at;
  if (event.button === 2) {
    if (aiming) aiming = null;
    else if (selected.length) aimAt(SMART, x, y, event.shiftKey);
    showCommands();
  } else if (event.button === 0 && aiming) {
    aimAt(aiming, x, y, event.shiftKey);
    if (!event.shiftKey) aiming = null;
    showCommands();
  } else if (event.button === 0) {
    drag = {...at, far: false};
    $("map").setPointerCapture(event.pointerId);
  }
}

function movedMap(event) {
  pointer = place(event);
  if (drag && Math.hypot(pointer.x - drag.x, pointer.y - drag.y) > 5) drag.far = true;
}

function releasedMap(event) {
  if (!drag || event.button !== 0) return;
  const at = place(event), size = at.size, {far} = drag;
  const [left, right] = [drag.x, at.x].sort((a, b) => a - b).map(value => value / size);
  const [top, bottom] = [drag.y, at.y].sort((a, b) => a - b).map(value => value / size);
  drag = null;
  let tags;
  if (far) {
    const inside = own().filter(({x, y}) => x >= left && x <= right && y >= top && y <= bottom);
    // Units before structures, fighters before workers.
    const units = inside.filter(row => !typeOf(row).structure);
    const army = units.filter(row => !typeOf(row).worker);
    tags = (army.length ? army : units.length ? units : inside).map(row => row.tag);
  } else {
    const row = near(at.x / size, at.y / size, ({side}) => side === SELF), now = performance.now();
    tags = row ? [row.tag] : [];
    if (row && lastClick.tag === row.tag && now - lastClick.time < 400)
      tags = own().filter(({type}) => type === row.type).map(({tag}) => tag);
    lastClick = {time: now, tag: row && row.tag};
  }
  select(event.shiftKey ? [...selected, ...tags] : tags);
}

function setSpeed(i) {
  post("/control", {speed: SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, i))]});
}

function pressedKey(event) {
  if (!frame || frame.over || event.metaKey || event.altKey) return;
  const letter = event.key.toLowerCase(), digit = /^Digit([1-9])$/.exec(event.code);
  const at = SPEEDS.indexOf(frame.speed);
  const actions = {
    " ": () => post("/control", {paused: !frame.paused}),
    escape: () => { aiming = null; post("/control", {drop: true}); },
    "+": () => setSpeed(at + 1), "=": () => setSpeed(at + 1), "-": () => setSpeed(at - 1),
    q: () => select(own().filter(row => typeOf(row).fighter && !typeOf(row).structure)
      .map(({tag}) => tag)),
    w: () => select(own().filter(row => typeOf(row).worker && !row.orders.length)
      .map(({tag}) => tag)),
    z: () => { repeat = repeat % 3 + 1; }};
  if (digit) {
    if (event.ctrlKey) groups[digit[1]] = selected.slice();
    else select((groups[digit[1]] || []).filter(tag => byTag(tag)));
  } else if (event.ctrlKey) {
    return;
  } else if (actions[letter]) {
    actions[letter]();
  } else {
    const command = shownCommands().find(({key}) => key === letter);
    if (!command) return;
    choose(command, event.shiftKey);
  }
  event.preventDefault();
  showCommands();
}

function makeButtons() {
  $("title").append(element("b", "", `you (${setup.race})`), " vs ",
                    element("i", "", setup.names[1]));
  SPEEDS.forEach((value, i) => {
    const button = element("button", "", `${value}×`);
    button.onclick = () => setSpeed(i);
    $("speeds").append(button);
  });
  for (let i = 1; i <= 3; i++) {
    const button = element("button", "", `× ${i}`);
    button.title = "repeat: units made by one order";
    button.onclick = () => { repeat = i; showCommands(); };
    $("repeats").append(button);
  }
  $("queue").onclick = () => { queue = !queue; showCommands(); };
  $("pause").onclick = () => post("/control", {paused: !frame.paused});
  $("leave").onclick = () => post("/control", {leave: true});
  for (const button of document.querySelectorAll("header button")) button.tabIndex = -1;
}

async function listen() {
  for (let failures = 0; failures < 5;) {
    try {
      const answer = await fetch(`/frame?after=${frame ? frame.index : -1}`);
      if (answer.status === 200) take(await answer.json());
      failures = 0;
      if (frame && frame.over) return;
    } catch (error) {
      failures++;
      await new Promise(done => setTimeout(done, 500));
    }
  }
  $("banner").replaceChildren("The game is gone", element("small", "", "its program has ended"));
  $("banner").hidden = false;
}

makeButtons();
$("map").addEventListener("pointerdown", pressedMap);
$("map").addEventListener("pointermove", movedMap);
$("map").addEventListener("pointerup", releasedMap);
$("map").addEventListener("pointerleave", () => { if (!drag) pointer = null; });
$("map").addEventListener("contextmenu", event => event.preventDefault());
document.addEventListener("keydown", pressedKey);
requestAnimationFrame(draw);
listen();
