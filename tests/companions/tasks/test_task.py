"""Parts of a task: which copies belong to which."""

import jax
import numpy as np

from starleague.common.errors import UserError
from starleague.companions.tasks.task import Task, TaskError, part_slices


def test_copies_of_parts_stand_side_by_side():
  task = Task("a", 5, jax.ShapeDtypeStruct((), np.float32), 2, (), lambda keys: None,
              lambda *_: None)
  assert part_slices(task) == {"": slice(0, 5)}
  assert part_slices(task._replace(parts=(("one", 2), ("two", 3)))) == {
    "/one": slice(0, 2), "/two": slice(2, 5)}


def test_errors_of_tasks_can_be_fixed_by_the_user():
  assert issubclass(TaskError, UserError) and issubclass(TaskError, ValueError)
