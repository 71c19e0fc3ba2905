"use strict";
// Shapes of units, structures and resources on the map.

const TEAM = ["#60a5fa", "#fbbf24"];
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const GROUND = "#27364b", DARK = "#0f172a";

// Draws a unit's outline. SHAPES, defined before this script, holds outlines that face right.
function unitShape(context, shape, x, y, radius, angle, fill, line) {
  const cos = Math.cos(angle) * radius, sin = Math.sin(angle) * radius;
  context.beginPath();
  (SHAPES[shape] || SHAPES.Probe).forEach(([a, b], i) =>
    context[i ? "lineTo" : "moveTo"](x + a * cos - b * sin, y + a * sin + b * cos));
  context.closePath();
  context.fillStyle = fill;
  context.strokeStyle = line;
  context.lineWidth = Math.min(1.5, 0.3 + radius / 8);
  context.lineJoin = "round";
  context.fill();
  context.stroke();
}

function initials(name) {
  const parts = name.split(" ");
  return parts.length > 1 ? parts.map(part => part[0]).join("") : parts[0].slice(0, 2);
}

// The outline of a race's structures: rounded squares, cut corners or blobs.
function structureOutline(context, race, x, y, half) {
  context.beginPath();
  if (race === 1) {
    const cut = half * 0.55;
    for (const [dx, dy] of [[-1, -cut / half], [-cut / half, -1], [cut / half, -1],
                            [1, -cut / half], [1, cut / half], [cut / half, 1],
                            [-cut / half, 1], [-1, cut / half]])
      context.lineTo(x + dx * half, y + dy * half);
  } else if (race === 2) {
    for (let i = 0; i < 36; i++) {
      const angle = i * Math.PI / 18, far = half * (1.02 + 0.09 * Math.cos(6 * angle));
      context.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
    }
  } else {
    context.roundRect(x - half, y - half, 2 * half, 2 * half, Math.min(6, half / 2));
  }
  context.closePath();
}

// Draws a structure, filled by its construction progress; a ghost is one remembered, not seen.
function structureShape(context, {name, race}, x, y, radius, colour, done = 1, ghost = false) {
  const half = radius * 0.86;
  context.save();
  context.globalAlpha = ghost ? 0.45 : 1;
  structureOutline(context, race, x, y, half);
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
  context.font = `600 ${Math.max(7, Math.min(17, radius * 0.62))}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(initials(name), x, y + 0.5);
  context.restore();
}

function patchShape(context, x, y, scale, share) {  // fewer crystals as the patch is mined
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

function geyserShape(context, x, y, scale, share) {
  const radius = 1.05 * scale;
  context.beginPath();
  for (let i = 0; i < 9; i++) {
    const angle = i * 2 * Math.PI / 9, far = radius * (i % 2 ? 0.86 : 1);
    context.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  context.closePath();
  context.fillStyle = "#334b3d";
  context.strokeStyle = "#6b8f71";
  context.lineWidth = 1;
  context.fill();
  context.stroke();
  context.beginPath();
  context.arc(x, y, radius * 0.5, 0, 2 * Math.PI);
  context.fillStyle = `rgba(74, 222, 128, ${0.25 + 0.6 * share})`;
  context.fill();
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
