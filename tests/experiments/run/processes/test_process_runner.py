"""The process runner with small children: restarts, clean and forced ends, no orphans."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from starleague.common.errors import FINAL_STATUS
from starleague.experiments.run.processes import process_runner
from starleague.experiments.run.processes.process_runner import ProcessFailed, Runner, State
from starleague.experiments.run.processes.programs import Process
from tests.experiments.run.small_programs import log_of, python_process, until

ROOT = pathlib.Path(__file__).resolve().parents[4]


def _alive(pid):
  """Returns whether a process runs; a zombie does not."""
  try:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
  except (FileNotFoundError, ProcessLookupError):
    return False
  return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


SLEEP = "import time; print('up'); time.sleep(60)"
STUBBORN = """
  import signal, time
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  print("up")
  time.sleep(60)
"""


def test_finishes_with_its_environment_andlog_of(tmp_path):
  child = python_process(tmp_path, "one", """
    import os, sys
    print(os.environ["COLOUR"], "HOME" in os.environ)
    print("to stderr", file=sys.stderr)
  """, env={"COLOUR": "blue"})
  with Runner([child]) as runner:
    runner.wait(["one"], timeout_seconds=20)
    assert runner.states() == {"one": State.FINISHED}
    assert runner.pids() == {}
  assert runner.states() == {"one": State.FINISHED}
  assert log_of(child) == f"blue {'HOME' in os.environ}\nto stderr\n"


def test_a_crash_is_restarted_to_the_limit_then_raised_with_itslog_of(tmp_path):
  count = tmp_path / "count"
  child = python_process(tmp_path, "crasher", f"""
    with open({str(count)!r}, "a") as file: file.write("x")
    raise SystemError("map is missing")
  """, restarts=2)
  other = python_process(tmp_path, "other", SLEEP)
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
  child = python_process(tmp_path, "second", f"""
    import os, sys
    if not os.path.exists({str(mark)!r}):
      open({str(mark)!r}, "w").close()
      sys.exit(3)
  """, restarts=5)
  with Runner([child], backoff_seconds=0.01) as runner:
    runner.wait(["second"], timeout_seconds=20)
    assert runner.restarts() == {"second": 1}
    assert runner.take_deaths() == [("second", "exited with status 3")]
    assert runner.take_deaths() == []


def test_a_process_that_the_run_does_not_wait_for_is_restarted_after_status_0(tmp_path):
  """A stop signal to it alone ends it so; at the end of the run it is stopped."""
  server = python_process(tmp_path, "server", """
    import signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("up")
    time.sleep(60)
  """, restarts=1)
  learner = python_process(tmp_path, "learner", "")
  with Runner([server, learner], until=["learner"], backoff_seconds=0.01) as runner:
    runner.wait(["learner"], timeout_seconds=20)
    for ups, restarts in ((1, 0), (2, 1)):
      until(lambda ups=ups: runner.poll() and log_of(server) == "up\n" * ups)
      assert runner.restarts() == {"server": restarts, "learner": 0}
      if not restarts:
        os.kill(runner.pids()["server"], signal.SIGTERM)
    assert runner.take_deaths() == [("server", "exited with status 0")]
    assert runner.stop() == {"server": 0}
    assert runner.states() == {"server": State.STOPPED, "learner": State.FINISHED}
    assert runner.take_deaths() == []


def test_an_error_that_a_restart_would_meet_again_is_final(tmp_path):
  """One line, the last of the log, and no restart."""
  child = python_process(tmp_path, "full", f"""
    import sys
    print("a traceback of a thread")
    print("error: /runs/mini: no space is left on the disk", file=sys.stderr)
    sys.exit({FINAL_STATUS})
  """, restarts=5)
  with Runner([child], backoff_seconds=0.01) as runner:
    with pytest.raises(ProcessFailed) as failed:
      runner.wait(["full"], timeout_seconds=20)
    assert runner.restarts() == {"full": 0}
  assert str(failed.value) == (
    "process 'full': error: /runs/mini: no space is left on the disk")


@pytest.mark.parametrize("printed", ["", "error"])
def test_a_log_on_a_full_disk_does_not_hide_the_cause(tmp_path, monkeypatch, printed):
  """The last line of the log is missing, or a part of it."""
  child = python_process(
    tmp_path, "full", f"print({printed!r}, end='')\nraise SystemExit({FINAL_STATUS})")
  monkeypatch.setattr(process_runner.disk, "has_space", lambda folder: False)
  with Runner([child]) as runner:
    with pytest.raises(ProcessFailed) as failed:
      runner.wait(["full"], timeout_seconds=20)
  assert re.fullmatch(rf"process 'full': error: {child.log_path.parent}: no space left, \d+ MB are "
                      "free: free some space, then .*", str(failed.value))


def test_backoff_doubles_to_its_limit_and_resets_after_a_recovery(tmp_path):
  """With a scripted clock: the wait before each restart."""
  now = [0.0]
  child = python_process(tmp_path, "crasher", "raise SystemExit(1)", restarts=6)
  runner = Runner([child], backoff_seconds=2.0, max_backoff_seconds=8.0, recovery_seconds=8.0,
                  clock=lambda: now[0])
  with runner:
    for restart, wait in enumerate([2.0, 4.0, 8.0, 8.0, None, 2.0]):
      if wait is None:  # it now runs for longer than recovery_seconds
        now[0] += 8.5
        wait = 2.0
      until(lambda: runner.poll()["crasher"] is State.WAITING)
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
  child = python_process(tmp_path, "crasher", "raise SystemExit(1)", restarts=1)
  runner = Runner([child], backoff_seconds=1.0, recovery_seconds=100.0, clock=lambda: now[0])

  def die_after(seconds):
    now[0] += seconds
    until(lambda: runner.poll()["crasher"] is State.WAITING)
    now[0] += 1.0
    runner.poll()

  with runner:
    for restart in range(1, 6):
      die_after(101.0)
      assert runner.restarts()["crasher"] == restart
    with pytest.raises(ProcessFailed, match="after 1 restarts in a row"):
      die_after(99.0)


def test_a_killed_child_is_reported_with_the_signal_name(tmp_path):
  child = python_process(tmp_path, "victim", SLEEP)
  with Runner([child]) as runner:
    os.kill(runner.pids()["victim"], signal.SIGKILL)
    with pytest.raises(ProcessFailed, match=r"'victim' was killed by SIGKILL \(out of memory\?\)"):
      runner.wait(["victim"], timeout_seconds=20)


def test_stop_lets_a_child_clean_up(tmp_path):
  child = python_process(tmp_path, "tidy", """
    import signal, sys, time
    def end(number, frame):
      print("saved")
      sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    print("up")
    time.sleep(60)
  """)
  with Runner([child]) as runner:
    until(lambda: "up" in log_of(child))
    begin = time.monotonic()
    assert runner.stop() == {"tidy": 0}
    assert time.monotonic() - begin < 5
    assert runner.stop() == {}
  assert "saved" in log_of(child)
  assert runner.states() == {"tidy": State.STOPPED}


def test_stop_kills_children_that_ignore_sigterm_at_one_deadline(tmp_path):
  children = [python_process(tmp_path, f"stubborn{i}", STUBBORN) for i in range(3)]
  with Runner(children, deadline_seconds=0.5) as runner:
    for child in children:
      until(lambda child=child: "up" in log_of(child))
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
    child = python_process(tmp_path, name, tidy)
    children.append(child._replace(argv=[*child.argv, seconds, name], ends_last=name == "server"))
  with Runner(children) as runner:
    for child in children:
      until(lambda child=child: "up" in log_of(child))
    assert runner.stop() == {"server": 0, "client": 0, "other": 0}
  assert order.read_text() == "other client server "


def test_stop_is_called_when_the_body_raises(tmp_path):
  child = python_process(tmp_path, "sleeper", SLEEP)
  with pytest.raises(KeyboardInterrupt):
    with Runner([child]) as runner:
      pid = runner.pids()["sleeper"]
      raise KeyboardInterrupt
  assert not _alive(pid)


def test_children_of_a_dead_child_are_killed(tmp_path):
  child = python_process(tmp_path, "mother", """
    import os, sys, time
    pid = os.fork()
    if pid == 0:
      time.sleep(60)
    print(pid)
  """)
  with Runner([child]) as runner:
    runner.wait(["mother"], timeout_seconds=20)
    grandchild = int(log_of(child))
    until(lambda: not _alive(grandchild))


def test_children_have_a_session_of_their_own(tmp_path):
  child = python_process(tmp_path, "sleeper", SLEEP)
  with Runner([child]) as runner:
    pid = runner.pids()["sleeper"]
    assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_outlives_its_parent(tmp_path, sent):
  """Neither a child that ignores SIGTERM, nor a child of a parent that gets SIGKILL."""
  child = python_process(tmp_path, "stubborn", STUBBORN)
  parent = tmp_path / "parent.py"
  parent.write_text(textwrap.dedent(f"""
    import pathlib, sys, time
    from starleague.experiments.run.processes.process_runner import Runner, interrupt_on_sigterm
    from starleague.experiments.run.processes.programs import Process
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
    until(lambda: not _alive(pid))
  finally:
    running.kill()
    running.wait()
  if sent is signal.SIGKILL:
    assert running.returncode == -signal.SIGKILL
  else:
    assert "KeyboardInterrupt" in errors


