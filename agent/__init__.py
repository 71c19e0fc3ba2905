"""The agent: observations in, actions out. Pure functions over JAX and Haiku."""

from starleague.agent.config import AgentConfig, full, mini, preset, small
from starleague.agent.policy import Policy, StepOutput, UnrollOutput, make_policy
from starleague.agent.pretrained import Pretrained, PretrainedError, load_pretrained
from starleague.agent.types import (
  Action,
  CoreState,
  Observation,
  Privileged,
  Statistics,
  Step,
  Trajectory,
)

__all__ = ["Action", "AgentConfig", "CoreState", "Observation", "Policy",
           "Pretrained", "PretrainedError", "Privileged", "Statistics", "Step", "StepOutput",
           "Trajectory", "UnrollOutput", "full", "load_pretrained", "make_policy", "mini",
           "preset", "small"]
