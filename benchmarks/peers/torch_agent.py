"""A PyTorch agent of the same architecture and sizes, as a peer for benchmarks/agent.py.

It is PyTorch in float32 on one thread, eager or by torch.compile, with batched operations
throughout: no vmap, fused attention, embedding bags for the entity fields. It needs torch and NumPy
only, and runs in an environment of its own, outside the lock:

  python -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
  python -m benchmarks.agent --peer /tmp/torch/bin/python

benchmarks/agent.py starts it and sends the sizes as one line of JSON, then one line per round:
"eager" or "compiled", and "acting", "forward" or "forward and backward". Each reply is the CPU
seconds of that round.
"""

import json
import sys
import time
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn


def glu(inputs, context, outputs):
  return nn.ModuleDict({"gate": nn.Linear(context, inputs), "output": nn.Linear(inputs, outputs)})


def apply_glu(module, x, context):
  return module["output"](torch.sigmoid(module["gate"](context)) * x)


class ResidualBlock(nn.Module):
  """Twice layer norm, ReLU and a linear layer, added to the input."""

  def __init__(self, size):
    super().__init__()
    self.layers = nn.Sequential(
      nn.LayerNorm(size), nn.ReLU(), nn.Linear(size, size),
      nn.LayerNorm(size), nn.ReLU(), nn.Linear(size, size))

  def forward(self, x):
    return x + self.layers(x)


class ConvResidualBlock(nn.Module):
  """The same with 3x3 convolutions; the norm is over the whole map."""

  def __init__(self, channels):
    super().__init__()
    self.layers = nn.Sequential(*(layer for _ in range(2) for layer in (
      nn.GroupNorm(1, channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1))))

  def forward(self, x):
    return x + self.layers(x)


class FilmGatedBlock(nn.Module):
  """A residual block on a map with FiLM, a gate and a skip map."""

  def __init__(self, channels, context):
    super().__init__()
    self.film = nn.Linear(context, 3 * channels)
    self.first = nn.Conv2d(channels, channels, 3, padding=1)
    self.second = nn.Conv2d(channels, channels, 3, padding=1)

  def forward(self, x, skip, context):
    gamma, beta, gate = self.film(context)[:, :, None, None].chunk(3, 1)
    y = (1.0 + gamma) * self.first(F.relu(x)) + beta
    return x + torch.sigmoid(gate) * self.second(F.relu(y)) + skip


class Transformer(nn.Module):
  """A pre-norm transformer over sets [B, E, C] with mask [B, E]."""

  def __init__(self, width, layers, heads, key_size, hidden):
    super().__init__()
    self.heads, self.key_size = heads, key_size
    self.layers = nn.ModuleList(nn.ModuleDict({
      "norm": nn.LayerNorm(width), "project": nn.Linear(width, 3 * heads * key_size),
      "aggregate": nn.Linear(heads * key_size, width),
      "mlp": nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden), nn.ReLU(),
                           nn.Linear(hidden, width))}) for _ in range(layers))

  def forward(self, x, mask):
    rows = mask[..., None].to(x.dtype)
    bias = torch.where(mask, 0.0, -1e9)[:, None, None]
    x = x * rows
    for layer in self.layers:
      shape = (*x.shape[:2], 3, self.heads, self.key_size)
      query, key, value = layer["project"](layer["norm"](x)).view(shape).permute(2, 0, 3, 1, 4)
      attended = F.scaled_dot_product_attention(query, key, value, bias)
      x = (x + layer["aggregate"](attended.transpose(1, 2).flatten(2))) * rows
      x = (x + layer["mlp"](x)) * rows
    return x


