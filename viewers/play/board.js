"use strict";
// The map with selection, orders, aim and tip.

const terrain = terrainOf(setup.terrain);

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
    mapSize, terrain, creep, things: shown, shots: shotsIn(shown, mapSize), scans: [], cells,
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
  const type = types[aiming.product], geyser = aiming.gas && near(x, y, row => row.type === GEYSER);
  const at = geyser ? [geyser.x, geyser.y] : [x, y];
  const fits = aiming.gas ? !!geyser : canStand(x, y, type);
  context.globalAlpha = 0.7;
  structureShape(context, type, at[0] * size, at[1] * size, type.radius * scale,
                 fits ? "#4ade80" : "#f87171");
  context.globalAlpha = 1;
}

function canStand(x, y, type) {  // as far as the player knows
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

function showTip(shown, size) {
  const tip = $("tip"), shows = pointer && !drag;
  const row = shows && near(pointer.x / size, pointer.y / size, () => true);
  tip.hidden = !row;
  if (!row) return;
  tip.textContent = describe(row);
  tip.style.left = `${Math.min(pointer.x + 14, size - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(pointer.y + 16, size - tip.offsetHeight - 4)}px`;
}
