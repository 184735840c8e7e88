"""The exceptions of the package."""

from __future__ import annotations


class KaratError(ValueError):
    """Input that cannot be scored, compared or merged.

    The message says what is wrong, where, and what to do. `file`, `line` (from 1) and `id` name the place
    where it is known.
    """

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.id = id

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the default; Ray and Spark send exceptions between processes.
        return _rebuilt, (type(self), self.message, self.file, self.line, self.id)


def _rebuilt(
    kind: type[KaratError], message: str, file: str | None, line: int | None, id: str | None
) -> KaratError:
    return kind(message, file=file, line=line, id=id)


class Undefined(KaratError):
    """A metric that has no value for this input; the message is the reason."""
