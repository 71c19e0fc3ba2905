"use strict";
// Draws a game's map: terrain, resources, units, structures, fog. See drawScene.

function sized(canvas) {  // context, width and height of a canvas, in CSS pixels
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const height = canvas.clientHeight, context = canvas.getContext("2d");
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, width, height];
}

// Draws a mask with smooth edges. inside(row, column) is 0 or 1; paint(share) is the colour at a
// distance from the edge, from 0.5 to 1.
function area(cells, inside, paint) {
  const fine = cells > 64 ? 6 : 10, size = cells * fine;
  const canvas = document.createElement("canvas"), mask = new Uint8Array(cells * cells);
  for (let i = 0; i < mask.length; i++) mask[i] = inside(Math.floor(i / cells), i % cells);
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  const clip = i => Math.min(cells - 1, Math.max(0, i));
  for (let y = 0; y < size; y++) {
    const v = (y + 0.5) / fine - 0.5, row = Math.floor(v), q = v - row;
    for (let x = 0; x < size; x++) {
      const u = (x + 0.5) / fine - 0.5, column = Math.floor(u), p = u - column;
      const at = (r, c) => mask[clip(r) * cells + clip(c)];
      const share = (1 - q) * ((1 - p) * at(row, column) + p * at(row, column + 1))
        + q * ((1 - p) * at(row + 1, column) + p * at(row + 1, column + 1));
      const alpha = Math.min(1, Math.max(0, (share - 0.5) * fine / 2 + 0.5));
      if (alpha) image.data.set([...paint(share), 255 * alpha], 4 * (y * size + x));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Terrain as functions of row and column, from strings of 0 and 1 per row; null for a flat map.
function terrainOf(rows) {
  if (!rows) return null;
  return {cells: rows.high.length,
          passable: (row, column) => rows.passable[row][column] > 0,
          high: (row, column) => rows.high[row][column] > 0};
}

// Impassable cells are cliffs beside high ground, else water.
function terrainLayers({cells, passable, high}) {
  const near = (row, column) => {
    for (let dy = -2; dy <= 2; dy++)
      for (let dx = -2; dx <= 2; dx++) {
        const r = row + dy, c = column + dx;
        if (r >= 0 && c >= 0 && r < cells && c < cells && high(r, c)) return 1;
      }
    return 0;
  };
  const wet = (row, column) => passable(row, column) || near(row, column) ? 0 : 1;
  const cliff = (row, column) => !passable(row, column) && near(row, column) ? 1 : 0;
  return [
    area(cells, (row, column) => high(row, column) ? 1 : 0, () => [57, 76, 104]),
    area(cells, wet, share => share < 0.75 ? [56, 116, 158] : [17, 66, 110]),
    area(cells, cliff, share => share < 0.72 ? [148, 163, 184] : [15, 21, 33])];
}

let layersOf = null, layers = [];

function drawGround(context, size, mapSize, terrain) {
  context.fillStyle = GROUND;
  context.fillRect(0, 0, size, size);
  if (terrain) {
    if (layersOf !== terrain) [layersOf, layers] = [terrain, terrainLayers(terrain)];
    for (const layer of layers) context.drawImage(layer, 0, 0, size, size);
  }
  context.strokeStyle = "rgba(148, 163, 184, .08)";
  context.lineWidth = 1;
  context.beginPath();
  const apart = mapSize > 30 ? 4 : 2;
  for (let line = apart; line < mapSize; line += apart) {
    const at = line * size / mapSize;
    context.moveTo(at, 0);
    context.lineTo(at, size);
    context.moveTo(0, at);
    context.lineTo(size, at);
  }
  context.stroke();
}

const fogCells = document.createElement("canvas"), FOG_MARGIN = 4;

// shade(row, column) is 0 in sight, 1 where explored, 2 elsewhere. Edge cells are repeated in a
// margin, so that the blur does not lighten them.
function drawFog(context, size, cells, shade) {
  const across = cells + 2 * FOG_MARGIN, alpha = [0, 130, 214];
  fogCells.width = fogCells.height = across;
  const small = fogCells.getContext("2d"), image = small.createImageData(across, across);
  const inside = i => Math.min(cells - 1, Math.max(0, i - FOG_MARGIN));
  for (let row = 0; row < across; row++)
    for (let column = 0; column < across; column++)
      image.data.set([2, 6, 23, alpha[shade(inside(row), inside(column))]],
                     4 * (row * across + column));
  small.putImageData(image, 0, 0);
  context.save();
  context.filter = `blur(${(0.45 * size / cells).toFixed(1)}px)`;
  const margin = FOG_MARGIN * size / cells;
  context.drawImage(fogCells, -margin, -margin, size + 2 * margin, size + 2 * margin);
  context.restore();
}

function disc(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function drawCreep(context, size, scale, creep) {
  context.save();
  context.beginPath();
  for (const {x, y, radius} of creep) {
    context.moveTo(x * size + radius * scale, y * size);
    context.arc(x * size, y * size, radius * scale, 0, 2 * Math.PI);
  }
  context.fillStyle = "rgba(126, 58, 138, .26)";
  context.fill("nonzero");
  context.restore();
}

function drawUnit(context, size, scale, thing) {
  const {type, x, y, player, facing, hurt, stimmed, minerals, vespene} = thing;
  const radius = Math.max(type.worker ? 3.2 : 4.4, type.radius * scale * 1.05);
  const lift = type.flying ? 0.35 * radius : 0;
  if (type.flying)
    unitShape(context, type.shape, x * size + lift, y * size + 2 * lift + 2, radius, facing,
              "rgba(2, 6, 23, .45)", "transparent");
  if (stimmed) {
    disc(context, x * size, y * size, radius * 1.5);
    context.strokeStyle = "rgba(248, 113, 113, .9)";
    context.lineWidth = 1.5;
    context.stroke();
  }
  unitShape(context, type.shape, x * size, y * size, radius, facing, TEAM[player],
            hurt ? "#ffffff" : DARK);
  if (minerals || vespene) {
    disc(context, x * size + Math.cos(facing) * radius, y * size + Math.sin(facing) * radius,
         0.5 * radius);
    context.fillStyle = minerals ? "#5eead4" : "#86efac";
    context.fill();
  }
}

// Shots as lines. Targets are not recorded: the nearest enemy within reach that was hit is shown.
function shotsIn(shown, mapSize) {
  const shots = [], hit = shown.filter(thing => thing.hurt);
  for (const shooter of shown) {
    if (!shooter.fired) continue;
    let best = null, least = Infinity;
    for (const thing of hit) {
      if (thing.player === shooter.player) continue;
      const apart = Math.hypot(thing.x - shooter.x, thing.y - shooter.y) * mapSize
        - thing.type.radius - shooter.type.radius;
      if (apart < least && apart < shooter.type.reach + 1) [best, least] = [thing, apart];
    }
    if (best) shots.push({x: shooter.x, y: shooter.y, toX: best.x, toY: best.y,
                          player: shooter.player});
  }
  return shots;
}

function drawShots(context, size, shots) {
  for (const {x, y, toX, toY, player} of shots) {
    context.beginPath();
    context.moveTo(x * size, y * size);
    context.lineTo(toX * size, toY * size);
    context.strokeStyle = player ? "rgba(254, 215, 130, .75)" : "rgba(186, 220, 255, .75)";
    context.lineWidth = 1.2;
    context.stroke();
    disc(context, toX * size, toY * size, 2);
    context.fillStyle = "#fff7ed";
    context.fill();
  }
}

function drawBars(context, size, scale, thing) {
  const {type, x, y, health, product, trained, shield = 0, most = type.health} = thing;
  const radius = type.radius * scale, width = Math.max(12, radius * 1.6), share = health / most;
  let top = y * size - radius - (type.structure ? 5 : 7);
  if (type.structure || share < 1 || shield < type.shield) {
    bar(context, x * size, top, width, share, healthColour(share));
    if (type.shield) bar(context, x * size, top - 4, width, shield / type.shield, "#7dd3fc");
  }
  if (product)
    bar(context, x * size, y * size + radius * 0.86 + 4, width, trained / 100, "#e2e8f0");
}

// Draws a structure, with a dashed ring while it is boosted or injected.
function drawStructure(context, size, scale, {type, x, y, player, built, boosted, injected}) {
  structureShape(context, type, x * size, y * size, type.radius * scale, TEAM[player], built / 100);
  if (!boosted && !injected) return;
  disc(context, x * size, y * size, type.radius * scale * 1.08);
  context.strokeStyle = boosted ? "#fde047" : "#e879f9";
  context.setLineDash([3, 4]);
  context.lineWidth = 2;
  context.stroke();
  context.setLineDash([]);
}

function drawDeaths(context, size, scale, deaths) {  // rings that grow and fade
  for (const {type, x, y, player, age} of deaths) {
    context.globalAlpha = 1 - age;
    context.strokeStyle = TEAM[player];
    context.lineWidth = 2;
    disc(context, x * size, y * size, type.radius * scale * (0.8 + age));
    context.stroke();
    context.globalAlpha = 1;
  }
}

function drawScans(context, size, scale, scans) {
  for (const {x, y, player, radius} of scans) {
    disc(context, x * size, y * size, radius * scale);
    context.fillStyle = "rgba(125, 211, 252, .07)";
    context.fill();
    context.strokeStyle = TEAM[player];
    context.setLineDash([6, 6]);
    context.lineWidth = 1.5;
    context.stroke();
    context.setLineDash([]);
  }
}

// Draws a scene {mapSize, terrain (or null), creep, patches, things, ghosts, shots, deaths, scans};
// with fog of war also {cells, shade(row, column)}. `below` and `above`, if given, draw below and
// above the units: (context, size). Returns the canvas's width.
function drawScene(canvas, scene) {
  const [context, size] = sized(canvas), scale = size / scene.mapSize;
  drawGround(context, size, scene.mapSize, scene.terrain);
  drawCreep(context, size, scale, scene.creep);
  for (const {x, y, share, geyser} of scene.patches)
    (geyser ? geyserShape : patchShape)(context, x * size, y * size, scale, share);
  if (scene.shade) drawFog(context, size, scene.cells, scene.shade);
  if (scene.below) scene.below(context, size);
  for (const {type, x, y, player} of scene.ghosts)
    structureShape(context, type, x * size, y * size, type.radius * scale, TEAM[player], 1, true);
  for (const thing of scene.things)
    if (thing.type.structure) drawStructure(context, size, scale, thing);
  for (const flying of [false, true])
    for (const thing of scene.things)
      if (!thing.type.structure && thing.type.flying === flying)
        drawUnit(context, size, scale, thing);
  drawShots(context, size, scene.shots);
  drawDeaths(context, size, scale, scene.deaths);
  drawScans(context, size, scale, scene.scans);
  for (const thing of scene.things) drawBars(context, size, scale, thing);
  if (scene.above) scene.above(context, size);
  return size;
}
