"use strict";
// How a game's map is drawn: shapes, fog, bars. What is drawn comes from `scene` in watch.js.

const TEAM = ["#60a5fa", "#fbbf24"];
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const GROUND = "#27364b", DARK = "#0f172a";

function sized(canvas) {  // a canvas's context, in units of the page's pixels
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const height = canvas.clientHeight, context = canvas.getContext("2d");
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, width, height];
}

const SHAPES = [  // of fighters by their order, looking to the right
  [[1.25, 0], [-0.8, 0.95], [-0.8, -0.95]],
  [[1.05, 0], [0.5, 0.9], [-0.5, 0.9], [-1.05, 0], [-0.5, -0.9], [0.5, -0.9]],
  [[1.4, 0], [-0.9, 0.9], [-0.4, 0], [-0.9, -0.9]],
  [[1.2, 0], [0, 0.8], [-1.2, 0], [0, -0.8]],
  [[0.9, 0.8], [-0.9, 0.8], [-0.9, -0.8], [0.9, -0.8]],
  [[1.1, 0], [0.3, 1], [-0.9, 0.65], [-0.9, -0.65], [0.3, -1]],
  [[1.3, 0], [0.3, 0.4], [-0.9, 0.9], [-0.4, 0], [-0.9, -0.9], [0.3, -0.4]],
];

function unitShape(context, order, x, y, radius, angle, fill, line) {  // order -1: a worker
  context.beginPath();
  if (order < 0) {
    context.arc(x, y, radius * 0.8, 0, 2 * Math.PI);
  } else {
    const cos = Math.cos(angle) * radius, sin = Math.sin(angle) * radius;
    SHAPES[order % SHAPES.length].forEach(([a, b], i) =>
      context[i ? "lineTo" : "moveTo"](x + a * cos - b * sin, y + a * sin + b * cos));
    context.closePath();
  }
  context.fillStyle = fill;
  context.strokeStyle = line;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.fill();
  context.stroke();
}

function initials(name) {
  const parts = name.split(" ");
  return parts.length > 1 ? parts.map(part => part[0]).join("") : parts[0].slice(0, 2);
}

// A structure, filled up to the part of it that is built; a ghost is remembered, not seen.
function structureShape(context, name, x, y, radius, colour, done = 1, ghost = false) {
  const half = radius * 0.86;
  context.save();
  context.globalAlpha = ghost ? 0.45 : 1;
  context.beginPath();
  context.roundRect(x - half, y - half, 2 * half, 2 * half, Math.min(6, half / 2));
  context.fillStyle = DARK;
  context.fill();
  context.save();
  context.clip();
  context.globalAlpha *= 0.45;
  context.fillStyle = colour;
  context.fillRect(x - half, y + half - 2 * half * done, 2 * half, 2 * half * done);
  context.restore();
  if (ghost || done < 1) context.setLineDash([4, 3]);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.stroke();
  context.fillStyle = "#f8fafc";
  context.font = `600 ${Math.max(9, Math.min(17, radius * 0.6))}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(initials(name), x, y + 0.5);
  context.restore();
}

function patchShape(context, x, y, scale, share) {  // fewer crystals as it is mined
  context.fillStyle = "#2dd4bf";
  context.strokeStyle = "#134e4a";
  context.lineWidth = 1;
  for (const [dx, dy, size, least] of [[-0.38, 0.2, 0.38, 0], [0.38, 0.24, 0.34, 1 / 3],
                                       [0.02, -0.18, 0.46, 2 / 3]]) {
    if (share <= least) continue;
    const cx = x + dx * scale, cy = y + dy * scale, s = size * scale;
    context.beginPath();
    context.moveTo(cx, cy - s);
    context.lineTo(cx + 0.62 * s, cy);
    context.lineTo(cx, cy + s);
    context.lineTo(cx - 0.62 * s, cy);
    context.closePath();
    context.globalAlpha = 0.8;
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
  }
}

function bar(context, x, y, width, share, colour) {
  context.fillStyle = "rgba(2, 6, 23, .85)";
  context.fillRect(x - width / 2 - 1, y - 1, width + 2, 5);
  context.fillStyle = colour;
  context.fillRect(x - width / 2, y, width * Math.min(1, Math.max(0, share)), 3);
}

function healthColour(share) {
  return share > 0.6 ? "#4ade80" : share > 0.3 ? "#facc15" : "#f87171";
}

function drawGround(context, size, mapSize) {
  context.fillStyle = GROUND;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = "rgba(148, 163, 184, .09)";
  context.lineWidth = 1;
  context.beginPath();
  for (let line = 2; line < mapSize; line += 2) {
    const at = line * size / mapSize;
    context.moveTo(at, 0);
    context.lineTo(at, size);
    context.moveTo(0, at);
    context.lineTo(size, at);
  }
  context.stroke();
}

const fogCells = document.createElement("canvas"), FOG_MARGIN = 4;

// `shade(row, column)` is 0 in sight, 1 where explored, 2 where never seen. The cells at the edge
// go on outside, so that the blur does not lighten them.
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

function drawScene(canvas, scene) {
  const [context, size] = sized(canvas), scale = size / scene.mapSize;
  drawGround(context, size, scene.mapSize);
  for (const {x, y, share} of scene.patches) patchShape(context, x * size, y * size, scale, share);
  if (scene.shade) drawFog(context, size, scene.cells, scene.shade);
  for (const {type, x, y, player} of scene.ghosts)
    structureShape(context, type.name, x * size, y * size, type.radius * scale, TEAM[player], 1,
                   true);
  for (const {type, x, y, player, built} of scene.things)
    if (type.structure)
      structureShape(context, type.name, x * size, y * size, type.radius * scale, TEAM[player],
                     built / 100);
  for (const {type, x, y, player, facing, hurt} of scene.things)
    if (!type.structure)
      unitShape(context, type.order, x * size, y * size, Math.max(4, type.radius * scale * 1.05),
                facing, TEAM[player], hurt ? "#ffffff" : DARK);
  for (const {type, x, y, player, age} of scene.deaths) {
    context.globalAlpha = 1 - age;
    context.strokeStyle = TEAM[player];
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x * size, y * size, type.radius * scale * (0.8 + age), 0, 2 * Math.PI);
    context.stroke();
    context.globalAlpha = 1;
  }
  for (const {type, x, y, health, product, trained} of scene.things) {
    const radius = type.radius * scale, width = Math.max(14, radius * 1.6);
    const share = health / type.health;
    if (type.structure || share < 1)
      bar(context, x * size, y * size - radius - (type.structure ? 5 : 8), width, share,
          healthColour(share));
    if (product)
      bar(context, x * size, y * size + radius * 0.86 + 4, width, trained / 100, "#e2e8f0");
  }
  return size;
}
