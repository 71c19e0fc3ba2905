"""Results rows of every kind, and readers of the report."""

import html
import json
import math
import re

from starleague.common.results import Row

ROWS = [
  Row(0.0, 0, "score/initial/rush", 0.1, 0.05, 0.2),
  Row(60.0, 10, "score/eval/rush", 0.125, 0.0625, 0.25),
  Row(300.0, 50, "score/eval/rush", 0.75, 0.625, 0.875),
  Row(120.0, 20, "score/train/rush", 0.5, 0.25, 0.75),
  Row(120.0, 20, "score/train/only trained", 0.5, 0.25, 0.75),
  Row(60.0, 10, "loss/policy", 2.0), Row(120.0, 20, "loss/policy", math.nan),
  Row(300.0, 50, "loss/policy", 1.0),
  Row(60.0, 10, "entropy/function", 0.5), Row(300.0, 50, "entropy/function", 0.375),
  Row(60.0, 10, "entropy/delay", 0.25), Row(300.0, 50, "entropy/delay", 0.125),
  Row(300.0, 50, "kl/function", 0.25), Row(300.0, 50, "mean_value/winloss", -0.5),
  Row(300.0, 50, "value/winloss", 0.25), Row(300.0, 50, "illegal/delay", 0.0),
  Row(300.0, 50, "speed/actor", 900.0), Row(300.0, 50, "speed/learner", 1500.0),
  Row(300.0, 50, "speed/waiting", 0.375),
  Row(300.0, 50, "total/steps", 240_000.0), Row(300.0, 50, "total/games", 123.0),
  Row(300.0, 50, "odd_kind/first", 7.0),
  Row(30.0, 70, "imitation/loss/cross_entropy", 3.0),
  Row(30.0, 70, "imitation/loss/held_out", 3.5),
  Row(30.0, 70, "imitation/accuracy/delay", 0.5),
  Row(30.0, 70, "imitation/held_out/accuracy/delay", 0.25),
  Row(30.0, 70, "imitation/speed/learner", 800.0)]


def plots_of(page):
  """Returns the plots of a page by their heading."""
  found = re.findall(
    r"<div class='card'><h3>(.*?)</h3>(?:<p class='warning'>.*?</p>)?<div class='plot' [^>]*>"
    r"<script type='application/json'>(.*?)</script>", page)
  return {html.unescape(title): json.loads(data) for title, data in found}


def text_of(page):
  """Returns the visible text of a page, spaces collapsed."""
  page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
  return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", page).split()))