class LayerNormLSTM(nn.Module):
  """An LSTM layer with layer norm on both contributions to the gates and on the cell."""

  def __init__(self, inputs, size):
    super().__init__()
    self.project = nn.Sequential(nn.Linear(inputs, 4 * size, bias=False), nn.LayerNorm(4 * size))
    self.recurrent = nn.Linear(size, 4 * size, bias=False)
    self.recurrent_norm = nn.LayerNorm(4 * size)
    self.cell_norm = nn.LayerNorm(size)

  def forward(self, inputs, hidden, cell):
    outputs = []
    for x in self.project(inputs):
      gates = x + self.recurrent_norm(self.recurrent(hidden))
      i, g, f, o = gates.chunk(4, -1)
      cell = torch.sigmoid(f + 1.0) * cell + torch.sigmoid(i) * torch.tanh(g)
      hidden = torch.sigmoid(o) * torch.tanh(self.cell_norm(cell))
      outputs.append(hidden)
    return torch.stack(outputs)


class Encoders(nn.Module):
  """Entity, spatial and scalar encoders."""

  def __init__(self, c, s):
    super().__init__()
    width, channels = c.entity_size, c.map_downsamples
    self.c, self.s = c, s
    self.classes = nn.EmbeddingBag(s.entity_classes, width, mode="sum")
    self.numbers = nn.Linear(s.entity_numbers, width)
    self.transformer = Transformer(
      width, c.entity_layers, c.entity_attention_heads, c.entity_key_size, c.entity_hidden)
    self.embeddings, self.embedded = nn.Linear(width, width), nn.Linear(width, width)
    self.scatter = nn.Linear(width, c.scatter_size, bias=False)
    self.project = nn.Conv2d(s.map_channels + c.scatter_size, c.map_projection, 1)
    self.downsamples = nn.Sequential(*(layer for i, o in zip(
      (c.map_projection, *channels[:-1]), channels, strict=True) for layer in (
        nn.Conv2d(i, o, 4, stride=2, padding=1), nn.ReLU())))
    self.blocks = nn.ModuleList(ConvResidualBlock(channels[-1]) for _ in range(c.map_blocks))
    self.spatial = nn.Linear(channels[-1] * s.coarse_size ** 2, c.spatial_size)
    self.scalars = nn.ModuleList(nn.Linear(i, o) for i, o in s.scalars)
    heads, key = c.scalar["build_order_attention_heads"], c.scalar["build_order_key_size"]
    self.build_order = nn.Linear(s.build_order_inputs, heads * key)
    self.build_transformer = Transformer(
      heads * key, c.scalar["build_order_layers"], heads, key, c.scalar["build_order_hidden"])

  def forward(self, o):
    x = self.classes(o.classes.flatten(0, 1)).view(*o.classes.shape[:2], -1)
    x = self.transformer(x + self.numbers(o.numbers), o.mask)
    embeddings = F.relu(self.embeddings(F.relu(x))) * o.mask[..., None]
    entities = F.relu(self.embedded(x.mean(1)))
    drawn = F.relu(self.scatter(embeddings))
    size = self.c.map_size
    canvas = torch.zeros(len(drawn), size * size, drawn.shape[-1]).scatter_add(
      1, o.cells[..., None].expand_as(drawn), drawn)
    canvas = canvas.transpose(1, 2).unflatten(2, (size, size))
    y = self.downsamples(F.relu(self.project(torch.cat([o.planes, canvas], 1))))
    skips = [y]
    for block in self.blocks:
      skips.append(block(skips[-1]))
    maps = F.relu(self.spatial(skips[-1].flatten(1)))
    scalars = [F.relu(layer(x)) for layer, x in zip(self.scalars, o.scalars, strict=True)]
    build = self.build_transformer(self.build_order(o.build_order), o.build_mask).flatten(1)
    context = torch.cat([build, *scalars[:self.s.context_scalars]], 1)
    core = torch.cat([entities, maps, build, *scalars], 1)
    return core, context, embeddings, skips


