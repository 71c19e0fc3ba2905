"""The base classes of errors that a user can fix."""

import pytest

from starleague.common import database, results
from starleague.common.errors import FinalError, UserError, final


@pytest.mark.parametrize("kind", [database.DatabaseFileError, results.ResultsError])
def test_errors_of_files_are_user_errors_and_value_errors(kind):
  assert issubclass(kind, UserError) and issubclass(kind, ValueError)


def test_a_user_error_is_no_error_of_the_system():
  assert issubclass(UserError, Exception)
  assert not issubclass(UserError, ValueError | OSError | RuntimeError)
  assert str(UserError("z.npz: expected 1, found 2")) == "z.npz: expected 1, found 2"


def test_errors_of_some_kinds_become_final_with_their_message():
  with pytest.raises(FinalError, match="^z.npz is damaged$") as found, final(KeyError, ValueError):
    raise ValueError("z.npz is damaged")
  assert isinstance(found.value.__cause__, ValueError)
  with pytest.raises(OSError), final(ValueError):
    raise OSError
