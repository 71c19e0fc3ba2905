"use strict";
// The human player's input: selection, orders, hot keys; and the connection to the server.

const FINGER = 16;  // pixels around a tap in which a unit counts as hit

let lastClick = {time: 0, tag: 0};

function select(tags) {
  if (tags.length > MOST) say(`at most ${MOST} units can be selected`);
  selected = [...new Set(tags)].slice(0, MOST);
  aiming = null;
  showSelected();
  showCommands();
}

function order(functionIndex, extra, shift) {
  post("/order", {function: functionIndex, units: selected, queued: queue || shift, repeat,
                  ...extra});
}

function choose(command, shift = false) {  // at once, or at the next click's target
  const {quick} = command.functions;
  if (!ready(command)) say(`${command.label}: ${reasonOf(command)}`);
  else if (quick !== undefined) order(quick, {}, shift);
  else aiming = aiming === command ? null : command;
  showCommands();
}

function aimAt(command, x, y, shift) {
  const {point, unit} = command.functions;
  const target = near(x, y, row => command.gas ? row.type === GEYSER : true);
  if (unit !== undefined && target) order(unit, {target: target.tag}, shift);
  else if (point !== undefined) order(point, {x, y}, shift);
  else return say(`${command.label}: click on its target`);
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
  const touches = event.pointerType === "touch";
  pointer = at;
  slack = touches ? FINGER / at.size : 0;
  if (touches) showTouch();
  if (touches && tapCommands && !aiming) {
    if (selected.length) aimAt(SMART, x, y, false);
    else say("select units first");
  } else if (event.button === 2) {
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
    // Fighters take precedence over workers, units over structures.
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

const selectArmy = () => select(own().filter(row => typeOf(row).fighter && !typeOf(row).structure)
  .map(({tag}) => tag));
const selectIdle = () => select(own().filter(row => typeOf(row).worker && !row.orders.length)
  .map(({tag}) => tag));

function cancel() {
  aiming = null;
  post("/control", {drop: true});
  showCommands();
}

const setSpeed = i => post("/control", {speed: SPEEDS[i]});

// The game may have begun at a speed without a button.
function changeSpeed(up) {
  const others = SPEEDS.filter(speed => up ? speed > frame.speed : speed < frame.speed);
  if (others.length) post("/control", {speed: up ? others[0] : others.at(-1)});
}

function pressedKey(event) {
  if (!frame || frame.over || event.metaKey || event.altKey) return;
  const letter = event.key.toLowerCase(), digit = /^Digit([1-9])$/.exec(event.code);
  const actions = {
    " ": () => post("/control", {paused: !frame.paused}),
    escape: cancel,
    "+": () => changeSpeed(true), "=": () => changeSpeed(true), "-": () => changeSpeed(false),
    q: selectArmy, w: selectIdle,
    z: () => { repeat = repeat % 3 + 1; }};
  if (digit) {
    if (event.ctrlKey) groups[digit[1]] = selected.slice();
    else select(groups[digit[1]] || []);
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

const markTap = choice($("tap"), ["selects", "commands"], i => setTap(i === 1));

function setTap(commands) {  // what a finger's tap on the map does
  tapCommands = commands;
  markTap(Number(commands));
}

function showTouch() {  // the buttons in place of the right mouse button and of keys
  $("touch").hidden = $("touchhelp").hidden = false;
  document.body.classList.add("touch");
}

function makeButtons() {
  setTap(false);
  if (matchMedia("(pointer: coarse)").matches) showTouch();
  $("army").onclick = selectArmy;
  $("workers").onclick = selectIdle;
  $("cancel").onclick = cancel;
  $("title").append(element("b", "", `you (${setup.race})`), " vs ",
                    element("i", "", setup.names[1]));
  $("repeats").title = "repeat: units trained by one order";
  $("queue").onclick = () => { queue = !queue; showCommands(); };
  $("pause").onclick = () => post("/control", {paused: !frame.paused});
  $("leave").onclick = () => post("/control", {leave: true});
  for (const button of document.querySelectorAll("header button")) button.tabIndex = -1;
}

async function listen() {  // requests frames until the game is over
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
  $("banner").replaceChildren("No connection",
                              element("small", "", "the game's program has ended"));
  $("banner").hidden = false;
}

makeButtons();
$("map").addEventListener("pointerdown", pressedMap);
$("map").addEventListener("pointermove", movedMap);
$("map").addEventListener("pointerup", releasedMap);
$("map").addEventListener("pointercancel", () => { drag = null; });
$("map").addEventListener("pointerleave", () => { if (!drag) pointer = null; });
$("map").addEventListener("contextmenu", event => event.preventDefault());
document.addEventListener("keydown", pressedKey);
requestAnimationFrame(draw);
listen();
