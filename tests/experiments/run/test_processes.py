"""The process runner with small children: restarts, clean and forced ends, no orphans."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from starleague.experiments.run import processes
from starleague.experiments.run.processes import ProcessFailed, Runner, State
from starleague.experiments.run.programs import Address, Own, Process

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _python(tmp_path, name, code, restarts=0, env=None):
  """Returns a process that runs a script without site packages, which starts fast."""
  script = tmp_path / f"{name}.py"
  script.write_text(textwrap.dedent(code))
  argv = [sys.executable, "-I", "-S", "-u", str(script)]
  return Process(name, argv, env or {}, tmp_path / "logs" / f"{name}.log", restarts)


def _until(condition, seconds=20.0):
  """Waits for a condition with a deadline; returns its value."""
  end = time.monotonic() + seconds
  while time.monotonic() < end:
    if value := condition():
      return value
    time.sleep(0.01)
  raise AssertionError(f"no result within {seconds} s: {condition}")


def _alive(pid):
  """Returns whether a process runs; a zombie does not."""
  try:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
  except (FileNotFoundError, ProcessLookupError):
    return False
  return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def _log(process):
  return process.log_path.read_text() if process.log_path.exists() else ""


SLEEP = "import time; print('up'); time.sleep(60)"
STUBBORN = """
  import signal, time
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  print("up")
  time.sleep(60)
