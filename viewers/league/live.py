"""The page of a league while it runs: a Dash application for this machine only."""

import html as text
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

import dash
import flask
from dash import dcc, html
from dash.development.base_component import Component
from werkzeug.serving import BaseWSGIServer, make_server

from starleague.common.errors import UserError
from starleague.league.league_file import Replay
from starleague.viewers import pages, plots
from starleague.viewers.league import sections
from starleague.viewers.league.facts import Facts
from starleague.viewers.league.page import TEMPLATE
from starleague.viewers.league.reading import Newest
from starleague.viewers.report.summary import KeyFigure

HOST = "127.0.0.1"
_POLL_MS = 2000
_UNKNOWN = 0  # in place of the version that a page shows; negative: its first sections only
_AT_ONCE, _FIRST_POLL_MS = 2, 300  # sections of the first answer; the others follow at this poll
# Dash would load it when it draws the first plot: too late.
_PLOTLY = "<script src='/_dash-component-suites/plotly/package_data/plotly.min.js'></script>"
_PLOT_SETTINGS = dcc.Graph.Config(displayModeBar=False, responsive=True)


class Contents(NamedTuple):
  """The parts of the page that change."""

  replays: dict[str, Replay]
  tiles: list[KeyFigure]
  sections: list[sections.Section]
  games: sections.Section


def contents(facts: Facts) -> Contents:
  """Returns the contents of the page."""
  return Contents({replay.id: replay for replay in facts.replays}, sections.key_figures(facts),
                  sections.sections(facts), sections.games(facts.replays))


def make_app(name: str, newest: Newest[Contents],
             replay_page: Callable[[Replay], str]) -> dash.Dash:
  """Returns the application.

  Args:
    name: of the run.
    newest: its contents.
    replay_page: returns the page of a kept replay.
  """
  app = dash.Dash(
    __name__, title=f"{name} - Starleague", update_title="", assets_folder="no-assets",
    index_string=pages.fill(TEMPLATE, {
      "TITLE": text.escape(name), "BODY": "{%app_entry%}",
      "SCRIPTS": f"{_PLOTLY}<footer>{{%config%}}{{%scripts%}}{{%renderer%}}</footer>"}))
  app.enable_dev_tools(debug=False, dev_tools_disable_version_check=True)  # it asks plotly.com
  app.layout = lambda: _layout(name, *newest())

  @app.callback(
    dash.Output("all-tiles", "children"), dash.Output("first-sections", "children"),
    dash.Output("other-sections", "children"), dash.Output("all-games", "children"),
    dash.Output("state", "children"), dash.Output("version", "data"),
    dash.Output("poll", "interval"), dash.Input("poll", "n_intervals"),
    dash.State("version", "data"), prevent_initial_call=True,
    # The browser drops the answer to a poll if the next one has begun.
    running=[(dash.Output("poll", "disabled"), True, False)])
  def update(_, shown):
    try:
      version, found = newest()
    except (UserError, OSError) as error:
      return *[dash.no_update] * 4, f"not updated: {error}", _UNKNOWN, _POLL_MS
    if shown == version:
      raise dash.exceptions.PreventUpdate
    children = _changing(found)
    if shown == -version:  # the page has its first sections
      return dash.no_update, dash.no_update, *children[2:], "", version, _POLL_MS
    return *children, "", version, _POLL_MS

  @app.server.before_request
  def refuse_other_sites():
    # A page of another site must not read this one under a name that it makes point here.
    if flask.request.host.partition(":")[0] not in (HOST, "localhost"):
      flask.abort(403, "this server answers only under its own address")

  @app.server.get("/replay/<path:identifier>")
  def replay(identifier):
    kept = newest()[1].replays.get(identifier)
    if kept is None:
      flask.abort(404, f"no replay {identifier}")
    try:
      return replay_page(kept)
    except UserError as error:
      flask.abort(404, str(error))

  return app


def make_http_server(app: dash.Dash, port: int) -> BaseWSGIServer:
  """Binds a port of this machine, 0 for any free one; `serve_forever` answers requests.

  Raises:
    OSError: the port is in use.
  """
  # werkzeug itself would end the process if the port is in use.
  with socket.create_server((HOST, port)) as listening:
    return make_server(HOST, port, app.server, threaded=True, fd=listening.fileno())


def _layout(name: str, version: int, found: Contents) -> html.Main:
  tiles, first, _, _ = _changing(found)
  return html.Main([
    html.Header([html.H1(name), html.P(id="state", className="brief failed")]),
    html.Div(tiles, id="all-tiles", className="tiles"), html.Div(first, id="first-sections"),
    html.Div(id="other-sections"), html.Div(id="all-games"),
    html.Iframe(id="viewer", title="Game", sandbox="allow-scripts", hidden=True),
    dcc.Interval(id="poll", interval=_FIRST_POLL_MS), dcc.Store(id="version", data=-version)])


def _changing(found: Contents) -> tuple[list, list, list, list]:
  """Returns the children of the tiles, the first sections, the other ones and the games."""
  tiles = [html.Div([html.Div(tile.name, className="name"),
                     html.Div(tile.value, className="figure"),
                     html.Div(tile.remark, className="remark")], className="tile")
           for tile in found.tiles]
  parts = [_section(section) for section in found.sections]
  return tiles, parts[:_AT_ONCE], parts[_AT_ONCE:], [_section(found.games)]


def _section(section: sections.Section) -> html.Section:
  children: list[Component] = [html.H2(section.title)]
  if section.note:
    children.append(html.P(section.note))
  if section.key:
    children.append(html.Div([_key(*item) for item in section.key.items()], className="key"))
  if section.panels:
    children.append(html.Div(
      [_panel(section.title, panel, f"{section.name}-{i}")
       for i, panel in enumerate(section.panels)],
      className=f"cards {sections.columns(section)}"))
  if section.table:
    children.append(_table(section.table))
  return html.Section(children, id=section.name)


def _key(name: str, style: plots.Style) -> html.Button:
  """Returns a player's name with its looks; a click on it hides its curves."""
  attributes: dict[str, Any] = {"data-player": name, "aria-pressed": "true"}
  return html.Button(
    [html.I(style={"borderTop": sections.border_of(style)}), name], **attributes)


def _panel(section: str, panel: sections.Panel, name: str) -> html.Div:
  children: list[Component] = [html.H3(panel.title)] if panel.title else []
  if panel.sortable:
    options = [html.Option(sort, value=sort) for sort in sections.SORTS]
    children += [html.Label(["sorted by ", html.Select(options, id="sort")]), html.P(id="pair")]
  label: dict[str, Any] = {
    "role": "img", "aria-label": plots.alternative(panel.title or section, panel.figure)}
  children.append(html.Div(dcc.Graph(id=name, figure=panel.figure, config=_PLOT_SETTINGS), **label))
  if panel.sortable:
    children.append(html.Ol(id="numbers"))
  return html.Div(children, className="card")


def _table(table: sections.Table) -> html.Div:
  lines = []
  for row, replay in zip(table.rows, table.replays, strict=True):
    cells: list[Component] = [html.Th(row[0])]
    for column, value in zip(table.header[1:], row[1:], strict=True):
      named: dict[str, Any] = {"data-column": column}  # shown on narrow screens
      cells.append(html.Td(value, **named))
    if replay:
      marked: dict[str, Any] = {"data-replay": replay}  # read by the page's script
      cells.append(html.Td(html.Button("watch", **marked)))
    lines.append(html.Tr(cells))
  header = html.Thead(html.Tr([html.Th(name) for name in table.header]))
  return html.Div(html.Table([header, html.Tbody(lines)], className="stack"), className="card")
