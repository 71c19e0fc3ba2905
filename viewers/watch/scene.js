"use strict";
// The map of a step. `now` counts environment steps, with fractions: units are drawn between two
// steps' positions. `view` is 1 or 2 for a player's view, 0 for the whole map.

const FADE = 5;  // steps for which a ring marks a death

let now = 0, view = 0, pointer = null;

function sees(player, flags) {  // whether the view shows a player's thing
  return !view || view - 1 === player || (flags & BITS.seen) > 0;
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
        player, slot, type: game.types[kind[i]], health: health[i], shield: arrays.shield[i],
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

function ghosts(step) {  // enemy structures that the view's player remembers
  const found = [];
  for (let slot = 0; view && slot < structures; slot++) {
    const i = (2 * step + view - 1) * structures + slot, enemy = 2 - view;
    const seen = arrays.flags[(2 * step + enemy) * slots + slot] & BITS.seen;
    if (arrays.known_kind[i] && !seen)
      found.push({type: game.types[arrays.known_kind[i]], player: enemy, slot,
                  x: arrays.known_x[i] / PLACES, y: arrays.known_y[i] / PLACES});
  }
  return found;
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

const terrain = terrainOf(game.terrain);

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
  const shown = things(step, now - step), remembered = ghosts(step);
  const size = drawScene($("map"), {
    mapSize: game.mapSize, things: shown, ghosts: remembered, cells, shade: view ? shade : null,
    terrain, shots: shotsIn(shown, game.mapSize), scans: scansOf(step),
    creep: shown.filter(({type, built}) => type.creep && built === 100)
      .map(({x, y}) => ({x, y, radius: game.creepRadius})),
    patches: places.map(([x, y], i) => ({x, y, geyser: game.geysers[i], share: left(i)
      / (game.geysers[i] ? game.geyserVespene : game.patchMinerals)}))
      .filter(patch => patch.share > 0),
    deaths: deaths.map(death => ({...death, age: (now - death.t) / FADE}))
      .filter(({age, player, seen}) => age > 0 && age < 1 && sees(player, seen)),
    below: (context, size) => drawHeats(context, size, 1),
    above: (context, size) => drawAbove(context, size, shown, remembered)});
  showTip(shown, size);
}

function showTip(shown, size) {  // names the thing under the pointer
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
