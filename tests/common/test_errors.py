"""The base class of errors that a user can fix."""

import pytest

from starleague.common import database, results
from starleague.common.errors import UserError


@pytest.mark.parametrize("kind", [database.DatabaseFileError, results.ResultsError])
def test_errors_of_files_are_user_errors_and_value_errors(kind):
  assert issubclass(kind, UserError) and issubclass(kind, ValueError)


def test_a_user_error_is_no_error_of_the_system():
  assert issubclass(UserError, Exception)
  assert not issubclass(UserError, ValueError | OSError | RuntimeError)
  assert str(UserError("z.npz: expected 1, found 2")) == "z.npz: expected 1, found 2"
