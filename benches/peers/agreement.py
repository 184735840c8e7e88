"""Whether karat and the peers computed the same numbers. No ratio is printed unless they did."""

from measure import Command

TOLERANCE = 1e-9


class Disagreement(Exception):
    """The numbers differ; the message lists where."""


def require(commands, metrics):
    """Compares every metric of every round of every command with the last command's first round.

    A missing value and NaN are disagreements.
    """
    reference = commands[-1]
    wrong = []
    for command in commands:
        for number, means in enumerate(command.means, 1):
            for metric in metrics:
                wanted, found = reference.means[0].get(metric), means.get(metric)
                if not same(found, wanted):
                    wrong.append(
                        f"{metric}: {found!r} by {command.name} (round {number}), "
                        f"{wanted!r} by {reference.name}"
                    )
    if wrong:
        raise Disagreement("the numbers do not agree, so no time is compared:\n  " + "\n  ".join(wrong))


def require_known(commands, means):
    """Compares with the means that the maker of the data knows."""
    require([*commands, Command("the maker of the data", [], None, means=[means])], list(means))


def same(found, wanted):
    if not isinstance(found, float | int) or not isinstance(wanted, float | int):
        return False
    # Not `> TOLERANCE`: NaN must fail too.
    return abs(found - wanted) <= TOLERANCE
