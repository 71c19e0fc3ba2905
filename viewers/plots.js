"use strict";
// Unpacks plotly, which the page holds compressed, and draws the plots: elements of the class plot
// that hold the figure as JSON.
{
  const SETTINGS = {displayModeBar: false, responsive: true};
  const drawn = new WeakSet();

  async function loadPlotly() {
    const packed = document.getElementById("plotly").textContent;
    const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  // Calls back once a frame is shown; a hidden page, which shows none, after a tenth of a second.
  function afterFrame(call) {
    let called = false;
    const once = () => {
      if (!called) setTimeout(call);
      called = true;
    };
    requestAnimationFrame(once);
    setTimeout(once, 100);
  }

  const isShown = place => !place.closest("details:not([open])");

  // Draws the plots of `places` one after another, each shown before the next is drawn.
  function drawNext(places, prepare) {
    const place = places.find(candidate => !drawn.has(candidate) && isShown(candidate));
    if (!place) return;
    drawn.add(place);
    const figure = JSON.parse(place.querySelector("script").textContent);
    prepare(figure, place);
    Plotly.newPlot(place, figure.data, figure.layout, SETTINGS);
    place.style.minHeight = "";
    afterFrame(() => drawNext(places, prepare));
  }

  // Draws all plots; those in a folded section when it is opened. `prepare` may change a figure.
  window.drawPlots = async (prepare = () => {}) => {
    const places = [...document.querySelectorAll(".plot")];
    try {
      await loadPlotly();
    } catch (error) {
      for (const place of places) place.append(`This browser cannot draw the plot: ${error}`);
      return;
    }
    document.addEventListener("toggle", () => drawNext(places, prepare), true);
    drawNext(places, prepare);
  };
}
