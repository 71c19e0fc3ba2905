"use strict";
// The human player's game: the frames from the server and the state of the page. Positions are
// fractions of the map's side. A tag names a unit during its life, and may name another one later.

const setup = JSON.parse($("setup").textContent);
const SELF = 1, ENEMY = 4, MINERALS = -1, GEYSER = -2;  // of a row's side and type
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8], FADE = 1.6;  // FADE: seconds for which a ring marks a death
const {mapSize, types, commands} = setup, MOST = setup.most;
const FAR = 4 / mapSize;  // further moves between two frames are not interpolated
const SMART = commands.find(({label}) => label === "Smart");

let frame = null, before = new Map(), arrived = 0, facing = new Map();
let selected = [], groups = {}, aiming = null, queue = false, repeat = 1, deaths = [], flashes = [];
let pointer = null, drag = null, messageUntil = 0;
let tapCommands = false, slack = 0;  // of a finger: its taps are right clicks; its width

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

const own = () => frame.rows.filter(row => row.side === SELF);
const byTag = tag => frame.rows.find(row => row.tag === tag);
const typeOf = row => types[row.type];
const isResource = row => row.type < 0;
const stepMilliseconds = () => 1000 * setup.secondsPerStep / frame.speed;

// Takes the next frame: finds movements, hits, shots and deaths since the last one.
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
  // A later unit may get the tag of a dead one.
  const alive = tags => tags.filter(tag => there.has(tag) && byTag(tag).side === SELF);
  selected = alive(selected);
  for (const digit of Object.keys(groups)) groups[digit] = alive(groups[digit]);
  if (frame.message) say(frame.message);
  showPanels();
}

function placed(row, part) {  // position between the last frame and this one
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

function near(x, y, wanted) {  // the row at a position, or null
  let best = null, least = 1;
  for (const row of frame.rows) {
    if (!wanted(row)) continue;
    const radius = Math.max(slack, Math.max(0.8, isResource(row) ? 1.1 : typeOf(row).radius)
                            / mapSize);
    const far = Math.hypot(row.x - x, row.y - y) / radius;
    // Units take precedence over structures: they are smaller.
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
