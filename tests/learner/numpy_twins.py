"""Reference losses in float64 numpy, written step by step as in the papers."""

import numpy as np


def vtrace(v, bootstrap, r, g, rho, clip_rho=1.0, clip_c=1.0, clip_pg_rho=1.0, lambda_=1.0):
  """Computes (targets vs, advantages), both [T]."""
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
  """Computes lambda-returns [T]; `lambda_` is [] or [T]."""
  v_next, r, g = (np.asarray(x, np.float64) for x in (v_next, r, g))
  lambda_ = np.broadcast_to(lambda_, r.shape)
  returns, after = np.zeros(len(r)), v_next[-1]
  for t in reversed(range(len(r))):
    returns[t] = r[t] + g[t] * (lambda_[t] * after + (1 - lambda_[t]) * v_next[t])
    after = returns[t]
  return returns


def upgo(v, bootstrap, r, g):
  """Computes UPGO returns [T] by the definition: they follow the trajectory while the next step's
  one-step return is at least its value."""
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


def emphatic(g, rho, n):
  """Computes n-step emphatic weights [T] of a trajectory from the start of a game."""
  decay = [float(x) * min(1.0, float(y)) for x, y in zip(g, rho, strict=True)]
  weights = []
  for t in range(len(decay)):
    before = weights[t - n] if t >= n else 0.0
    weights.append(1.0 + float(np.prod(decay[max(t - n, 0):t])) * before)
  return np.array(weights)


def log_softmax(logits):
  logits = np.asarray(logits, np.float64)
  shifted = logits - logits.max(-1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def entropy(logits):
  """Computes the entropy normalised by log n."""
  log_p = log_softmax(logits)
  return -(np.exp(log_p) * log_p).sum(-1) / np.log(log_p.shape[-1])


def kl(teacher, student):
  teacher, student = log_softmax(teacher), log_softmax(student)
  return (np.exp(teacher) * (teacher - student)).sum(-1)


def log_prob(logits, label):
  """Returns the log-probs of labels: [..., n] and [...] to [...]."""
  label = np.asarray(label, int)[..., None]
  return np.take_along_axis(log_softmax(logits), label, axis=-1)[..., 0]


def joint_ratio(log_prob_, behaviour, mask):
  """Computes the product over used arguments of pi / mu: [N, T] each to [T]."""
  ratio = np.ones(log_prob_.shape[1])
  for pi, mu, used in zip(*(np.asarray(x, np.float64) for x in (log_prob_, behaviour, mask)),
                          strict=True):
    ratio *= np.where(used > 0, np.exp(pi) / np.exp(mu), 1.0)
  return ratio


def policy_gradient(log_prob_, advantage, mask):
  return -np.float64(mask) * np.float64(advantage) * np.float64(log_prob_)


def td_loss(v, bootstrap, r, g, lambda_):
  returns = lambda_returns(np.append(v[1:], bootstrap), r, g, lambda_)
  return (returns - np.asarray(v, np.float64)) ** 2 / 2


def explained_variance(values, returns, weight):
  values, returns = np.float64(values)[weight > 0], np.float64(returns)[weight > 0]
  return 1 - (returns - values).var() / returns.var()


def early(seconds, conditioned, until=240.0):
  return np.array([float(s < until and bool(c)) for s, c in zip(seconds, conditioned, strict=True)])


def supervised(logits, labels, mask):
  """Computes the cross-entropy; 0 for illegal labels, whose logit is -1e9."""
  legal = np.take_along_axis(np.asarray(logits), labels[:, None], -1)[:, 0] > -5e8
  return np.where(legal & (mask > 0), -log_prob(logits, labels), 0.0)


def discounted_returns(r, g):
  """Computes R_t, the sum over k >= t of r_k times the discounts from t to k - 1."""
  r, g = np.float64(r), np.float64(g)
  return np.array([sum(np.prod(g[t:k]) * r[k] for k in range(t, len(r))) for t in range(len(r))])


def self_imitation(log_prob_, v, returns, value_cost):
  gain = np.maximum(np.float64(returns) - np.float64(v), 0.0)
  return -np.float64(log_prob_) * gain + value_cost * gain**2 / 2


def coma(q, probabilities):
  """Computes Q minus its mean under the policy, choice by choice."""
  q, probabilities = np.float64(q), np.float64(probabilities)
  return np.array([[row[u] - sum(p * x for p, x in zip(pi, row, strict=True))
                    for u in range(len(row))] for row, pi in zip(q, probabilities, strict=True)])


def coma_loss(q, logits, action):
  advantage = np.take_along_axis(coma(q, np.exp(log_softmax(logits))), action[:, None], -1)[:, 0]
  return -advantage * log_prob(logits, action)


def policy_distillation(teacher, student, kind, temperature=1.0):
  teacher, student = np.float64(teacher), np.float64(student)
  if kind == "nll":
    return -log_prob(student, teacher.argmax(-1))
  if kind == "mse":
    return ((teacher - student) ** 2).sum(-1)
  return kl(teacher / temperature, student)


def popart(w, b, shift, scale, moment, targets, tasks, step_size):
  """Computes (w, b, shift, scale, second moment) after an update, task by task."""
  w, b, shift, scale, moment = (np.array(x, np.float64) for x in (w, b, shift, scale, moment))
  for k in range(len(shift)):
    mine = np.float64(targets)[tasks == k]
    if not len(mine):
      continue
    mean = (1 - step_size) * shift[k] + step_size * mine.mean()
    moment[k] = (1 - step_size) * moment[k] + step_size * (mine**2).mean()
    deviation = np.sqrt(moment[k] - mean**2)
    w[:, k] *= scale[k] / deviation
    b[k] = (scale[k] * b[k] + shift[k] - mean) / deviation
    shift[k], scale[k] = mean, deviation
  return w, b, shift, scale, moment


def rescale(x, epsilon=1e-3):
  x = np.float64(x)
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def unscale(x, epsilon=1e-3):
  x = np.float64(x)
  root = np.sqrt(1 + 4 * epsilon * (np.abs(x) + 1 + epsilon))
  return np.sign(x) * (((root - 1) / (2 * epsilon)) ** 2 - 1)


def double_q_targets(online, target, r, g, n, epsilon=1e-3):
  """Computes n-step returns bootstrapped from the target network at the online network's choice."""
  length = len(r)
  v = unscale([target[t][np.argmax(online[t])] for t in range(length)], epsilon)
  returns = []
  for t in range(length):
    end = min(t + n, length)
    total = v[end - 1]
    for k in reversed(range(t, end)):
      total = np.float64(r[k]) + np.float64(g[k]) * total
    returns.append(total)
  return rescale(returns, epsilon)


def priority(errors, mask, eta=0.9, exponent=0.9):
  errors = np.abs(np.float64(errors))[mask > 0]
  return (eta * errors.max() + (1 - eta) * errors.mean()) ** exponent
