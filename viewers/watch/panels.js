"use strict";
// The panels beside the map: figures, upgrades, build orders, actions, army curve, legend.

const INK = ["#2563eb", "#b45309"], CLASS = ["one", "two"];
const RACES = {terran: "Terran", protoss: "Protoss", zerg: "Zerg"};
const hasGas = game.geysers.includes(true);
const CARDS = [["minerals", "minerals"], ["vespene", "vespene"], ["supply", "food_used"],
               ["workers", "workers"], ["army units", "army"], ["cost destroyed", "destroyed"],
               ["mined", "mined"], ["mined gas", "mined_vespene"]]
  .filter(([, key]) => hasGas || !key.includes("vespene"));
const NOTES = {destroyed: "minerals and vespene that the destroyed units and structures cost",
               mined: "minerals", mined_vespene: "vespene", food_used: "used / provided"};
const cells = [{}, {}], builds = [[], []], upgrades = [], logRows = [];

function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}

function makePlayer(name, player) {
  const card = element("div", `card player ${CLASS[player]}`);
  const title = element("div", "name", name), race = RACES[game.races[player]] || "Terran";
  title.append(element("small", "", `player ${player + 1}, ${race}`));
  const list = element("dl");
  for (const [label, key] of CARDS) {
    const pair = element("div");
    pair.title = NOTES[key] || "";
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
}

function makeBuildOrder(player) {  // consecutive equal entries share a row
  const card = element("div", "card"), order = element("ol", "build");
  card.append(element("h2", "", `Build order of player ${player + 1}`), order);
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
  $("builds").append(card);
}

function makeLog() {
  for (const [step, player, what, detail] of game.log) {
    const row = element("li", CLASS[player]);
    row.append(element("time", "", clock(step)), element("b", "", what),
               element("span", "", detail));
    row.hidden = true;
    $("log").append(row);
    logRows.push({step, row});
  }
}

function makeBanner() {
  $("banner").textContent = game.outcome;
  $("banner").append(element("small", "", `at ${clock(game.steps)}`));
  if (game.winner === 0 || game.winner === 1) $("banner").style.color = TEAM[game.winner];
}

function makePanels() {
  game.players.forEach((name, player) => {
    makePlayer(name, player);
    makeBuildOrder(player);
  });
  makeLog();
  makeLegend();
  makeBanner();
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

const CURVE_PAD = 8;

function curvePlace(step, width) {  // of a step in a curve
  return CURVE_PAD + (width - 2 * CURVE_PAD) * step / (game.steps || 1);
}

function stepAt(x, width) {  // inverts curvePlace
  return (x - CURVE_PAD) / (width - 2 * CURVE_PAD) * game.steps;
}

function finishCurve(context, height, label, width) {  // its label, and a line at the present
  context.fillStyle = "#64748b";
  context.font = `12px ${FONT}`;
  context.textBaseline = "top";
  context.fillText(label, CURVE_PAD, 0);
  context.fillStyle = "#334155";
  context.fillRect(curvePlace(now, width) - 0.75, 0, 1.5, height);
}

function drawCurve() {
  const [context, width, height] = sized($("curve")), at = step => curvePlace(step, width);
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
  finishCurve(context, height, `army units, 0 to ${most}`, width);
}

function makeLegend() {
  const present = [...new Set(arrays.kind)].filter(kind => kind && !game.types[kind].structure)
    .sort((a, b) => a - b);
  for (const kind of present) {
    const item = element("span"), canvas = element("canvas");
    item.append(canvas, game.types[kind].name);
    $("legend").append(item);
    const [context] = sized(canvas);
    unitShape(context, game.types[kind].shape, 11, 11, 6.5, -Math.PI / 2, "#cbd5e1", DARK);
  }
}
