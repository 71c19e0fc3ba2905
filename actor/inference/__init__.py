"""Inference as a service: dynamic batching for games that run outside JAX."""

from starleague.actor.inference.batching import Batcher
from starleague.actor.inference.client import Client, ServiceError
from starleague.actor.inference.model import Model, ServedPolicy
from starleague.actor.inference.service import Service
from starleague.actor.inference.slots import Header
from starleague.actor.inference.sockets import Listener

__all__ = ["Batcher", "Client", "Header", "Listener", "Model", "ServedPolicy", "Service",
           "ServiceError"]
