"use strict";
// The predictions of agents and the z of both players: panels, value curve, and layers of the map.
// `predicted` holds the arrays of game.predictions, or null; row i is the i-th prediction.

const FRESH = 8;  // steps for which the map shows a prediction, fading
const PROBABILITY = 65535, VALUE = 32767, NOTHING = 65535, GRID = 256;  // units; see predictions.py
const LAYERS = ["heat", "units", "camera"], layersOn = [true, true, true];
const rowsOf = [[], []], functionBars = [null, null], zRows = [];
let layerButtons = [];

const widthOf = name => game.predictions.arrays[name].shape[1];
const percent = share => `${share > 0 && share < 0.01 ? "<1" : Math.round(100 * share)}%`;
const signed = value => `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(2)}`;
const valueOf = row => (predicted.value[row] - VALUE) / VALUE;

// The row of a player's latest prediction at a step that `fits`; undefined if there is none.
function latest(player, step, fits = () => true) {
  const rows = rowsOf[player];
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (predicted.step[rows[middle]] <= step) low = middle + 1;
    else high = middle;
  }
  while (low && !fits(rows[low - 1]) && step - predicted.step[rows[low - 1]] < FRESH) low--;
  return low && fits(rows[low - 1]) ? rows[low - 1] : undefined;
}

function makePredictions() {
  makeZ();
  if (!predicted) return;
  predicted.player.forEach((player, row) => rowsOf[player].push(row));
  for (const id of ["value", "agent", "predictions", "layerkeys"]) $(id).hidden = false;
  for (const player of game.predictions.players) makeFunctions(player);
  layerButtons = LAYERS.map((name, i) => {
    const button = element("button", "", name);
    button.addEventListener("click", () => toggleLayer(i));
    button.setAttribute("aria-pressed", true);
    $("layers").append(button);
    return button;
  });
}

function toggleLayer(i) {
  if (!predicted) return;
  layersOn[i] = !layersOn[i];
  layerButtons[i].setAttribute("aria-pressed", layersOn[i]);
  drawMap();
}

function makeFunctions(player) {
  const card = element("div", `card ${CLASS[player]}`), list = element("ol", "bars");
  const title = element("h2");
  const rows = Array.from({length: widthOf("functions") + 1}, (_, i) => {
    const row = element("li", i < widthOf("functions") ? "" : "others");
    row.append(element("i"), element("span"), element("b"));
    list.append(row);
    return row;
  });
  card.append(title, list, element("p", "note",
    "On the map: heat of the location head; rings around units considered for selection, dashed "
    + "as targets; thicker is likelier, white is chosen."));
  $("predictions").append(card);
  functionBars[player] = {title, rows};
}

function makeZ() {  // lists of players that have a z
  game.z.forEach((parts, player) => {
    const names = Object.keys(parts);
    if (!names.length) return;
    const card = element("div", `card ${CLASS[player]}`), list = element("ol", "z");
    card.append(element("h2", "", `z of player ${player + 1}`), list);
    for (const name of names) {
      const head = element("li", "part"), rows = [];
      list.append(head);
      for (const [what, step] of parts[name]) {
        const row = element("li", "", what);
        list.append(row);
        rows.push({row, step});
      }
      zRows.push({name, head, rows});
    }
    $("zs").append(card);
    $("zs").hidden = false;
  });
}

function setBar(row, name, share, taken) {
  const [bar, label, number] = row.children;
  bar.style.width = `${100 * Math.min(1, share)}%`;
  label.textContent = name;
  number.textContent = percent(share);
  row.classList.toggle("taken", taken);
  row.style.visibility = share > 0 ? "visible" : "hidden";
}

function showPredictions(step) {
  for (const {name, head, rows} of zRows) {
    const done = rows.filter(({step: at}) => at >= 0 && at <= step).length;
    head.textContent = `${name}, ${done} of ${rows.length}`;
    for (const {row, step: at} of rows) row.classList.toggle("done", at >= 0 && at <= step);
  }
  for (const player of predicted ? game.predictions.players : []) {
    const at = latest(player, step), {title, rows} = functionBars[player];
    if (at === undefined) continue;
    const width = widthOf("functions");
    let rest = 1;
    for (let i = 0; i < width; i++) {
      const share = predicted.function_probs[at * width + i] / PROBABILITY;
      const index = predicted.functions[at * width + i];
      setBar(rows[i], game.predictions.names[index], share, index === predicted.taken[at]);
      rest -= share;
    }
    setBar(rows[width], "all others", rest > 0.5 / 100 ? rest : 0, false);
    title.textContent = `Agent, player ${player + 1}: value ${signed(valueOf(at))}, `
      + `functions at ${clock(predicted.step[at])}`;
  }
}

function drawValues() {
  if (!predicted) return;
  const [context, width, height] = sized($("value")), at = step => curvePlace(step, width);
  const middle = height / 2 + 6, up = value => middle - (height / 2 - 8) * value;  // below its label
  context.clearRect(0, 0, width, height);
  context.fillStyle = "#e2e8f0";
  context.fillRect(at(0), up(0) - 0.5, at(game.steps) - at(0), 1);
  for (const player of game.predictions.players) {
    context.beginPath();
    rowsOf[player].forEach((row, i) => {
      if (i) context.lineTo(at(predicted.step[row]), up(valueOf(rowsOf[player][i - 1])));
      context.lineTo(at(predicted.step[row]), up(valueOf(row)));
    });
    context.strokeStyle = INK[player];
    context.lineWidth = 1.5;
    context.setLineDash(player ? [5, 2] : []);
    context.stroke();
    context.setLineDash([]);
  }
  finishCurve(context, height, "win-loss value, \u22121 to 1", width);
}

