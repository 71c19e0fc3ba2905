"""The losses once more in float64 numpy, step by step as the papers write them."""

import numpy as np


def vtrace(v, bootstrap, r, g, rho, clip_rho=1.0, clip_c=1.0, clip_pg_rho=1.0, lambda_=1.0):
  """(targets vs, advantages), both [T]."""
  v, r, g, rho = (np.asarray(x, np.float64) for x in (v, r, g, rho))
  length = len(r)
  v_next = np.append(v[1:], bootstrap)
  vs, advantages = np.zeros(length), np.zeros(length)
  vs_next = bootstrap
  for t in reversed(range(length)):
    delta = min(clip_rho, rho[t]) * (r[t] + g[t] * v_next[t] - v[t])
    trace = lambda_ * min(clip_c, rho[t])
    vs[t] = v[t] + delta + g[t] * trace * (vs_next - v_next[t])
    q = r[t] + g[t] * (lambda_ * vs_next + (1 - lambda_) * v_next[t])
    advantages[t] = min(clip_pg_rho, rho[t]) * (q - v[t])
    vs_next = vs[t]
  return vs, advantages


def lambda_returns(v_next, r, g, lambda_):
  """[T]; `lambda_` is a number or [T]."""
  v_next, r, g = (np.asarray(x, np.float64) for x in (v_next, r, g))
  lambda_ = np.broadcast_to(lambda_, r.shape)
  returns, after = np.zeros(len(r)), v_next[-1]
  for t in reversed(range(len(r))):
    returns[t] = r[t] + g[t] * (lambda_[t] * after + (1 - lambda_[t]) * v_next[t])
    after = returns[t]
  return returns


def upgo(v, bootstrap, r, g):
  """[T], straight from the definition: follow on while the next step's one-step return is no
  worse than its value."""
  v_next = np.append(v[1:], bootstrap)
  returns = np.zeros(len(r))
  for t in reversed(range(len(r))):
    if t == len(r) - 1:
      after = bootstrap
    else:
      follow = r[t + 1] + g[t + 1] * v_next[t + 1] >= v[t + 1]
      after = returns[t + 1] if follow else v_next[t]
    returns[t] = r[t] + g[t] * after
  return returns


def log_softmax(logits):
  logits = np.asarray(logits, np.float64)
  shifted = logits - logits.max(-1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def entropy(logits):
  """Over log of the number of choices."""
  log_p = log_softmax(logits)
  return -(np.exp(log_p) * log_p).sum(-1) / np.log(log_p.shape[-1])


def kl(teacher, student):
  teacher, student = log_softmax(teacher), log_softmax(student)
  return (np.exp(teacher) * (teacher - student)).sum(-1)