"""


def test_finishes_with_its_environment_and_log(tmp_path):
  child = _python(tmp_path, "one", """
    import os, sys
    print(os.environ["COLOUR"], "HOME" in os.environ)
    print("to stderr", file=sys.stderr)
  """, env={"COLOUR": "blue"})
  with Runner([child]) as runner:
    runner.wait(["one"], timeout_seconds=20)
    assert runner.states() == {"one": State.FINISHED}
    assert runner.pids() == {}
  assert runner.states() == {"one": State.FINISHED}
  assert _log(child) == f"blue {'HOME' in os.environ}\nto stderr\n"


def test_a_crash_is_restarted_to_the_limit_then_raised_with_its_log(tmp_path):
  count = tmp_path / "count"
  child = _python(tmp_path, "crasher", f"""
    with open({str(count)!r}, "a") as file: file.write("x")
    raise SystemError("map is missing")
  """, restarts=2)
  other = _python(tmp_path, "other", SLEEP)
  with Runner([child, other], backoff_seconds=0.01) as runner:
    with pytest.raises(ProcessFailed) as caught:
      runner.wait(["crasher"], timeout_seconds=20)
    assert runner.states()["crasher"] is State.FAILED
    assert runner.restarts() == {"crasher": 2, "other": 0}
    assert runner.states()["other"] is State.RUNNING
    pid = runner.pids()["other"]
  assert count.read_text() == "xxx"
  message = str(caught.value)
  assert caught.value.name == "crasher" and caught.value.status == 1
  assert "process 'crasher' exited with status 1 after 2 restarts in a row" in message
  assert str(child.log_path) in message and "  | SystemError: map is missing" in message
  assert not _alive(pid)


def test_a_restart_can_succeed(tmp_path):
  mark = tmp_path / "mark"
  child = _python(tmp_path, "second", f"""
    import os, sys
    if not os.path.exists({str(mark)!r}):
      open({str(mark)!r}, "w").close()
      sys.exit(3)
  """, restarts=5)
  with Runner([child], backoff_seconds=0.01) as runner:
    runner.wait(["second"], timeout_seconds=20)
    assert runner.restarts() == {"second": 1}


def test_backoff_doubles_to_its_limit_and_resets_after_a_recovery(tmp_path):
  """With a scripted clock: the wait before each restart."""
  now = [0.0]
  child = _python(tmp_path, "crasher", "raise SystemExit(1)", restarts=6)
  runner = Runner([child], backoff_seconds=2.0, max_backoff_seconds=8.0, recovery_seconds=8.0,
                  clock=lambda: now[0])
  with runner:
    for restart, wait in enumerate([2.0, 4.0, 8.0, 8.0, None, 2.0]):
      if wait is None:  # it now runs for longer than recovery_seconds
        now[0] += 8.5
        wait = 2.0
      _until(lambda: runner.poll()["crasher"] is State.WAITING)
      now[0] += wait - 0.125
      assert runner.poll()["crasher"] is State.WAITING, restart
      assert runner.restarts()["crasher"] == restart
      now[0] += 0.125
      runner.poll()
      assert runner.restarts()["crasher"] == restart + 1
      if restart == 4:
        now[0] += 8.5


def test_restarts_refill_after_a_recovery(tmp_path):
  """The limit is one of deaths in a row: a process that recovers each time is never given up."""
  now = [0.0]
  child = _python(tmp_path, "crasher", "raise SystemExit(1)", restarts=1)
  runner = Runner([child], backoff_seconds=1.0, recovery_seconds=100.0, clock=lambda: now[0])

  def die_after(seconds):
    now[0] += seconds
    _until(lambda: runner.poll()["crasher"] is State.WAITING)
    now[0] += 1.0
    runner.poll()

  with runner:
    for restart in range(1, 6):
      die_after(101.0)
      assert runner.restarts()["crasher"] == restart
    with pytest.raises(ProcessFailed, match="after 1 restarts in a row"):
      die_after(99.0)


def test_a_killed_child_is_reported_with_the_signal_name(tmp_path):
  child = _python(tmp_path, "victim", SLEEP)
  with Runner([child]) as runner:
    os.kill(runner.pids()["victim"], signal.SIGKILL)
    with pytest.raises(ProcessFailed, match=r"'victim' was killed by SIGKILL \(out of memory\?\)"):
      runner.wait(["victim"], timeout_seconds=20)


def test_stop_lets_a_child_clean_up(tmp_path):
  child = _python(tmp_path, "tidy", """
    import signal, sys, time
    def end(number, frame):
      print("saved")
      sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    print("up")
    time.sleep(60)
  """)
  with Runner([child]) as runner:
    _until(lambda: "up" in _log(child))
    begin = time.monotonic()
    assert runner.stop() == {"tidy": 0}
    assert time.monotonic() - begin < 5
    assert runner.stop() == {}
  assert "saved" in _log(child)
  assert runner.states() == {"tidy": State.STOPPED}


def test_stop_kills_children_that_ignore_sigterm_at_one_deadline(tmp_path):
  children = [_python(tmp_path, f"stubborn{i}", STUBBORN) for i in range(3)]
  with Runner(children, deadline_seconds=0.5) as runner:
    for child in children:
      _until(lambda child=child: "up" in _log(child))
    pids = runner.pids()
    begin = time.monotonic()
    statuses = runner.stop()
    assert 0.5 <= time.monotonic() - begin < 5
  assert statuses == {f"stubborn{i}": -signal.SIGKILL for i in (0, 1, 2)}
  assert not any(_alive(pid) for pid in pids.values())


def test_stop_ends_the_server_after_the_others(tmp_path):
  """A process that flushes to a server at its end still finds it."""
  order = tmp_path / "order"
  tidy = f"""
    import signal, sys, time
    def end(number, frame):
      time.sleep(float(sys.argv[1]))
      with open({str(order)!r}, "a") as file: file.write(sys.argv[2] + " ")
      sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    print("up")
    time.sleep(60)
  """
  children = []
  for name, seconds in (("server", "0"), ("client", "0.3"), ("other", "0")):
    child = _python(tmp_path, name, tidy)
    children.append(child._replace(argv=[*child.argv, seconds, name], ends_last=name == "server"))
  with Runner(children) as runner:
    for child in children:
      _until(lambda child=child: "up" in _log(child))
    assert runner.stop() == {"server": 0, "client": 0, "other": 0}
  assert order.read_text() == "other client server "


def test_stop_is_called_when_the_body_raises(tmp_path):
  child = _python(tmp_path, "sleeper", SLEEP)
  with pytest.raises(KeyboardInterrupt):
    with Runner([child]) as runner:
      pid = runner.pids()["sleeper"]
      raise KeyboardInterrupt
  assert not _alive(pid)


def test_children_of_a_dead_child_are_killed(tmp_path):
  child = _python(tmp_path, "mother", """
    import os, sys, time
    pid = os.fork()
    if pid == 0:
      time.sleep(60)
    print(pid)
  """)
  with Runner([child]) as runner:
    runner.wait(["mother"], timeout_seconds=20)
    grandchild = int(_log(child))
    _until(lambda: not _alive(grandchild))


def test_children_have_a_session_of_their_own(tmp_path):
  child = _python(tmp_path, "sleeper", SLEEP)
  with Runner([child]) as runner:
    pid = runner.pids()["sleeper"]
    assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_outlives_its_parent(tmp_path, sent):
  """Neither a child that ignores SIGTERM, nor a child of a parent that gets SIGKILL."""
  child = _python(tmp_path, "stubborn", STUBBORN)
  parent = tmp_path / "parent.py"
  parent.write_text(textwrap.dedent(f"""
    import pathlib, sys, time
    from starleague.experiments.run.processes import Runner, interrupt_on_sigterm
    from starleague.experiments.run.programs import Process
    interrupt_on_sigterm()
    log = pathlib.Path({str(child.log_path)!r})
    children = [Process("stubborn", {child.argv!r}, {{}}, log)]
    with Runner(children, deadline_seconds=0.3) as runner:
      while "up" not in log.read_text():
        time.sleep(0.01)
      print(runner.pids()["stubborn"], flush=True)
      time.sleep(60)
  """))
  running = subprocess.Popen(
    [sys.executable, str(parent)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
  try:
    pid = int(running.stdout.readline())
    assert _alive(pid)
    running.send_signal(sent)
    _, errors = running.communicate(timeout=20)
    _until(lambda: not _alive(pid))
  finally:
    running.kill()
    running.wait()
  if sent is signal.SIGKILL:
    assert running.returncode == -signal.SIGKILL
  else:
    assert "KeyboardInterrupt" in errors


def test_a_failed_start_ends_the_other_children(tmp_path):
  first = _python(tmp_path, "first", SLEEP)
  second = Process("second", ["/no/such/program"], {}, tmp_path / "second.log")
  runner = Runner([first, second])
  with pytest.raises(FileNotFoundError, match="process 'second': no executable '/no/such/program'"):
    runner.start()
  assert runner.states() == {"first": State.STOPPED, "second": State.STOPPED}
  assert runner.pids() == {}


def test_start_in_another_thread_raises(tmp_path):
  runner = Runner([_python(tmp_path, "sleeper", SLEEP)])
  errors = []

  def start():
    try:
      runner.start()
    except RuntimeError as error:
      errors.append(str(error))

  thread = threading.Thread(target=start)
  thread.start()
  thread.join(timeout=20)
  assert len(errors) == 1 and "must be started in the main thread" in errors[0]


def test_wait_raises_at_its_timeout_and_for_unknown_names(tmp_path):
  with Runner([_python(tmp_path, "sleeper", SLEEP)]) as runner:
    with pytest.raises(TimeoutError, match=r"still not finished: \['sleeper'\]"):
      runner.wait(["sleeper"], timeout_seconds=0.05, interval_seconds=0.01)
    with pytest.raises(ValueError, match=r"no process named \['walker'\]"):
      runner.wait(["walker"], timeout_seconds=0.05)


@pytest.mark.parametrize(("changes", "message"), [
  ({"argv": "python script.py"}, "argv must be a sequence"),
  ({"argv": []}, "argv must be a sequence"),
  ({"restarts": -1}, "restarts must be from 0 up; found -1")])
def test_invalid_processes_raise(tmp_path, changes, message):
  with pytest.raises(ValueError, match=message):
    Runner([_python(tmp_path, "one", SLEEP)._replace(**changes)])


def test_repeated_names_raise(tmp_path):
  child = _python(tmp_path, "twin", SLEEP)
  with pytest.raises(ValueError, match=r"more than one \['twin'\]"):
    Runner([child, child])


class _Scripted:
  """A program that does what a test says."""

  pid = None

  def __init__(self, process, addresses, address):
    self.process, self.addresses, self.address, self.ended = process, addresses, address, None

  def status(self):
    return self.ended

  def signal(self, number):
    self.kill()

  def kill(self):
    self.ended = -9 if self.ended is None else self.ended
    return self.ended


class _Place:
  """Starts scripted programs; `hosts` has those of the servers, by name."""

  def __init__(self, **hosts):
    self.hosts, self.started = hosts, []

  def start(self, process, addresses, last):
    self.started.append(process.name)
    return _Scripted(process, addresses, self.hosts.get(process.name))


def _scripted(name, *words, **changes):
  return Process(name, ["program", *words], {}, pathlib.Path("log"), restarts=3, **changes)


def _programs(runner):
  return {child.process.name: child.program for child in runner._children}


def test_a_client_gets_the_address_of_its_server_and_starts_after_it(tmp_path):
  client = _python(tmp_path, "client", "import sys; print(sys.argv[1:])")
  client = client._replace(argv=[*client.argv, "--at", Address("server")])
  server = _python(tmp_path, "server", "import sys; print(sys.argv[1:])")
  server = server._replace(argv=[Own.PYTHON, *server.argv[1:], Own.HOST, Own.PORT, Own.ADDRESS],
                           listens=True)
  with Runner([client, server]) as runner:
    assert runner.states() == {"client": State.WAITING, "server": State.RUNNING}
    runner.wait(["client", "server"], timeout_seconds=20)
    address = runner.addresses()["server"]
  assert _log(client) == f"['--at', '{address}']\n"
  host, port = address.split(":")
  assert _log(server) == f"['{host}', '{port}', '{address}']\n"
  assert host == "127.0.0.1" and 1024 < int(port) < 65536


def test_a_server_keeps_its_port_when_it_is_restarted(tmp_path):
  server = _python(tmp_path, "server", "import sys, time; print(sys.argv[1]); time.sleep(60)", 1)
  server = server._replace(argv=[*server.argv, Own.PORT], listens=True)
  with Runner([server], backoff_seconds=0.01) as runner:
    _until(lambda: _log(server))
    os.kill(runner.pids()["server"], signal.SIGKILL)
    lines = _until(lambda: runner.poll() and len(found := _log(server).split()) == 2 and found)
  assert lines[0] == lines[1]


def test_a_client_waits_for_an_address_that_is_not_known_yet():
  place = _Place(server=None)
  with Runner([_scripted("server", listens=True), _scripted("client", Address("server"))],
              place=place) as runner:
    assert runner.poll() == {"server": State.RUNNING, "client": State.WAITING}
    _programs(runner)["server"].address = "a:1"
    assert runner.poll() == {"server": State.RUNNING, "client": State.RUNNING}
    assert _programs(runner)["client"].addresses == {"server": "a:1"}
  assert runner.restarts() == {"server": 0, "client": 0}


def test_clients_of_a_server_that_moves_are_restarted():
  """On a cluster a server may come back on another node."""
  place, now = _Place(server="a:1"), [0.0]
  with Runner([_scripted("server", listens=True), _scripted("client", Address("server")),
               _scripted("other")], place=place, backoff_seconds=1.0,
              clock=lambda: now[0]) as runner:
    _programs(runner)["server"].ended = -9
    runner.poll()
    now[0] = 1.0
    runner.poll()  # it comes back at its address
    assert runner.restarts() == {"server": 1, "client": 0, "other": 0}
    _programs(runner)["server"].ended, place.hosts["server"] = -9, "b:1"
    runner.poll()
    now[0] = 3.0
    runner.poll()
    runner.poll()
    assert runner.restarts() == {"server": 2, "client": 1, "other": 0}
    assert _programs(runner)["client"].addresses == {"server": "b:1"}


def test_a_gang_is_restarted_as_a_whole():
  place, now = _Place(first="a:1"), [0.0]
  gang = [_scripted("first", gang="learner", listens=True),
          _scripted("second", Address("first"), gang="learner")]
  with Runner([*gang, _scripted("other")], place=place, clock=lambda: now[0]) as runner:
    _programs(runner)["second"].ended = 1
    assert runner.poll() == {
      "first": State.WAITING, "second": State.WAITING, "other": State.RUNNING}
    assert _programs(runner)["first"].ended == -9
    now[0] = 1.0
    assert set(runner.poll().values()) == {State.RUNNING}
    assert place.started == ["first", "second", "other", "first", "second"]
    for name in ("first", "second"):
      _programs(runner)[name].ended = 0
    assert runner.poll()["second"] is State.FINISHED


def test_a_peer_must_listen():
  with pytest.raises(ValueError, match=r"'client': its peers \['server'\] must be processes that"):
    Runner([_scripted("server"), _scripted("client", Address("server"))])


def test_log_tail_reads_only_the_end(tmp_path):
  log = tmp_path / "long.log"
  log.write_text("".join(f"line {i}\n" for i in range(100_000)))
  assert processes.log_tail(log, lines=2) == ["line 99998", "line 99999"]
  assert len(processes.log_tail(log, lines=10**6, max_bytes=100)) == 10
  assert processes.log_tail(tmp_path / "none.log") == []