class Heads(nn.Module):
  """The heads in the order of an action's arguments; they sample if no action is given."""

  def __init__(self, c, s, context):
    super().__init__()
    self.c, self.s = c, s
    size, auto, key, hidden = c.head_size, c.autoregressive_size, c.key_size, c.function_embedding
    self.function = nn.Sequential(nn.Linear(c.core_size, size), nn.ReLU(), *(
      ResidualBlock(size) for _ in range(c.action_blocks)), nn.ReLU())
    self.function_logits = glu(size, context, s.functions)
    self.function_input = nn.Embedding(s.functions, size)
    self.choice, self.core = glu(size, context, auto), glu(c.core_size, context, auto)
    self.small = nn.ModuleList(nn.Sequential(
      nn.Linear(auto, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, n))
      for n in (128, 2, 3))
    self.small_embeddings = nn.ModuleList(nn.Sequential(
      nn.Embedding(n, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, auto))
      for n in (128, 2, 3))
    self.executors = nn.ModuleList(nn.Linear(s.unit_types, hidden) for _ in range(2))
    self.keys = nn.ModuleList(nn.Linear(c.entity_size, key) for _ in range(2))
    self.end_key = nn.Parameter(torch.randn(key))
    self.queries = nn.ModuleList(nn.Linear(auto, hidden) for _ in range(2))
    self.pointer_inputs = nn.Linear(hidden, key)
    self.lstm = nn.LSTMCell(key, key)
    self.update, self.target = nn.Linear(key, auto), nn.Linear(hidden, key)
    channels, coarse = c.location_channels, auto // s.coarse_size ** 2
    self.location = nn.Conv2d(coarse + c.map_downsamples[-1], channels, 1)
    self.films = nn.ModuleList(FilmGatedBlock(channels, auto) for _ in range(c.map_blocks))
    self.upsamples = nn.ModuleList(nn.ConvTranspose2d(i, o, 4, stride=2, padding=1) for i, o in zip(
      (channels, *c.location_upsamples[:-1]), c.location_upsamples, strict=True))

  def forward(self, core, context, embeddings, skips, o, units):
    def choose(logits):
      return torch.distributions.Categorical(logits=logits).sample() if units is None else (
        torch.zeros(len(logits), dtype=torch.long))

    logits = [apply_glu(self.function_logits, self.function(core), context)]
    choice = F.relu(self.function_input(choose(logits[0])))
    auto = apply_glu(self.choice, choice, context) + apply_glu(self.core, core, context)
    for head, embedding in zip(self.small, self.small_embeddings, strict=True):
      logits.append(head(auto))
      auto = auto + embedding(choose(logits[-1]))
    picks, auto = self.pick(embeddings, auto, o, units)
    query = F.relu(self.queries[1](auto) + self.executors[1](o.executors))
    target = torch.einsum("bek,bk->be", self.keys[1](embeddings), self.target(query))
    y = auto.view(len(auto), -1, *skips[-1].shape[2:])
    y = F.relu(self.location(F.relu(torch.cat([y, skips[-1]], 1))))
    for film, skip in zip(self.films, reversed(skips[:-1]), strict=True):
      y = film(y, skip, auto)
    for i, upsample in enumerate(self.upsamples):
      y = upsample(F.relu(y) if i else y)
    logits += [picks, target, y.flatten(1)]
    for x in logits[-2:]:
      choose(x)
    return logits

  def pick(self, embeddings, auto, o, units):
    """The pointer: one sum of keys for all picks when they are known, else a loop."""
    keys = self.keys[0](embeddings)
    keys = torch.cat([keys, self.end_key.expand(len(keys), 1, -1)], 1)
    base = self.queries[0](auto) + self.executors[0](o.executors)
    to_hidden = self.queries[0].weight @ self.update.weight
    memory = (torch.zeros(len(keys), self.c.key_size),) * 2
    queries, total = [], torch.zeros(len(keys), self.c.key_size)
    if units is not None:
      picked = keys.gather(1, units[..., None].expand(-1, -1, keys.shape[-1]))
      sums = picked.cumsum(1)
      inputs = self.pointer_inputs(F.relu(base[:, None] + (sums - picked) @ to_hidden.T))
      for k in range(self.c.max_selected):
        memory = self.lstm(inputs[:, k], memory)
        queries.append(memory[0])
      logits, total = torch.stack(queries, 1) @ keys.transpose(1, 2), sums[:, -1]
    else:
      rows = []
      for _ in range(self.c.max_selected):
        memory = self.lstm(self.pointer_inputs(F.relu(base + total @ to_hidden.T)), memory)
        rows.append(torch.einsum("bek,bk->be", keys, memory[0]))
        unit = torch.distributions.Categorical(logits=rows[-1]).sample()
        total = total + keys[torch.arange(len(keys)), unit]
      logits = torch.stack(rows, 1)
    return logits, auto + self.update(total)


