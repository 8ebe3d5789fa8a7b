"""The smallest sets of cases that touch every detected fault."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice, product
from typing import NamedTuple


class HittingSets(NamedTuple):
    """Smallest hitting sets, and whether these are all of them."""

    sets: tuple[tuple[str, ...], ...]
    complete: bool


def minimum_hitting_sets(
    targets: Collection[Collection[str]],
    order: Sequence[str],
    *,
    most: int = 100,
    steps: int = 200_000,
) -> HittingSets:
    """Return the smallest sets of names that share a name with every target.

    Args:
        targets: Non-empty collections of names from `order`, in any order.
        order: All names; it orders the answer, within a set and among sets.
        most: How many sets to list; at least 1.
        steps: How many nodes the search may visit, which bounds its time.

    Returns:
        Sets of equal, proven smallest size; one empty set when there is no target. Without
        `complete` there may be more than were listed, and none are when the steps ran out
        before the smallest size was known.
    """
    place = {name: index for index, name in enumerate(order)}
    groups = _interchangeable(_without_supersets(targets), order)
    search = _Search(steps)
    listed = list(islice(_spelt_out(search.smallest(groups), groups, place), most + 1))
    kept = sorted(listed[:most], key=lambda names: [place[name] for name in names])
    return HittingSets(tuple(kept), len(listed) <= most and not search.is_exhausted)


class _Group(NamedTuple):
    """Names that touch the same targets: a smallest set needs one of them, and any will do."""

    names: tuple[str, ...]
    touched: frozenset[int]


class _Search:
    """Depth-first search for hitting sets of one size after the other."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    @property
    def is_exhausted(self) -> bool:
        return self._steps < 0

    def smallest(self, groups: Sequence[_Group]) -> Iterator[tuple[int, ...]]:
        """Yield every smallest set, as indices into the groups."""
        count = len(frozenset(chain.from_iterable(group.touched for group in groups)))
        masks = [
            sum(1 << index for index, group in enumerate(groups) if target in group.touched)
            for target in range(count)
        ]
        for size in range(_disjoint(masks), count + 1):
            found = False
            for chosen in self._walk(masks, allowed=-1, left=size):
                found = True
                yield tuple(_bit_places(chosen))
            if found or self.is_exhausted:
                return

    def _walk(self, open_targets: Sequence[int], *, allowed: int, left: int) -> Iterator[int]:
        """Yield sets of at most `left` allowed groups that hit all targets, as bit masks."""
        self._steps -= 1
        if self.is_exhausted:
            return
        if not open_targets:
            yield 0
            return
        live = sorted((target & allowed for target in open_targets), key=int.bit_count)
        # Targets that share nothing need a name each, so their number is a lower bound.
        if not live[0] or _disjoint(live) > left:
            return
        for index in _bit_places(live[0]):
            bit = 1 << index
            rest = [target for target in open_targets if not target & bit]
            for chosen in self._walk(rest, allowed=allowed, left=left - 1):
                yield chosen | bit
            # Sets with this group have all been seen; without this they would come again.
            allowed &= ~bit


def _without_supersets(targets: Collection[Collection[str]]) -> list[frozenset[str]]:
    """Return the targets that no smaller one implies: whatever hits a part hits the whole."""
    distinct = {frozenset(target) for target in targets}
    smallest = [target for target in distinct if not any(other < target for other in distinct)]
    return sorted(smallest, key=sorted)


def _interchangeable(targets: Sequence[frozenset[str]], order: Sequence[str]) -> list[_Group]:
    names_by_touched: dict[frozenset[int], list[str]] = {}
    for name in order:
        touched = frozenset(index for index, target in enumerate(targets) if name in target)
        if touched:
            names_by_touched.setdefault(touched, []).append(name)
    return [_Group(tuple(names), touched) for touched, names in names_by_touched.items()]


def _spelt_out(
    found: Iterator[tuple[int, ...]], groups: Sequence[_Group], place: dict[str, int]
) -> Iterator[tuple[str, ...]]:
    for chosen in found:
        for names in product(*(groups[index].names for index in chosen)):
            yield tuple(sorted(names, key=place.__getitem__))


def _disjoint(masks: Sequence[int]) -> int:
    """Return how many masks a greedy pick finds that share no bit."""
    used = count = 0
    for mask in sorted(masks, key=int.bit_count):
        if not mask & used:
            used |= mask
            count += 1
    return count


def _bit_places(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
