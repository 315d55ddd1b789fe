"""Max-min rates of large systems, compiled (numba, the extra `scale`).

The same lazy heap as in `topo.solve.maxmin`, on compact arrays. Two things make it fast beyond
being compiled: a resource with one user is no more than a limit of that user, and one that stays
below its capacity even if all its users run at their limits can never bind. Neither is touched
again, and in a fabric they are most.
"""

from __future__ import annotations

import numpy as np

from topo.solve.arrays import Arrays, Floats, Ints, Shorts, compiled

LEFT, PULL, USERS, FIRST_PULL = range(4)
GONE = 0.0625
"""Below this part of what it was, a running sum is made afresh."""


def fill(arrays: Arrays) -> Floats:
    """Give the max-min rate of each demand, in bytes/s."""
    uses = arrays.uses
    caps, numbers, capacities = limits_and_numbers(
        arrays.capacities, uses.starts, uses.columns, uses.values, arrays.limits
    )
    rows = rows_of(uses.starts, uses.columns, uses.values, numbers)
    columns = _columns(*rows[:2], capacities.size)
    return _fill(capacities, arrays.weights, caps, *rows, *columns)


@compiled
def limits_and_numbers(
    capacities: Floats, starts: Ints, resources: Ints, multiplicities: Floats, limits: Floats
) -> tuple[Floats, Shorts, Floats]:
    """Lower limits by resources of one user; number those others that can bind, and only those."""
    users = np.zeros(capacities.size, np.int32)
    for resource in resources:
        users[resource] += 1
    caps = limits.copy()
    for demand in range(limits.size):
        for entry in range(starts[demand], starts[demand + 1]):
            resource = resources[entry]
            if users[resource] == 1:
                caps[demand] = min(caps[demand], capacities[resource] / multiplicities[entry])
    most = np.zeros(capacities.size)
    for demand in range(limits.size):
        for entry in range(starts[demand], starts[demand + 1]):
            most[resources[entry]] += multiplicities[entry] * caps[demand]
    bound_count = 0
    binding = np.empty(capacities.size)
    for resource in range(capacities.size):
        if users[resource] > 1 and most[resource] > capacities[resource]:
            binding[bound_count] = capacities[resource]
            users[resource] = bound_count
            bound_count += 1
        else:
            users[resource] = -1
    return caps, users, binding[:bound_count].copy()


@compiled
def rows_of(
    starts: Ints, resources: Ints, multiplicities: Floats, numbers: Shorts
) -> tuple[Ints, Shorts, Floats]:
    """Keep of each row the resources that can bind, by their new numbers."""
    rows = np.empty(starts.size, np.int64)
    row_resources = np.empty(resources.size, np.int32)
    row_values = np.empty(resources.size)
    entry_count = 0
    for demand in range(starts.size - 1):
        rows[demand] = entry_count
        for entry in range(starts[demand], starts[demand + 1]):
            if numbers[resources[entry]] >= 0:
                row_resources[entry_count] = numbers[resources[entry]]
                row_values[entry_count] = multiplicities[entry]
                entry_count += 1
    rows[starts.size - 1] = entry_count
    return rows, row_resources[:entry_count], row_values[:entry_count]


@compiled
def _columns(rows: Ints, row_resources: Shorts, count: int) -> tuple[Ints, Shorts]:
    """Transpose the rows: the users of each resource, in their order."""
    columns = np.zeros(count + 1, np.int64)
    for resource in row_resources:
        columns[resource + 1] += 1
    for resource in range(count):
        columns[resource + 1] += columns[resource]
    place = columns.copy()
    column_demands = np.empty(row_resources.size, np.int32)
    for demand in range(rows.size - 1):
        for entry in range(rows[demand], rows[demand + 1]):
            resource = row_resources[entry]
            column_demands[place[resource]] = demand
            place[resource] += 1
    return columns, column_demands