class Agent(nn.Module):
  """Encoders, core, heads and five value functions."""

  def __init__(self, c, s):
    super().__init__()
    self.encoders, self.c = Encoders(c, s), c
    self.core = nn.ModuleList(LayerNormLSTM(i, c.core_size) for i in (
      s.core_input, *[c.core_size] * (c.core_layers - 1)))
    self.heads = Heads(c, s, s.context)
    self.value_inputs = nn.ModuleList(nn.Linear(i, o) for i, o in s.value_scalars)
    common = c.core_size + sum(o for _, o in s.value_scalars)
    self.values = nn.ModuleList(nn.Sequential(nn.Linear(common, c.baseline_size), *(
      ResidualBlock(c.baseline_size) for _ in range(c.baseline_blocks)), nn.ReLU(),
      nn.Linear(c.baseline_size, 1)) for _ in range(5))

  def forward(self, o, length, units=None):
    core_input, context, embeddings, skips = self.encoders(o)
    x = core_input.unflatten(0, (length, -1))
    zero = torch.zeros(x.shape[1], self.c.core_size)
    for layer in self.core:
      x = layer(x, zero, zero)
    core = x.flatten(0, 1)
    logits = self.heads(core, context, embeddings, skips, o, units)
    if units is None:
      return logits
    inputs = [F.relu(layer(x)) for layer, x in zip(self.value_inputs, o.values, strict=True)]
    features = torch.cat([core, *inputs], 1)
    return [*logits, *(value(features) for value in self.values)]


def observations(c, s, count):
  """Random inputs of `count` steps, full of entities."""
  rows = c.max_entities
  return SimpleNamespace(
    classes=torch.randint(s.entity_classes, (count, rows, s.entity_fields)),
    numbers=torch.rand(count, rows, s.entity_numbers), mask=torch.ones(count, rows, dtype=bool),
    cells=torch.randint(c.map_size ** 2, (count, rows)),
    planes=torch.rand(count, s.map_channels, c.map_size, c.map_size),
    scalars=[torch.rand(count, i) for i, _ in s.scalars],
    build_order=torch.rand(count, 20, s.build_order_inputs),
    build_mask=torch.ones(count, 20, dtype=bool), executors=torch.rand(count, s.unit_types),
    values=[torch.rand(count, i) for i, _ in s.value_scalars])


def main() -> None:
  torch.set_num_threads(1)
  torch.manual_seed(0)
  received = json.loads(sys.stdin.readline())
  c, s = SimpleNamespace(**received["config"]), SimpleNamespace(**received["sizes"])
  agent = Agent(c, s)
  length, count = received["length"], received["length"] * received["sequences"]
  one, many = observations(c, s, 1), observations(c, s, count)
  units = torch.arange(c.max_selected).expand(count, -1)

  def rounds_of(run):
    def acting():
      with torch.inference_mode():
        run(one, 1)

    def forward():
      with torch.inference_mode():
        run(many, length, units)

    def backward():
      agent.zero_grad()
      sum(x.sum() for x in run(many, length, units)).backward()

    return {"acting": acting, "forward": forward, "forward and backward": backward}

  rounds = {f"{kind} {name}": round_
            for kind in received["kinds"]
            for name, round_ in rounds_of(
              agent if kind == "eager" else torch.compile(agent)).items()}
  for run in rounds.values():  # warm up; compiles
    run()
  print(sum(x.numel() for x in agent.parameters()), flush=True)
  for line in sys.stdin:
    begin = time.process_time()
    rounds[line.strip()]()
    print(time.process_time() - begin, flush=True)


if __name__ == "__main__":
  main()
