"use strict";
// Plays a game of Skirmish from the arrays in the page. Places are fractions of the map's side;
// `now` counts environment steps, with fractions: units are drawn between two steps' places.

const $ = id => document.getElementById(id);
const game = JSON.parse($("game").textContent);
const INK = ["#2563eb", "#d97706"], CLASS = ["one", "two"];
const SPEEDS = [1, 2, 4, 8, 16], VIEWS = ["all", "player 1", "player 2"];
const PLACES = 65535, SEEN = 2, FAR = 4 / game.mapSize, FADE = 5;
const figure = Object.fromEntries(game.figures.map((name, i) => [name, i]));
const RACES = {terran: "Terran", protoss: "Protoss", zerg: "Zerg"};
const BITS = {hurt: 1, seen: 2, fired: 4, stimmed: 8, boosted: 16, injected: 32, minerals: 64, vespene: 128};

let arrays, slots, structures, facing, explored, deaths;
let now = 0, playing = false, speed = 4, view = 0, shownStep = -1, lastTime = 0, pointer = null;

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const kinds = {uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array};
  const growth = new kinds[packed.type](await new Response(stream).arrayBuffer());
  // Time is the last axis of what is packed, and each value what it grew by: undo both.
  const total = packed.shape[0], each = growth.length / total, values = growth.slice();
  for (let i = 0; i < each; i++)
    for (let t = 0; t < total; t++)
      values[t * each + i] = growth[i * total + t] + (t ? values[(t - 1) * each + i] : 0);
  return values;
}

