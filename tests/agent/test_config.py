"""Presets, and errors for impossible configs."""

import dataclasses

import pytest

from starleague.agent import config, make_policy


@pytest.mark.parametrize("name", ["full", "mini", "small"])
def test_presets_are_valid_and_found_by_name(name):
  preset = config.preset(name)
  config.validate(preset)
  assert preset.name == name


def test_error_of_an_unknown_preset_lists_the_presets():
  with pytest.raises(ValueError, match=r"'huge'.*\['full', 'mini', 'small'\]"):
    config.preset("huge")


def test_full_has_the_published_sizes():
  full = config.full()
  assert (full.max_entities, full.map_size, full.location_size, full.max_selected) == (
    512, 128, 256, 64)
  assert (full.core_layers, full.core_size, full.autoregressive_size) == (3, 384, 1024)
  assert full.coarse_size == 16
  assert (full.temperature, full.delay_temperature) == (0.8, 1.0)
  assert (full.unit_mask, full.function_mask) == ("existing", "none")


def test_a_factor_of_the_temperatures_leaves_the_structure():
  found = config.tempered(config.full(), 0.5)
  assert (found.temperature, found.delay_temperature) == (0.4, 0.5)
  assert config.tempered(config.full(), 0.75).temperature == 0.6
  assert config.structure(dataclasses.asdict(found)) == config.structure(
    dataclasses.asdict(config.full()))


def test_changes_by_text_have_the_types_of_the_fields():
  mini = config.mini()
  assert config.changed(mini, "") == mini
  assert config.changed(
    mini, "core_size=192,temperature=1,repeat=False,location_mask=free,scalar.time=8,"
          "map_downsamples=8:24,location_channels=24") == dataclasses.replace(
    mini, core_size=192, temperature=1.0, repeat=False, location_mask="free",
    scalar=dataclasses.replace(mini.scalar, time=8), map_downsamples=(8, 24), location_channels=24)


@pytest.mark.parametrize(("text", "message"), [
  ("core_sise=1", "found 'core_sise=1', expected FIELD=VALUE"),
  ("core_size", "found 'core_size', expected FIELD=VALUE"),
  ("scalar=1", "found 'scalar=1', expected FIELD=VALUE"),
  ("core.time=1", "found 'core.time=1', expected FIELD=VALUE"),
  ("core_size=big", "found 'core_size=big', expected type int"),
  ("repeat=1", "found 'repeat=1', expected type bool"),
  ("map_downsamples=8:b", "found 'map_downsamples=8:b', expected integers with colons"),
  ("core_size=0", "core_size must be at least 1; found 0"),
  ("scalar.time=3", "scalar.time must be even"),
  ("core_size=96,core_size=192", "^found 'core_size=192', expected one value of core_size, which "
                                 "'core_size=96,core_size=192' has twice$"),
  ("scalar.time=8,head_size=32,scalar.time=8", "^found 'scalar.time=8', expected one value"),
  ("temperature=inf", "^AgentConfig.temperature must be finite; found inf$"),
  ("map_units=inf", "^AgentConfig.map_units must be finite; found inf$"),
  ("delay_temperature=nan", "^AgentConfig.delay_temperature must be above zero; found nan$"),
])
def test_impossible_changes_by_text_are_named(text, message):
  with pytest.raises(ValueError, match=message):
    config.changed(config.mini(), text)


@pytest.mark.parametrize(("field", "value", "message"), [
  ("max_entities", 0, "max_entities must be at least 1; found 0"),
  ("temperature", 0.0, "temperature must be above zero; found 0.0"),
  ("unit_mask", "all", "unit_mask must be one of"),
  ("function_mask", "some", "function_mask must be one of"),
  ("pick_pooling", "mean", "pick_pooling must be one of"),
  ("entity_embedding", "sparse", "entity_embedding must be one of"),
  ("entity_attention", "flash", "entity_attention must be one of"),
  ("entity_mlp", "some", "entity_mlp must be one of"),
  ("dtype", "float16", "dtype must be one of"),
  ("remat", "some", "remat must be one of .*blocks"),
  ("target_mask", "near", "target_mask must be one of .*on_screen"),
  ("map_size", 24, "map_size must be a divisor of 256"),
  ("map_downsamples", (), "map_downsamples must be one or more"),
  ("map_downsamples", (16,) * 6, "map_downsamples must be at most as many"),
  ("location_upsamples", (8, 8, 1), "location_upsamples must be as many"),
  ("location_upsamples", (8, 2), "location_upsamples must be ending in 1 channel"),
  ("location_channels", 8, "location_channels must be the last of map_downsamples"),
  ("autoregressive_size", 100, "autoregressive_size must be a multiple of 8 \\* 8"),
])
def test_impossible_values_raise_an_error_with_the_reason(field, value, message):
  with pytest.raises(ValueError, match=message):
    make_policy(dataclasses.replace(config.mini(), **{field: value}))


@pytest.mark.parametrize(("field", "value"), [
  ("time", 15), ("player", 0), ("build_order_pooling", "max")])
def test_impossible_scalar_sizes_raise_an_error(field, value):
  scalar = dataclasses.replace(config.mini().scalar, **{field: value})
  with pytest.raises(ValueError, match=f"scalar.{field} must be"):
    config.validate(dataclasses.replace(config.mini(), scalar=scalar))
