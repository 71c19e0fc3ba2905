"""Templates and their places."""

import pytest

from starleague.viewers import pages


def test_places_are_filled_once(tmp_path):
  (tmp_path / "script.js").write_text("const a = '{{TITLE}}';")
  template = tmp_path / "page.html"
  template.write_text("<h1>{{TITLE}}</h1><script>{{script.js}}</script>")
  assert pages.fill(template, {"TITLE": "{{script.js}}"}) == (
    "<h1>{{script.js}}</h1><script>const a = '{{TITLE}}';</script>")
  with pytest.raises(KeyError, match="TITLE"):
    pages.fill(template, {})


def test_json_cannot_end_its_script_element():
  assert pages.json_element(["</script>", "é"]) == '["\\u003c/script>", "é"]'
  with pytest.raises(ValueError):
    pages.json_element(float("nan"))
