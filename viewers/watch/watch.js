"use strict";
// Plays the recorded game: time, speed, view, keys.

const SPEEDS = [1, 2, 4, 8, 16], VIEWS = ["all", "player 1", "player 2"];

let playing = false, speed = 4, shownStep = -1, lastTime = 0;

function show() {
  const step = Math.min(Math.floor(now), game.steps);
  drawMap();
  drawCurve();
  drawValues();
  $("scrub").value = step;
  $("banner").hidden = now < game.steps;
  const time = clock(now);
  if ($("clock").firstChild.data !== time) $("clock").firstChild.data = time;
  if (step === shownStep) return;
  shownStep = step;
  showFigures(step);
  showLog(step);
  showPredictions(step);
}

const ICONS = {
  play: '<svg width="16" height="16"><path d="M4 2 L14 8 L4 14 Z"/></svg>',
  pause: '<svg width="16" height="16"><path d="M3 2h4v12H3zM9 2h4v12H9z"/></svg>'};

function setPlaying(value) {
  if (value && now >= game.steps) now = 0;
  playing = value;
  $("play").innerHTML = ICONS[playing ? "pause" : "play"];
  lastTime = performance.now();
  if (playing) requestAnimationFrame(tick);
  show();
}

function tick(time) {
  if (!playing) return;
  const seconds = Math.max(0, time - lastTime) / 1000 * speed;
  now = Math.min(game.steps, now + seconds / game.secondsPerStep);
  lastTime = time;
  if (now >= game.steps) setPlaying(false);
  else {
    show();
    requestAnimationFrame(tick);
  }
}

function go(step) {
  now = Math.min(game.steps, Math.max(0, step));
  show();
}

const markSpeed = choice($("speed"), SPEEDS.map(value => `${value}×`), i => setSpeed(i));
const markView = choice($("view"), VIEWS, i => setView(i));

function setSpeed(i) {
  speed = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, i))];
  markSpeed(SPEEDS.indexOf(speed));
}

function setView(i) {
  view = i;
  markView(i);
  show();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? 1 : 5 / game.secondsPerStep, at = Math.floor(now);
  const actions = {
    " ": () => setPlaying(!playing), ArrowLeft: () => go(at - far), ArrowRight: () => go(at + far),
    Home: () => go(0), End: () => go(game.steps),
    ArrowUp: () => setSpeed(SPEEDS.indexOf(speed) + 1),
    ArrowDown: () => setSpeed(SPEEDS.indexOf(speed) - 1),
    0: () => setView(0), 1: () => setView(1), 2: () => setView(2),
    h: () => toggleLayer(0), u: () => toggleLayer(1), c: () => toggleLayer(2)};
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
}

function fromAddress() {  // pauses at #t=SECONDS&view=0..2; false without a time
  const wanted = new URLSearchParams(location.hash.slice(1));
  const seconds = parseFloat(wanted.get("t")), seen = parseInt(wanted.get("view"));
  if (seen >= 0 && seen <= 2) setView(seen);
  if (!(seconds >= 0)) return false;
  setPlaying(false);
  go(seconds / game.secondsPerStep);
  return true;
}

function listen() {
  $("scrub").addEventListener("input", () => go(+$("scrub").value));
  $("play").addEventListener("click", () => setPlaying(!playing));
  for (const kind of ["pointerdown", "pointermove"])
    $("value").addEventListener(kind, event => {
      if (event.buttons) go(stepAt(event.offsetX, $("value").clientWidth));
    });
  for (const kind of ["pointermove", "pointerdown"])  // a tap moves no pointer
    $("map").addEventListener(kind, event => {
      pointer = {x: event.offsetX, y: event.offsetY};
      if (!playing) drawMap();
    });
  $("map").addEventListener("pointerleave", () => { pointer = null; drawMap(); });
  document.addEventListener("keydown", pressed);
  window.addEventListener("resize", show);
  window.addEventListener("hashchange", fromAddress);
}

async function main() {
  await load();
  makePanels();
  makePredictions();
  $("clock").append(clock(0), element("span", "", ` of ${clock(game.steps)}`));
  $("scrub").max = game.steps;
  listen();
  setSpeed(SPEEDS.indexOf(speed));
  setView(0);
  if (!fromAddress()) setPlaying(true);
}

main().catch(error => {
  $("banner").textContent = "This browser cannot show the game";
  $("banner").append(element("small", "", String(error)));
  $("banner").hidden = false;
});
