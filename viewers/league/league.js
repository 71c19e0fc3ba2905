// The script of the league's page, live or as one file: plots of the file, cells of the payoff
// matrix, replays in place.
"use strict";
(() => {
  const MOST_TICKS = 40, MOST_NUMBERS = 14, NARROW = 600;  // names, numbers on an axis; pixels
  const hidden = new Set();       // players whose curves are not shown
  const decoded = new WeakMap();  // facts of the pairs -> bytes
  const drawn = new WeakSet();    // facts of the pairs that are shown

  function bytes(text) {
    const decodedText = atob(text), found = new Uint8Array(decodedText.length);
    for (let i = 0; i < found.length; i++) found[i] = decodedText.charCodeAt(i);
    return found;
  }

  const element = id => document.getElementById(id);
  const order = () => element("sort")?.value || "rating";

  const pairsOf = plot => plot.layout?.meta?.pairs;

  // The bytes of a fact of the pairs, decoded once.
  function factOf(pairs, name) {
    if (!decoded.has(pairs)) decoded.set(pairs, {});
    return decoded.get(pairs)[name] ??= bytes(pairs[name]);
  }

  // The cells as a picture with one pixel each.
  function picture(pairs) {
    const chosen = pairs.orders[order()], count = chosen.length;
    const scores = factOf(pairs, "scores"), palette = factOf(pairs, "palette");
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = count;
    const context = canvas.getContext("2d"), cells = context.createImageData(count, count);
    const pixels = new DataView(cells.data.buffer), opaque = 255;
    const colours = Uint32Array.from({length: palette.length / 3}, (_, i) =>
      (palette[3 * i] << 24) + (palette[3 * i + 1] << 16) + (palette[3 * i + 2] << 8) + opaque);
    let at = 0;
    for (const i of chosen) {
      const row = scores.subarray(i * count, (i + 1) * count);
      for (let j = 0; j < count; j++, at += 4) pixels.setUint32(at, colours[row[chosen[j]]]);
    }
    context.putImageData(cells, 0, 0);
    return canvas.toDataURL();
  }

  const isNarrow = plot => plot.clientWidth < NARROW;

  // Names on an axis: at most MOST_TICKS of the players in view. Where they do not fit, numbers.
  function ticks(plot, axis) {
    const pairs = pairsOf(plot), chosen = pairs.orders[order()];
    const [low, high] = plot.layout[axis].range.map(Number).sort((a, b) => a - b);
    const first = Math.max(0, Math.ceil(low)), last = Math.min(chosen.length - 1, Math.floor(high));
    const most = isNarrow(plot) ? MOST_NUMBERS : MOST_TICKS;
    const step = Math.max(1, Math.ceil((last - first + 1) / most)), places = [];
    for (let at = first; at <= last; at += step) places.push(at);
    return {[`${axis}.tickvals`]: places,
            [`${axis}.ticktext`]: places.map(at => isNarrow(plot) ? at + 1
              : pairs.names[chosen[at]])};
  }

  // The names of the numbers on the axes.
  function listNumbers(plot) {
    const list = element("numbers"), pairs = pairsOf(plot);
    list.classList.toggle("shown", isNarrow(plot));
    if (!isNarrow(plot)) return;
    list.replaceChildren(...pairs.orders[order()].map(i => {
      const item = document.createElement("li");
      item.textContent = pairs.names[i];
      return item;
    }));
  }

  const allTicks = plot => ({...ticks(plot, "xaxis"), ...ticks(plot, "yaxis")});
  const sizes = plot => isNarrow(plot) ? {height: Math.min(plot.layout.height, 380),
                                           "xaxis.tickangle": 0} : {};

  function draw(plot) {
    drawn.add(pairsOf(plot));
    listNumbers(plot);
    Plotly.update(plot, {source: picture(pairsOf(plot))},
                  {...allTicks(plot), ...sizes(plot)});
  }

  // Shows the curves of all players but the hidden ones.
  function showPlayers(plot) {
    const wrong = plot.data.flatMap((trace, i) => trace.legendgroup !== undefined
      && (trace.visible === false) !== hidden.has(trace.legendgroup) ? [i] : []);
    if (wrong.length)
      Plotly.restyle(plot, {visible: wrong.map(i => !hidden.has(plot.data[i].legendgroup))}, wrong);
  }

  function toggle(player) {
    if (!hidden.delete(player)) hidden.add(player);
    for (const button of document.querySelectorAll("[data-player]"))
      if (button.dataset.player === player)
        button.setAttribute("aria-pressed", !hidden.has(player));
    document.querySelectorAll(".js-plotly-plot").forEach(showPlayers);
  }

  function describe(plot, point) {
    const pairs = pairsOf(plot), chosen = pairs.orders[order()];
    const i = chosen[point.y], j = chosen[point.x], at = i * chosen.length + j;
    const [score, games, low, high] = ["scores", "games", "low", "high"].map(
      name => factOf(pairs, name)[at]);
    const kept = pairs.replays.filter(([home, away]) =>
      (home === i && away === j) || (home === j && away === i)).map(([, , id]) => id);
    const result = games ? `${score}% (${low}% to ${high}%), `
      + `${games} recent games (decayed)` : "no games";
    const watch = kept.length ? `; ${kept.length} replays kept, click to watch the last` : "";
    return {text: `${pairs.names[i]} against ${pairs.names[j]}: ${result}${watch}`, kept};
  }

  function show(replay) {
    const viewer = element("viewer"), page = element(`replay-${replay}`);
    if (page) viewer.srcdoc = JSON.parse(page.textContent);
    else viewer.src = `replay/${encodeURIComponent(replay)}`;
    viewer.hidden = false;
    viewer.scrollIntoView({behavior: "smooth"});
  }

  function attach(plot) {
    if (!plot.dataset.players) {
      plot.dataset.players = "yes";
      plot.on("plotly_afterplot", () => showPlayers(plot));  // Dash draws new data with all of them
      showPlayers(plot);
    }
    if (plot.dataset.pairs || !pairsOf(plot)) return;
    plot.dataset.pairs = "yes";
    plot.on("plotly_hover", ({points}) => {
      element("pair").textContent = describe(plot, points[0]).text;
    });
    plot.on("plotly_click", ({points}) => {
      const {kept} = describe(plot, points[0]);
      if (kept.length) show(kept.at(-1));
    });
    plot.on("plotly_relayout", changed => {
      if (Object.keys(changed).some(key => /axis\.(range|autorange)/.test(key)))
        Plotly.relayout(plot, allTicks(plot));
    });
    // Dash's plots come without cells.
    element("pair").textContent ||= "Point at a cell or tap it.";
    const complete = () => drawn.has(pairsOf(plot)) || draw(plot);
    plot.on("plotly_afterplot", complete);
    complete();
  }

  document.addEventListener("change", ({target}) => {
    if (target.id === "sort") document.querySelectorAll("[data-pairs]").forEach(draw);
  });
  document.addEventListener("click", ({target}) => {
    if (target.dataset?.replay) show(target.dataset.replay);
    const button = target.closest("[data-player]");
    if (button) toggle(button.dataset.player);
  });
  // The plots of the file; Dash draws those of the live page.
  if (window.drawPlots) drawPlots(({data, layout}, place) => {
    if (!layout.meta?.pairs) return;
    data[0].source = picture(layout.meta.pairs);
    if (!isNarrow(place)) drawn.add(layout.meta.pairs);
  });
  const attachAll = () => document.querySelectorAll(".js-plotly-plot").forEach(attach);
  new MutationObserver(attachAll).observe(document.body, {childList: true, subtree: true});
  attachAll();
})();