@compiled
def _fill(  # noqa: C901, PLR0912, PLR0915
    capacities: Floats,
    weights: Floats,
    caps: Floats,
    rows: Ints,
    row_resources: Shorts,
    row_values: Floats,
    columns: Ints,
    column_demands: Shorts,
) -> Floats:
    """Fill progressively.

    One long function: its parts share a dozen arrays, and a call for each frozen demand would cost
    more than what it does.
    """
    # What is left of a resource, what its rising users pull, and how many they are: side by side,
    # since they are always read together and from anywhere.
    state = np.zeros((capacities.size, 4))
    for demand in range(weights.size):
        for entry in range(rows[demand], rows[demand + 1]):
            state[row_resources[entry], PULL] += row_values[entry] * weights[demand]
    for resource in range(capacities.size):
        state[resource, LEFT] = capacities[resource]
        state[resource, USERS] = columns[resource + 1] - columns[resource]
        state[resource, FIRST_PULL] = state[resource, PULL]
    # The levels at which something is full: of resources, then (as ``~demand``) of limits.
    keys = np.empty(capacities.size + weights.size)
    indices = np.empty(keys.size, np.int64)
    size = capacities.size
    for resource in range(size):
        keys[resource] = state[resource, LEFT] / state[resource, PULL]
        indices[resource] = resource
    for demand in range(weights.size):
        if caps[demand] < np.inf:
            keys[size], indices[size] = caps[demand] / weights[demand], ~demand
            size += 1
    arrange(keys, indices, size)

    rates = np.full(weights.size, -1.0)
    waiting = weights.size
    level = 0.0
    alone = np.empty(1, np.int32)
    while waiting > 0:
        share, index = keys[0], indices[0]
        if index < 0:
            size = drop_least(keys, indices, size)
            if rates[~index] >= 0.0:
                continue
            alone[0] = ~index
            freezing = alone
            level = max(level, share)
        else:
            if state[index, USERS] == 0.0:
                size = drop_least(keys, indices, size)
                continue
            left, pull = state[index, LEFT], state[index, PULL]
            share = left / pull if pull > 0.0 else level
            if share > keys[0]:
                # It was outdated. Should it be the least still, it comes up again at once.
                keys[0] = share
                settle_down(keys, indices, size, 0)
                continue
            size = drop_least(keys, indices, size)
            if left < GONE * capacities[index] or pull < GONE * state[index, FIRST_PULL]:
                # Running sums have lost digits: add up what is left from the users themselves.
                left, pull = capacities[index], 0.0
                for at in range(columns[index], columns[index + 1]):
                    demand = column_demands[at]
                    entry = rows[demand]
                    while row_resources[entry] != index:
                        entry += 1
                    if rates[demand] < 0.0:
                        pull += row_values[entry] * weights[demand]
                    else:
                        left -= row_values[entry] * rates[demand]
                share = left / pull
            level = max(level, share)
            freezing = column_demands[columns[index] : columns[index + 1]]
        for stopped in freezing:
            if rates[stopped] >= 0.0:
                continue
            weight = weights[stopped]
            rate = caps[stopped] if index < 0 else min(weight * level, caps[stopped])
            rates[stopped] = rate
            waiting -= 1
            for entry in range(rows[stopped], rows[stopped + 1]):
                resource = row_resources[entry]
                state[resource, LEFT] -= row_values[entry] * rate
                state[resource, PULL] -= row_values[entry] * weight
                state[resource, USERS] -= 1.0
    return rates


@compiled
def settle_down(keys: Floats, indices: Ints, size: int, place: int) -> None:
    """Move what is at a place down until nothing below it is less."""
    key, index = keys[place], indices[place]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[place], indices[place] = keys[below], indices[below]
        place = below
    keys[place], indices[place] = key, index


@compiled
def arrange(keys: Floats, indices: Ints, size: int) -> None:
    """Make a heap of the first `size` keys."""
    for place in range(size // 2 - 1, -1, -1):
        settle_down(keys, indices, size, place)


@compiled
def drop_least(keys: Floats, indices: Ints, size: int) -> int:
    """Take the least out, and give the size that is left."""
    keys[0], indices[0] = keys[size - 1], indices[size - 1]
    settle_down(keys, indices, size - 1, 0)
    return size - 1
