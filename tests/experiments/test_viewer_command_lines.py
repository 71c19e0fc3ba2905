"""Wrong command lines of the viewers' launch files get one line that names the fault."""

import re

import pytest

from starleague.experiments import describe, play, play_skirmish, report, round_robin, watch
from tests.experiments.launch import launch

HELP = "; --help lists the flags"
FOLDER = r"expected the path of a file, found the folder '\.'; add a name"
L7 = ["--play", "L7", "L7"]
CASES = {
  watch: [
    ([], "expected REPLAY or PLAYER_1 PLAYER_2 beside the flags, found no arguments" + HELP),
    (["a.npz", "b.npz", "c.npz"], "expected REPLAY or PLAYER_1 PLAYER_2 beside the flags, found "
     "a.npz b.npz c.npz" + HELP),
    (["a.npz", "b.npz"], "expected a replay, or --play and two players; found a.npz b.npz"),
    (["--play", "rusher"],
     "expected a replay, or --play and two players; found rusher with --play"),
    (["none.npz"], "'none.npz': no such file or directory"),
    (["."], r"\.: expected an \.npz file, found a folder"),
    (["text.txt"], r"text\.txt: expected an \.npz file, found 12 bytes that begin with b'not ' .*"),
    (["empty.npz"], r"empty\.npz: expected an \.npz file, found 0 bytes .*"),
    (["text.txt", "--output", "."], "--output: " + FOLDER),
    (["text.txt", "--gif", "no/a.gif"], "--gif: folder no does not exist"),
    (["text.txt", "--save", "b.npz"], "--save needs --play: text.txt is a recorded game"),
    (["text.txt", "--swap_sides"], "--swap_sides needs --play: text.txt is a recorded game"),
    (["text.txt", "--z", "z.npz"], "--z needs --play: text.txt is a recorded game"),
    (["text.txt", "--nopredictions"], "--predictions needs --play: text.txt is a recorded game"),
    *((["text.txt", f"--{name}", value], f"--{name} needs --play: text.txt is a recorded game")
      for name, value in (("races", "zerg,zerg"), ("map", "open"), ("tier", "large"),
                          ("run_dir", "runs/mini"), ("seed", "0"))),
    (["text.txt", "--gif_view", "1"], "--gif_view needs --gif"),
    (["text.txt", "--speed", "8"], "--speed needs --terminal"),
    ([*L7, "--view", "1", "--gif", "a.gif"], "--view needs --terminal"),
    ([*L7, "--z", "none.npz"], "'none.npz': no such file or directory"),
    ([*L7, "--z", "text.txt"], r"text\.txt: expected an \.npz file, found 12 bytes .*"),
    (["a.npz", "--speed", "0"], "flag --speed=0.0: expected 0.01 to 1000" + HELP),
    (["a.npz", "--speed", "nan"], "flag --speed=nan: expected 0.01 to 1000" + HELP),
    (["a.npz", "--view", "3"], r"flag --view=3: 3 is not an? integer in the range \[0, 2\]" + HELP),
    (["--play", "rusher", "nobody"], "player 'nobody': expected one of passive, rusher, .*agent, "
     "pretrained in tier mini"),
    (["--play", "L7", "rusher"], "player 'rusher': expected one of .* in tier default"),
    ([*L7, "--tier", "huge"], "tier 'huge' does not exist; expected one of mini, default, large"),
    ([*L7, "--races", "zerg,orc"], "race 'orc': expected one of terran, protoss, zerg.*default"),
    ([*L7, "--races", "zerg"], "--races: expected two, found zerg"),
    ([*L7, "--map", "moon"], "map 'moon': expected one of open, ramps, river.*"),
    ([*L7, "--seed", "-1"], "flag --seed=-1: .*" + HELP),
    ([*L7, "--seed", "4294967296"], "flag --seed=4294967296: .*" + HELP),
    ([*L7, "--seed", "one"], "flag --seed=one: .*" + HELP),
    ([*L7, "--save", "no/a.npz"], "--save: folder no does not exist"),
    ([*L7, "--gif", "no/a.gif"], "--gif: folder no does not exist"),
    ([*L7, "--save", "."], "--save: " + FOLDER), ([*L7, "--gif", "."], "--gif: " + FOLDER),
    (["--play", "agent", "rusher"], "'agent' is the newest weights of a run: name the run with "
     "--run_dir"),
    (["--play", "rusher", "rusher", "--run_dir", "x"], "--run_dir is given, but none of rusher "
     "rusher is 'agent' or a player of its league"),
    (["--play", "agent", "rusher", "--run_dir", "x"], "x/config.json does not exist.*")],
  play: [
    (["pretrained"], "expected PLAYER_1 PLAYER_2 beside the flags, found pretrained" + HELP),
    (["pretrained", ""], "players: expected two names, found 'pretrained' and ''"),
    (["zerg:easy", "human"], "players: one of them must be agent or pretrained, found zerg:easy "
     "and human"),
    (["pretrained", "zerg:easy", "--run_dir", "runs/mini"],
     "--run_dir is given, but none of pretrained zerg:easy is 'agent'"),
    (["pretrained", "zerg:easy", "--out", "."], "--out: " + FOLDER),
    (["pretrained", "zerg:easy", "--out", "no/a.SC2Replay"], "--out: folder no does not exist")],
  play_skirmish: [
    (["L5"], "expected no arguments beside the flags, found L5" + HELP),
    (["--opponent", "nobody"], "player 'nobody': expected one of .* in tier default"),
    (["--opponent", "agent"],
     "'agent' is the newest weights of a run: name the run with --run_dir"),
    (["--opponent", "rusher", "--races", "zerg,zerg"], "race 'zerg': expected one of terran in.*"),
    (["--opponent", "rusher", "--save_replay", "no/game.npz"],
     "--save_replay: folder no does not exist"),
    (["--opponent", "rusher", "--save_replay", "."], "--save_replay: " + FOLDER),
    (["--seed", "-1"], "flag --seed=-1: .*" + HELP),
    (["--game_speed", "nan"], "flag --game_speed=nan: expected 0.25 to 8.0" + HELP),
    (["--page_port", "70000"], "flag --page_port=70000: .*" + HELP)],
  report: [
    ([], "expected RUN_DIR beside the flags, found no arguments" + HELP),
    (["a", "b"], "expected RUN_DIR beside the flags, found a b" + HELP),
    (["none"], "none: no such folder; expected the folder of a run, such as runs/NAME"),
    (["text.txt"], "text.txt: no such folder; expected the folder of a run, such as runs/NAME"),
    (["."], "results.csv: no such file; a run writes its figures there .*")],
  round_robin: [
    (["L0"], "expected no arguments beside the flags, found L0" + HELP),
    (["--entrants", "L0,nobody"],
     "--entrants: player 'nobody': expected one of .* in tier default"),
    (["--entrants", "rusher,builder"],
     "--entrants: player 'rusher': expected one of .* in tier default"),
    (["--entrants", "L0"], "--entrants: expected two or more different names, found L0"),
    (["--entrants", "L0,L0"], "--entrants: expected two or more different names, found L0,L0"),
    (["--entrants", "L0,L1", "--apart", "2"], "--apart: expected less than 2, the number of "
     "entrants, found 2"),
    (["--tier", "huge"], "--tier: expected one of mini, default, large, found 'huge'"),
    (["--tier", "mini", "--entrants", "rusher,builder", "--cross"],
     "--cross: tier mini has one race only"),
    (["--games_a_kind", "0"], "flag --games_a_kind=0: .*" + HELP),
    (["--seed", "-1"], "flag --seed=-1: .*" + HELP)],
  describe: [
    (["full"], "expected no arguments beside the flags, found full" + HELP),
    (["--preset", "huge"], "--preset: unknown agent preset 'huge': expected one of .*"),
    (["--write", "none.md"], "'none.md': no such file or directory"),
    (["--write", "."], "'.': is a directory"),
    (["--write", "text.txt"], "text.txt: expected <!-- generated: begin --> and then "
     "<!-- generated: end -->, once each; found 0 and 0"),
    (["--write", "binary.bin"], "binary.bin: 'utf-8' codec can't decode .*")],
}


@pytest.mark.parametrize(("module", "words", "message"), [
  pytest.param(module, words, message, id=f"{module.__name__.split('.')[-1]} {' '.join(words)}")
  for module, cases in CASES.items() for words, message in cases])
def test_wrong_command_line_gets_one_line(module, words, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "text.txt").write_text("not a replay")
  (tmp_path / "empty.npz").write_bytes(b"")
  (tmp_path / "binary.bin").write_bytes(b"\xff\x00")
  error = launch(module, *words)
  assert re.fullmatch(f"error: {message}", str(error)), error
  assert sorted(file.name for file in tmp_path.iterdir()) == ["binary.bin", "empty.npz", "text.txt"]