// Calls draw(player, row, freshness) for each shown player's latest prediction that `fits`.
function eachFresh(fits, draw) {
  const step = Math.min(Math.floor(now), game.steps);
  for (const player of predicted ? game.predictions.players : []) {
    if (view && view - 1 !== player) continue;
    const row = latest(player, step, fits), age = (now - predicted.step[row]) / FRESH;
    if (row !== undefined && age < 1) draw(player, row, 1 - age);
  }
}

const heatCells = document.createElement("canvas");

// Drawn below the units, and faintly above, where it would be hidden by structures.
function drawHeats(context, size, strength) {
  const grid = game.predictions && game.predictions.grid;
  if (layersOn[0]) eachFresh(row => predicted.location[row] > 0, (player, row, fresh) => {
    const width = widthOf("cells"), colour = parseInt(TEAM[player].slice(1), 16);
    heatCells.width = heatCells.height = grid;
    const small = heatCells.getContext("2d"), image = small.createImageData(grid, grid);
    const most = predicted.cell_probs[row * width];
    for (let i = row * width; i < (row + 1) * width; i++) {
      const share = predicted.cell_probs[i] / most;
      if (share) image.data.set(
        [colour >> 16, colour >> 8 & 255, colour & 255, 40 + 200 * Math.sqrt(share)],
        4 * predicted.cells[i]);
    }
    small.putImageData(image, 0, 0);
    context.globalAlpha = strength * (0.3 + 0.7 * fresh);
    context.drawImage(heatCells, 0, 0, size, size);
    context.globalAlpha = 1;
  });
}

function drawCross(context, size, grid, cell, player) {  // the location that was chosen
  const x = (cell % grid + 0.5) * size / grid, y = (Math.floor(cell / grid) + 0.5) * size / grid;
  for (const [colour, width] of [[DARK, 4.5], ["#ffffff", 2]]) {
    context.beginPath();
    for (const [dx, dy] of [[-6, 0], [0, -6]]) {
      context.moveTo(x + dx, y + dy);
      context.lineTo(x - dx, y - dy);
    }
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
  disc(context, x, y, 9);
  context.strokeStyle = TEAM[player];
  context.lineWidth = 2;
  context.stroke();
}

// The place and radius of a candidate: an own or enemy slot, or a resource; undefined if not shown.
function candidate(player, index, step, shown, remembered) {
  if (index >= 2 * slots) {
    const [x, y] = game.knownPatches[player][index - 2 * slots];
    return {x, y, radius: 1};
  }
  const owner = index < slots ? player : 1 - player, slot = index % slots;
  const at = thing => thing.player === owner && thing.slot === slot;
  const found = shown.find(at) || remembered.find(at), i = owner * slots + slot;
  // The slot may hold another unit than at the decision.
  if (found && found.health && game.types[arrays.kind[step * 2 * slots + i]] !== found.type) return;
  return found && {x: found.x, y: found.y, radius: found.type.radius};
}

function drawAbove(context, size, shown, remembered) {
  const scale = size / game.mapSize;
  drawHeats(context, size, 0.4);
  if (layersOn[0]) eachFresh(row => predicted.location[row] > 0, (player, row) =>
    drawCross(context, size, game.predictions.grid, predicted.location[row] - 1, player));
  for (const [choices, chosen, dash] of [["unit", "selected", []], ["target", "targeted", [5, 4]]])
    if (layersOn[1]) eachFresh(row => predicted[`${choices}_probs`][row * 8] > 0,
                               (player, row, fresh) => {
      const width = widthOf(`${choices}s`);
      for (let i = 0; i < width; i++) {
        const share = predicted[`${choices}_probs`][row * width + i] / PROBABILITY;
        const index = predicted[`${choices}s`][row * width + i];
        const place = share > 0 && index !== NOTHING
          && candidate(player, index, predicted.step[row], shown, remembered);
        if (!place) continue;
        const taken = predicted[chosen][row] >> i & 1;
        drawRing(context, place.x * size, place.y * size, place.radius * scale, share, fresh,
                 taken ? "#ffffff" : TEAM[player], dash);
      }
    });
  if (layersOn[2]) eachFresh(() => true, (player, row) => drawCamera(
    context, size, predicted.camera.subarray(4 * row, 4 * row + 4), player));
}

function drawRing(context, x, y, radius, share, fresh, colour, dash) {
  const wide = 1 + 3 * share;
  disc(context, x, y, Math.max(6, radius) + 4 + wide / 2 + (dash.length ? 4 : 0));
  context.setLineDash(dash);
  context.globalAlpha = (0.35 + 0.65 * Math.sqrt(share)) * (0.3 + 0.7 * fresh);
  context.strokeStyle = colour;
  context.lineWidth = wide;
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function drawCamera(context, size, [left, top, right, bottom], player) {
  if (right <= left || bottom <= top) return;  // the game has no camera
  const inset = player ? 5 : 1.5, scale = size / GRID;  // both players' frames stay in sight
  const low = cell => Math.max(inset, cell * scale);
  const high = cell => Math.min(size - inset, cell * scale);
  context.strokeStyle = TEAM[player];
  context.lineWidth = 1.5;
  context.setLineDash([10, 6]);
  context.strokeRect(low(left), low(top), high(right) - low(left), high(bottom) - low(top));
  context.setLineDash([]);
}
