"""The benchmark of the agent divides operations by the steps that the network computes."""

import types

import jax.numpy as jnp

from benchmarks import agent
from starleague.agent import config as agent_config

FLOPS, MEMORY = {"flops": 36e9}, types.SimpleNamespace(temp_size_in_bytes=3 * 2**20)


def test_operations_are_those_of_a_step_of_the_network(capsys):
  program = types.SimpleNamespace(cost_analysis=lambda: FLOPS, memory_analysis=lambda: MEMORY)
  agent.report("forward", program, 16, 18, (0.5, 0.25))
  assert capsys.readouterr().out == (
    "forward: 32.0 agent steps/s; 500 ms and 0.25 CPU-seconds a call of 16; 2.00 GFLOP a step of "
    "the network, 72 GFLOP/s; temporary memory 3 MiB\n")


def test_an_unroll_computes_one_more_step_of_each_sequence(monkeypatch):
  reported = []

  def unroll_batch(params, trajectories):
    values = params * trajectories.steps.discount
    return types.SimpleNamespace(logits=values, baselines=values)

  monkeypatch.setattr(agent.agent, "make_policy", lambda config: types.SimpleNamespace(
    unroll_batch=unroll_batch))
  monkeypatch.setattr(agent, "report", lambda name, program, *counts: reported.append(
    (name, *counts[:2])))
  config = agent_config.preset("mini")
  agent.unrolling(config, jnp.ones(()), agent.make_trajectories(config, 8 + 1, 2), 16, rounds=1)
  assert reported == [("forward", 16, 18), ("forward and backward", 16, 18)]