def test_a_failed_start_ends_the_other_children(tmp_path):
  first = python_process(tmp_path, "first", SLEEP)
  second = Process("second", ["/no/such/program"], {}, tmp_path / "second.log")
  runner = Runner([first, second])
  with pytest.raises(FileNotFoundError, match="process 'second': no executable '/no/such/program'"):
    runner.start()
  assert runner.states() == {"first": State.STOPPED, "second": State.STOPPED}
  assert runner.pids() == {}


def test_start_in_another_thread_raises(tmp_path):
  runner = Runner([python_process(tmp_path, "sleeper", SLEEP)])
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
  with Runner([python_process(tmp_path, "sleeper", SLEEP)]) as runner:
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
    Runner([python_process(tmp_path, "one", SLEEP)._replace(**changes)])


def test_repeated_names_raise(tmp_path):
  child = python_process(tmp_path, "twin", SLEEP)
  with pytest.raises(ValueError, match=r"more than one \['twin'\]"):
    Runner([child, child])


def test_log_tail_reads_only_the_end(tmp_path):
  log = tmp_path / "long.log"
  log.write_text("".join(f"line {i}\n" for i in range(100_000)))
  assert process_runner.log_tail(log, lines=2) == ["line 99998", "line 99999"]
  assert len(process_runner.log_tail(log, lines=10**6, max_bytes=100)) == 10
  assert process_runner.log_tail(tmp_path / "none.log") == []


def test_a_program_runs_to_its_end_while_progress_is_shown(tmp_path):
  shown = []
  process = python_process(tmp_path, "short", "import time; time.sleep(0.3); print('done')")
  process_runner.run_to_end(process, lambda: shown.append(1), 5.0, 0.01)
  assert log_of(process) == "done\n" and len(shown) > 2
  broken = python_process(tmp_path, "broken", "raise SystemExit(3)")
  with pytest.raises(process_runner.ProcessFailed, match="'broken' exited with status 3"):
    process_runner.run_to_end(broken, lambda: None, 5.0, 0.01)


def test_an_error_while_progress_is_shown_ends_the_program(tmp_path):
  process = python_process(tmp_path, "sleeper", """
    import os, time
    print(os.getpid(), flush=True)
    time.sleep(60)
  """)

  def show():
    if log_of(process):
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    process_runner.run_to_end(process, show, 5.0, 0.01)
  with pytest.raises(ProcessLookupError):
    os.kill(int(log_of(process)), 0)
