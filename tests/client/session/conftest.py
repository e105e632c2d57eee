"""What the tests of the session share."""

from __future__ import annotations

import pytest

from scaler_client.protocol import messages
from scaler_client.session.session import Session


@pytest.fixture(autouse=True)
def _leave_out_empty_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without kept results sends `heldResults` without rows to each new scheduler. Tests do not see it."""
    pop = Session.pop_outgoing

    def pop_others(session: Session) -> list[messages.Message]:
        return [each for each in pop(session) if not (isinstance(each, messages.HeldResults) and not each.ids)]

    monkeypatch.setattr(Session, "pop_outgoing", pop_others)
