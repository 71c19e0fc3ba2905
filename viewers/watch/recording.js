"use strict";
// The recorded game: the arrays in the page and the values computed from them once.
// Positions are fractions of the map's side, stored in units of 1 / PLACES.

const game = JSON.parse($("game").textContent);
const PLACES = 65535, FAR = 4 / game.mapSize;  // FAR: a slot that moved further holds another unit
const BITS = {hurt: 1, seen: 2, fired: 4, stimmed: 8, boosted: 16, injected: 32, minerals: 64,
              vespene: 128};  // of arrays.flags
const figure = Object.fromEntries(game.figures.map((name, i) => [name, i]));

let arrays, predicted, slots, structures, facing, explored, deaths;

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const kinds = {uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array};
  const growth = new kinds[packed.type](await new Response(stream).arrayBuffer());
  // The packed data are differences between steps, with time as the last axis.
  const total = packed.shape[0], each = growth.length / total, values = growth.slice();
  for (let i = 0; i < each; i++)
    for (let t = 0; t < total; t++)
      values[t * each + i] = growth[i * total + t] + (t ? values[(t - 1) * each + i] : 0);
  return values;
}

async function unpackAll(packed) {
  const names = Object.keys(packed);
  const found = await Promise.all(names.map(name => unpack(packed[name])));
  return Object.fromEntries(names.map((name, i) => [name, found[i]]));
}

async function load() {
  arrays = await unpackAll(game.arrays);
  predicted = game.predictions && await unpackAll(game.predictions.arrays);
  slots = game.arrays.kind.shape[2];
  structures = game.arrays.built.shape[2];
  prepare();
}

function clock(step) {
  const seconds = Math.floor(step * game.secondsPerStep + 1e-6);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

// Computes the directions of units, the explored cells and the deaths at every step.
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
      // A unit that morphs stays in its place; another one in its slot stands elsewhere.
      if (kind[a] && (!kind[b] || moved >= FAR))
        deaths.push({t: t - 1, x: x[a] / PLACES, y: y[a] / PLACES, type: game.types[kind[a]],
                     player: i < slots ? 0 : 1, seen: arrays.flags[a] & BITS.seen});
    }
  }
  explored = visible.slice();
  const words = visible.length / total;
  for (let i = words; i < explored.length; i++) explored[i] |= explored[i - words];
}