function clock(step) {
  const seconds = Math.floor(step * game.secondsPerStep + 1e-6);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function element(tag, classes, text) {
  const made = document.createElement(tag);
  made.className = classes || "";
  if (text !== undefined) made.textContent = text;
  return made;
}

// What follows from the arrays, once: where units look, what was ever seen, who died where.
function prepare() {
  const total = game.steps + 1, each = 2 * slots, {kind, x, y, visible} = arrays;
  facing = new Float32Array(total * each);
  deaths = [];
  for (let i = 0; i < each; i++) facing[i] = Math.atan2(PLACES / 2 - y[i], PLACES / 2 - x[i]);
  for (let t = 1; t < total; t++) {
    for (let i = 0; i < each; i++) {
      const a = (t - 1) * each + i, b = t * each + i;
      const dx = x[b] - x[a], dy = y[b] - y[a], moved = Math.hypot(dx, dy) / PLACES;
      const same = kind[a] === kind[b] && moved < FAR;
      facing[b] = same && moved > 1e-4 ? Math.atan2(dy, dx) : facing[a];
      if (kind[a] && !same)
        deaths.push({t: t - 1, x: x[a] / PLACES, y: y[a] / PLACES, type: game.types[kind[a]],
                     player: i < slots ? 0 : 1, seen: arrays.flags[a] & SEEN});
    }
  }
  explored = visible.slice();
  const words = visible.length / total;
  for (let i = words; i < explored.length; i++) explored[i] |= explored[i - words];
}

// ---- The map ----

function sees(player, flags) {  // whether the chosen view shows what is a player's
  return !view || view - 1 === player || (flags & SEEN) > 0;
}

function things(step, part) {  // structures and units, `part` of the way to the next step
  const found = [], each = 2 * slots, {kind, x, y, health, flags} = arrays;
  for (let player = 0; player < 2; player++) {
    for (let slot = 0; slot < slots; slot++) {
      const i = step * each + player * slots + slot;
      if (!kind[i] || !sees(player, flags[i])) continue;
      const j = step < game.steps ? i + each : i;
      const dx = x[j] - x[i], dy = y[j] - y[i];
      const moves = kind[j] === kind[i] && Math.hypot(dx, dy) < FAR * PLACES;
      const s = slot < structures ? (2 * step + player) * structures + slot : -1;
      found.push({
        player, type: game.types[kind[i]], health: health[i], shield: arrays.shield[i],
        facing: facing[i], hurt: flags[i] & BITS.hurt, fired: flags[i] & BITS.fired,
        stimmed: flags[i] & BITS.stimmed, boosted: flags[i] & BITS.boosted,
        injected: flags[i] & BITS.injected, minerals: flags[i] & BITS.minerals,
        vespene: flags[i] & BITS.vespene, x: (x[i] + (moves ? part * dx : 0)) / PLACES,
        y: (y[i] + (moves ? part * dy : 0)) / PLACES, built: s < 0 ? 100 : arrays.built[s],
        product: s < 0 ? 0 : arrays.product[s], trained: s < 0 ? 0 : arrays.trained[s]});
    }
  }
  return found;
}

function ghosts(step) {  // the enemy's structures that the chosen player remembers
  const found = [];
  for (let slot = 0; view && slot < structures; slot++) {
    const i = (2 * step + view - 1) * structures + slot, enemy = 2 - view;
    const seen = arrays.flags[(2 * step + enemy) * slots + slot] & SEEN;
    if (arrays.known_kind[i] && !seen)
      found.push({type: game.types[arrays.known_kind[i]], player: enemy,
                  x: arrays.known_x[i] / PLACES, y: arrays.known_y[i] / PLACES});
  }
  return found;
}

// Who shot at whom is not recorded: the nearest enemy that was hit and is within reach.
function shotsOf(shown) {
  const shots = [], hit = shown.filter(thing => thing.hurt);
  for (const shooter of shown) {
    if (!shooter.fired) continue;
    let best = null, least = Infinity;
    for (const thing of hit) {
      if (thing.player === shooter.player) continue;
      const apart = Math.hypot(thing.x - shooter.x, thing.y - shooter.y) * game.mapSize
        - thing.type.radius - shooter.type.radius;
      if (apart < least && apart < shooter.type.reach + 1) [best, least] = [thing, apart];
    }
    if (best) shots.push({x: shooter.x, y: shooter.y, toX: best.x, toY: best.y,
                          player: shooter.player});
  }
  return shots;
}

function scansOf(step) {
  const found = [];
  for (let player = 0; player < 2; player++) {
    const [x, y, left] = arrays.scan.subarray(3 * (2 * step + player), 3 * (2 * step + player) + 3);
    if (left && (!view || view - 1 === player))
      found.push({x: x / PLACES, y: y / PLACES, player, radius: game.scanRadius});
  }
  return found;
}

const terrain = game.terrain && {
  cells: game.terrain.high.length,
  passable: (row, column) => game.terrain.passable[row][column] > 0,
  high: (row, column) => game.terrain.high[row][column] > 0};

function drawMap() {
  const step = Math.min(Math.floor(now), game.steps);
  const places = view ? game.knownPatches[view - 1] : game.patches;
  const left = i => view ? arrays.known_patches[(2 * step + view - 1) * places.length + i]
    : arrays.patches[step * places.length + i];
  const [, , cells, words] = game.arrays.visible.shape;
  const first = (2 * step + view - 1) * cells * words;
  const shade = (row, column) => {
    const word = first + row * words + (column >> 5), bit = 1 << (column & 31);
    return arrays.visible[word] & bit ? 0 : explored[word] & bit ? 1 : 2;
  };
  const shown = things(step, now - step);
  const size = drawScene($("map"), {
    mapSize: game.mapSize, things: shown, ghosts: ghosts(step), cells, shade: view ? shade : null,
    terrain, shots: shotsOf(shown), scans: scansOf(step),
    creep: shown.filter(({type, built}) => type.creep && built === 100)
      .map(({x, y}) => ({x, y, radius: game.creepRadius})),
    patches: places.map(([x, y], i) => ({x, y, geyser: game.geysers[i], share: left(i)
      / (game.geysers[i] ? game.geyserVespene : game.patchMinerals)}))
      .filter(patch => patch.share > 0),
    deaths: deaths.map(death => ({...death, age: (now - death.t) / FADE}))
      .filter(({age, player, seen}) => age > 0 && age < 1 && sees(player, seen))});
  point(shown, size);
}

function point(shown, size) {  // what is under the pointer, named
  const tip = $("tip");
  tip.hidden = true;
  if (!pointer) return;
  let best = null, least = 1;
  for (const thing of shown) {
    const apart = Math.hypot(thing.x * size - pointer.x, thing.y * size - pointer.y);
    const near = apart / Math.max(9, thing.type.radius * size / game.mapSize);
    if (near < least) [best, least] = [thing, near];
  }
  if (!best) return;
  let text = `${best.type.name} ${best.health}/${Math.max(best.health, best.type.health)}`;
  if (best.type.shield) text += ` + ${best.shield}/${best.type.shield}`;
  if (best.built < 100) text += `, ${best.built}% built`;
  if (best.product) text += `, ${game.products[best.product]} ${best.trained}%`;
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.min(Math.max(4, best.x * size - tip.offsetWidth / 2),
                               size - tip.offsetWidth - 4)}px`;
  const below = best.y * size + best.type.radius * size / game.mapSize + 10;
  const above = best.y * size - tip.offsetHeight - 14;
  tip.style.top = `${below + tip.offsetHeight < size ? below : above}px`;
}

// ---- Beside the map ----

const hasGas = game.geysers.includes(true);
const CARDS = [["minerals", "minerals"], ["vespene", "vespene"], ["supply", "food_used"],
               ["workers", "workers"], ["army", "army"], ["destroyed", "destroyed"],
               ["mined", "mined"], ["mined gas", "mined_vespene"]]
  .filter(([, key]) => hasGas || !key.includes("vespene"));
const cells = [{}, {}], builds = [[], []], upgrades = [], logRows = [];

function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}

function makePanels() {
  game.players.forEach((name, player) => {
    const card = element("div", `card player ${CLASS[player]}`);
    const title = element("div", "name", name);
    title.append(element("small", "", `player ${player + 1}, ${RACES[game.races[player]] || "Terran"}`));
    const list = element("dl");
    for (const [label, key] of CARDS) {
      const pair = element("div");
      cells[player][key] = element("dd");
      pair.append(element("dt", "", label), cells[player][key]);
      list.append(pair);
    }
    card.append(title, list);
    for (const [step, who, what] of game.upgrades) {
      if (who !== player) continue;
      const chip = element("span", "chip", what);
      chip.hidden = true;
      upgrades.push({step, chip});
      card.append(chip);
    }
    $("players").append(card);

    const build = element("div", "card"), order = element("ol", "build");
    build.append(element("h2", "", `Build order of player ${player + 1}`), order);
    for (const [step, who, what] of game.builds) {
      if (who !== player) continue;
      const last = builds[player].at(-1);
      if (last && last.what === what) {
        last.steps.push(step);
        continue;
      }
      const row = element("li"), label = element("span");
      row.append(element("time", "", clock(step)), label);
      order.append(row);
      builds[player].push({what, steps: [step], row, label});
    }
    $("builds").append(build);
  });
  for (const [step, player, what, detail] of game.log) {
    const row = element("li", CLASS[player]);
    row.append(element("time", "", clock(step)), element("b", "", what),
               element("span", "", detail));
    row.hidden = true;
    $("log").append(row);
    logRows.push({step, row});
  }
}

function showFigures(step) {
  for (let player = 0; player < 2; player++) {
    const first = (2 * step + player) * game.figures.length;
    for (const [, key] of CARDS) {
      const value = thousands(arrays.figures[first + figure[key]]);
      cells[player][key].textContent = key === "food_used"
        ? `${value}/${arrays.figures[first + figure.food_cap]}` : value;
    }
    for (const {step: done, chip} of upgrades) chip.hidden = done > step;
    for (const {what, steps, row, label} of builds[player]) {
      const made = steps.filter(begun => begun <= step).length;
      row.classList.toggle("later", !made);
      label.textContent = (made || steps.length) > 1 ? `${what} × ${made || steps.length}` : what;
    }
  }
}

let logged = 0;

function showLog(step) {
  const before = logged;
  while (logged < logRows.length && logRows[logged].step <= step)
    logRows[logged++].row.hidden = false;
  while (logged && logRows[logged - 1].step > step) logRows[--logged].row.hidden = true;
  if (logged !== before) $("log").scrollTop = $("log").scrollHeight;
}

function drawCurve() {
  const [context, width, height] = sized($("curve")), pad = 8, total = game.steps || 1;
  const at = step => pad + (width - 2 * pad) * step / total;
  const army = (player, step) =>
    arrays.figures[(2 * step + player) * game.figures.length + figure.army];
  let most = 1;
  for (let t = 0; t <= game.steps; t++) most = Math.max(most, army(0, t), army(1, t));
  const up = value => height - 2 - (height - 14) * value / most;
  context.clearRect(0, 0, width, height);
  for (let player = 0; player < 2; player++) {
    context.beginPath();
    context.moveTo(at(0), up(0));
    for (let t = 0; t <= game.steps; t++) {
      if (t) context.lineTo(at(t), up(army(player, t - 1)));
      context.lineTo(at(t), up(army(player, t)));
    }
    context.strokeStyle = INK[player];
    context.lineWidth = 1.5;
    context.stroke();
    context.lineTo(at(game.steps), up(0));
    context.fillStyle = INK[player];
    context.globalAlpha = 0.1;
    context.fill();
    context.globalAlpha = 1;
  }
  context.fillStyle = "#64748b";
  context.font = `11px ${FONT}`;
  context.textBaseline = "top";
  context.fillText("army", pad, 0);
  context.fillStyle = "#334155";
  context.fillRect(at(now) - 0.75, 0, 1.5, height);
}

function show() {
  const step = Math.min(Math.floor(now), game.steps);
  drawMap();
  drawCurve();
  $("scrub").value = step;
  $("banner").hidden = now < game.steps;
  const time = clock(now);
  if ($("clock").firstChild.data !== time) $("clock").firstChild.data = time;
  if (step === shownStep) return;
  shownStep = step;
  showFigures(step);
  showLog(step);
}

// ---- Time, and what the user does ----

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

function choice(id, labels, choose) {
  const buttons = labels.map((label, i) => {
    const button = element("button", "", label);
    button.addEventListener("click", () => choose(i));
    $(id).append(button);
    return button;
  });
  return i => buttons.forEach((button, j) => button.setAttribute("aria-pressed", i === j));
}

const markSpeed = choice("speed", SPEEDS.map(value => `${value}×`), i => setSpeed(i));
const markView = choice("view", VIEWS, i => setView(i));

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
    0: () => setView(0), 1: () => setView(1), 2: () => setView(2)};
  if (!(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
}

function makeLegend() {
  const met = [...new Set(arrays.kind)].filter(kind => kind && !game.types[kind].structure)
    .sort((a, b) => a - b);
  for (const kind of met) {
    const item = element("span"), canvas = element("canvas");
    item.append(canvas, game.types[kind].name);
    $("legend").append(item);
    const [context] = sized(canvas);
    unitShape(context, game.types[kind].shape, 11, 11, 6.5, -Math.PI / 2, "#cbd5e1", DARK);
  }
}

function fromAddress() {  // #t=SECONDS&view=0..2: paused there
  const wanted = new URLSearchParams(location.hash.slice(1));
  const seconds = parseFloat(wanted.get("t")), seen = parseInt(wanted.get("view"));
  if (seen >= 0 && seen <= 2) setView(seen);
  if (!(seconds >= 0)) return false;
  setPlaying(false);
  go(seconds / game.secondsPerStep);
  return true;
}

async function main() {
  const names = Object.keys(game.arrays);
  const found = await Promise.all(names.map(name => unpack(game.arrays[name])));
  arrays = Object.fromEntries(names.map((name, i) => [name, found[i]]));
  slots = game.arrays.kind.shape[2];
  structures = game.arrays.built.shape[2];
  prepare();
  makePanels();
  makeLegend();
  $("banner").textContent = game.outcome;
  $("banner").append(element("small", "", `at ${clock(game.steps)}`));
  if (game.winner === 0 || game.winner === 1) $("banner").style.color = TEAM[game.winner];
  $("clock").append(clock(0), element("span", "", ` of ${clock(game.steps)}`));
  $("scrub").max = game.steps;
  $("scrub").addEventListener("input", () => go(+$("scrub").value));
  $("play").addEventListener("click", () => setPlaying(!playing));
  $("map").addEventListener("pointermove", event => {
    pointer = {x: event.offsetX, y: event.offsetY};
    if (!playing) drawMap();
  });
  $("map").addEventListener("pointerleave", () => { pointer = null; drawMap(); });
  document.addEventListener("keydown", pressed);
  window.addEventListener("resize", show);
  window.addEventListener("hashchange", fromAddress);
  setSpeed(SPEEDS.indexOf(speed));
  setView(0);
  if (!fromAddress()) setPlaying(true);
}

main().catch(error => {
  $("banner").textContent = "This browser cannot show the game";
  $("banner").append(element("small", "", String(error)));
  $("banner").hidden = false;
});
