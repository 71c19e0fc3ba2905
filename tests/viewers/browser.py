"""Pages in a headless Chromium."""

import html
import shutil
import subprocess

import pytest

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
# Puts the number of elements that are wider than their box, and the page's error, into its title.
_MEASURE = """<script>
onload = () => setTimeout(() => {
  const inside = document.querySelector("iframe").contentDocument;
  const wide = [...inside.querySelectorAll("BOXES")]
    .filter(box => box.scrollWidth > box.clientWidth + 1).length;
  document.title = `overflows=${wide} text=${inside.body.innerText.slice(0, 4000)}`;
}, 1500);
</script>"""


def dump(address, profile, budget=5000):
  """Returns the DOM of a page after its scripts have run."""
  done = subprocess.run(
    ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
     "--disable-background-networking", f"--user-data-dir={profile}",
     f"--virtual-time-budget={budget}", "--dump-dom", address],
    capture_output=True, text=True, timeout=120)
  return done.stdout


def measure(page, width, folder, boxes="html, .card, dl div"):
  """Returns the number of overflowing boxes and the visible text of a page at a width in pixels."""
  frame = f'<iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
  path = folder / "frame.html"
  path.write_text(f"<!doctype html><title></title><body>{frame}{_MEASURE.replace('BOXES', boxes)}"
                  "</body>")
  dom = dump(path.as_uri(), folder / "profile")
  title = html.unescape(dom.partition("<title>")[2].partition("</title>")[0])
  overflows, _, text = title.removeprefix("overflows=").partition(" text=")
  return int(overflows), text
