// The script of the league's page, live or as one file: plots of the file, cells of the payoff
// matrix, replays in place.
"use strict";
(() => {
  const SETTINGS = {displayModeBar: false, responsive: true};
  const MOST_TICKS = 40, NARROW = 600;  // names on an axis; pixels
  const decoded = new WeakMap();  // facts of the pairs -> bytes
  const drawn = new WeakMap();    // plot -> facts of the pairs that it shows

  const bytes = text => Uint8Array.from(atob(text), character => character.charCodeAt(0));
  const element = id => document.getElementById(id);
  const order = () => element("sort")?.value || "rating";

  function pairsOf(plot) {
    const pairs = plot.layout?.meta?.pairs;
    if (pairs && !decoded.has(pairs))
      decoded.set(pairs, Object.fromEntries(["palette", "scores", "games", "low", "high"].map(
        name => [name, bytes(pairs[name])])));
    return pairs;
  }

  // The cells as a picture with one pixel each.
  function picture(pairs) {
    const chosen = pairs.orders[order()], count = chosen.length;
    const {palette, scores} = decoded.get(pairs);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = count;
    const context = canvas.getContext("2d"), cells = context.createImageData(count, count);
    let at = 0;
    for (const i of chosen)
      for (const j of chosen) {
        const colour = 3 * scores[i * count + j];
        cells.data[at++] = palette[colour];
        cells.data[at++] = palette[colour + 1];
        cells.data[at++] = palette[colour + 2];
        cells.data[at++] = 255;
      }
    context.putImageData(cells, 0, 0);
    return canvas.toDataURL();
  }

  // Names on an axis: at most MOST_TICKS of the players in view.
  function ticks(plot, axis) {
    const pairs = pairsOf(plot), chosen = pairs.orders[order()];
    const [low, high] = plot.layout[axis].range.map(Number).sort((a, b) => a - b);
    const first = Math.max(0, Math.ceil(low)), last = Math.min(chosen.length - 1, Math.floor(high));
    const step = Math.max(1, Math.ceil((last - first + 1) / MOST_TICKS)), places = [];
    for (let at = first; at <= last; at += step) places.push(at);
    return {[`${axis}.tickvals`]: places,
            [`${axis}.ticktext`]: places.map(at => pairs.names[chosen[at]])};
  }

  const allTicks = plot => ({...ticks(plot, "xaxis"), ...ticks(plot, "yaxis")});

  function draw(plot) {
    const pairs = pairsOf(plot), narrow = plot.clientWidth < NARROW;
    drawn.set(plot, pairs);
    Plotly.update(plot, {source: picture(pairs)}, {
      ...allTicks(plot),
      ...narrow && {height: 460, "xaxis.showticklabels": false, "yaxis.tickfont.size": 8}});
  }

  function describe(plot, point) {
    const pairs = pairsOf(plot), chosen = pairs.orders[order()];
    const i = chosen[point.y], j = chosen[point.x], at = i * chosen.length + j;
    const {scores, games, low, high} = decoded.get(pairs);
    const kept = pairs.replays.filter(([home, away]) =>
      (home === i && away === j) || (home === j && away === i)).map(([, , id]) => id);
    const result = games[at]
      ? `${scores[at]}% (${low[at]}% to ${high[at]}%), ${games[at]} games` : "no games";
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
    if (plot.dataset.pairs || !plot.layout?.meta?.pairs) return;
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
    // New facts come without cells.
    plot.on("plotly_afterplot", () => {
      if (drawn.get(plot) !== plot.layout.meta.pairs) draw(plot);
    });
    draw(plot);
  }

  document.addEventListener("change", ({target}) => {
    if (target.id === "sort") document.querySelectorAll("[data-pairs]").forEach(draw);
  });
  document.addEventListener("click", ({target}) => {
    if (target.dataset?.replay) show(target.dataset.replay);
  });
  for (const place of document.querySelectorAll(".plot")) {
    const {data, layout} = JSON.parse(place.querySelector("script").textContent);
    Plotly.newPlot(place, data, layout, SETTINGS);
  }
  const attachAll = () => document.querySelectorAll(".js-plotly-plot").forEach(attach);
  new MutationObserver(attachAll).observe(document.body, {childList: true, subtree: true});
  attachAll();
})();
