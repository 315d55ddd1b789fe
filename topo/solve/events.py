"""Completion times of many demands: at each event only those whose rate can change are solved.

When a demand ends, those that a resource of its was stopping may rise; when one arrives, those that
are on its resources may fall. Rates are found for these *members* with everybody else held where
they are, and then everybody who shares a resource with a member is asked whether the reason for
their rate still holds: somebody who is stopped by a resource that is no longer full, or on which
somebody else has a higher level now, and somebody whose level is higher than that of a member that
their resource stops, become members too, and it is done again. When nobody complains every demand
is at its limit or stopped by a full resource on which nobody has a higher level: these are the
max-min rates, since there are no others (see `topo.solve.maxmin`).

Compiled if numba is installed; the same code runs without it, slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topo.solve.arrays import Arrays, Bools, Floats, Ints, Shorts, compiled
from topo.solve.kernel import arrange, drop_least, limits_and_numbers, rows_of, settle_down

SAME_TIME = 1e-12
"""Events nearer than this, relative to the time since the start, are one."""
SAME_LEVEL = 1e-12
SAME_RATE = 1e-14
"""A rate that changes by less is left alone, and so is the time at which it ends."""
FRESH = 64
"""How often a load may be changed before it is summed anew."""
NOBODY = -1


class Net(NamedTuple):
    """The demands that run, on the resources that can bind.

    Row entries belong to demands; `places` says where in its resource's list of running users an
    entry is, so that it can be taken out at once. `stoppers` holds the resource that stops each
    running demand (-1: its own limit), `stopped` how many each resource stops, and `peaks` the
    level at which it does: the highest of all its users.
    """

    capacities: Floats
    weights: Floats
    caps: Floats
    rows: Ints
    resources: Shorts
    values: Floats
    owners: Shorts
    columns: Ints
    users: Shorts
    places: Shorts
    running: Bools
    rates: Floats
    stoppers: Shorts
    loads: Floats
    counts: Shorts
    stopped: Shorts
    peaks: Floats
    touches: Shorts


class Members(NamedTuple):
    """Those whose rates are being found, and scratch space.

    `sizes` holds the number of members and of the resources they use; `numbers` the place of each
    resource among these, or -1.
    """

    demands: Shorts
    inside: Bools
    sizes: Ints
    resources: Shorts
    numbers: Shorts
    rates: Floats
    stoppers: Shorts


def finishes(arrays: Arrays, sizes: Floats, arrivals: Floats) -> Floats:
    """Give the seconds at which each demand has all its bytes.

    Parameters
    ----------
    arrays
        A system that was checked before.
    sizes
        Bytes.
    arrivals
        Seconds.
    """
    uses = arrays.uses
    caps, numbers, capacities = limits_and_numbers(
        arrays.capacities, uses.starts, uses.columns, uses.values, arrays.limits
    )
    rows, resources, values = rows_of(uses.starts, uses.columns, uses.values, numbers)
    net = _net(capacities, arrays.weights, caps, rows, resources, values)
    members = _members(arrays.weights.size, capacities.size)
    order = np.lexsort((np.arange(sizes.size), arrivals))
    return _simulate(net, members, sizes, arrivals, order)


def _net(
    capacities: Floats, weights: Floats, caps: Floats, rows: Ints, resources: Shorts, values: Floats
) -> Net:
    demands, count = weights.size, capacities.size
    columns = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(resources, minlength=count), out=columns[1:])
    return Net(
        capacities=capacities,
        weights=weights,
        caps=caps,
        rows=rows,
        resources=resources,
        values=values,
        owners=np.repeat(np.arange(demands, dtype=np.int32), np.diff(rows)),
        columns=columns,
        users=np.zeros(resources.size, np.int32),
        places=np.zeros(resources.size, np.int32),
        running=np.zeros(demands, np.bool_),
        rates=np.zeros(demands),
        stoppers=np.full(demands, NOBODY, np.int32),
        loads=np.zeros(count),
        counts=np.zeros(count, np.int32),
        stopped=np.zeros(count, np.int32),
        peaks=np.zeros(count),
        touches=np.zeros(count, np.int32),
    )


def _members(demands: int, resources: int) -> Members:
    return Members(
        demands=np.zeros(demands, np.int32),
        inside=np.zeros(demands, np.bool_),
        sizes=np.zeros(2, np.int64),
        resources=np.zeros(resources, np.int32),
        numbers=np.full(resources, NOBODY, np.int32),
        rates=np.zeros(demands),
        stoppers=np.zeros(demands, np.int32),
    )


@compiled
def _simulate(net: Net, members: Members, sizes: Floats, arrivals: Floats, order: Ints) -> Floats:
    """Go from event to event.

    The next end is looked for among all that run: where one event changes many rates, a heap of
    ends would have to be made anew.
    """
    ends = arrivals.copy()
    left, since = sizes.copy(), np.zeros(sizes.size)
    alive = np.empty(sizes.size, np.int32)
    count, coming = 0, 0
    while count > 0 or coming < order.size:
        clock = np.inf
        for place in range(count):
            clock = min(clock, ends[alive[place]])
        if coming < order.size:
            clock = min(clock, arrivals[order[coming]])
        until = clock * (1.0 + SAME_TIME)
        members.sizes[0] = 0
        for place in range(count - 1, -1, -1):
            demand = alive[place]
            if ends[demand] <= until:
                ends[demand] = clock
                count -= 1
                alive[place] = alive[count]
                _leave(net, members, demand)
        while coming < order.size and arrivals[order[coming]] <= until:
            demand = order[coming]
            coming += 1
            if sizes[demand] > 0.0:
                ends[demand] = np.inf
                since[demand] = clock
                alive[count] = demand
                count += 1
                _enter(net, members, demand)
        _settle(net, members)
        _commit(net, members, clock, left, since, ends)
    return ends


@compiled
def _enter(net: Net, members: Members, demand: int) -> None:
    """Let a demand run, at no rate yet, as a member."""
    members.inside[demand] = True
    members.demands[members.sizes[0]] = demand
    members.sizes[0] += 1
    net.running[demand] = True
    net.rates[demand] = 0.0
    net.stoppers[demand] = NOBODY
    for entry in range(net.rows[demand], net.rows[demand + 1]):
        resource = net.resources[entry]
        place = net.columns[resource] + net.counts[resource]
        net.users[place] = entry
        net.places[entry] = place
        net.counts[resource] += 1


@compiled
def _leave(net: Net, members: Members, demand: int) -> None:
    """Take a demand out, and make those members that its resources were stopping."""
    stopper = net.stoppers[demand]
    if stopper >= 0:
        net.stopped[stopper] -= 1
    net.running[demand] = False
    for entry in range(net.rows[demand], net.rows[demand + 1]):
        resource = net.resources[entry]
        net.loads[resource] -= net.values[entry] * net.rates[demand]
        net.counts[resource] -= 1
        first, end = net.columns[resource], net.columns[resource] + net.counts[resource]
        net.users[net.places[entry]] = net.users[end]
        net.places[net.users[end]] = net.places[entry]
        if first == end:
            net.loads[resource] = 0.0
        if net.stopped[resource] == 0:
            continue
        for place in range(first, end):
            user = net.owners[net.users[place]]
            if net.stoppers[user] == resource and not members.inside[user]:
                members.inside[user] = True
                members.demands[members.sizes[0]] = user
                members.sizes[0] += 1


@compiled
def _commit(
    net: Net, members: Members, clock: float, left: Floats, since: Floats, ends: Floats
) -> None:
    """Give the members their new rates, and everything that depends on them."""
    for place in range(members.sizes[0]):
        demand = members.demands[place]
        members.inside[demand] = False
        rate, stopper = members.rates[demand], members.stoppers[demand]
        if net.stoppers[demand] >= 0:
            net.stopped[net.stoppers[demand]] -= 1
        net.stoppers[demand] = stopper
        if stopper >= 0:
            net.stopped[stopper] += 1
            net.peaks[stopper] = rate / net.weights[demand]
        change = rate - net.rates[demand]
        if abs(change) <= SAME_RATE * rate:
            continue
        left[demand] = max(0.0, left[demand] - net.rates[demand] * (clock - since[demand]))
        since[demand] = clock
        ends[demand] = clock + left[demand] / rate
        net.rates[demand] = rate
        for entry in range(net.rows[demand], net.rows[demand + 1]):
            resource = net.resources[entry]
            net.loads[resource] += net.values[entry] * change
            net.touches[resource] += 1
            if net.touches[resource] >= FRESH:
                _sum_load(net, resource)


@compiled
def _sum_load(net: Net, resource: int) -> None:
    """Sum a load anew, since running sums lose digits."""
    load = 0.0
    for place in range(net.columns[resource], net.columns[resource] + net.counts[resource]):
        entry = net.users[place]
        load += net.values[entry] * net.rates[net.owners[entry]]
    net.loads[resource] = load
    net.touches[resource] = 0


@compiled
def _settle(net: Net, members: Members) -> None:
    """Find the rates of the members, and take in who complains, until nobody does."""
    # Somebody who was freed may have left in the same event.
    count = 0
    for place in range(members.sizes[0]):
        demand = members.demands[place]
        if net.running[demand]:
            members.demands[count] = demand
            count += 1
        else:
            members.inside[demand] = False
    members.sizes[0] = count
    while members.sizes[0] > 0:
        before = members.sizes[0]
        levels, tops, loads = _share(net, members)
        _add_complaining(net, members, levels, tops, loads)
        if members.sizes[0] == before:
            break


@compiled
def _add_complaining(
    net: Net, members: Members, levels: Floats, tops: Floats, loads: Floats
) -> None:
    """Add those who must fall for members, or may rise now.

    For each resource of the members `levels` is that of the members which it stops (-1: none),
    `tops` the highest of all members on it, `loads` what it carries.
    """
    for number in range(members.sizes[1]):
        resource = members.resources[number]
        members.numbers[resource] = NOBODY
        stops = net.stopped[resource] > 0
        full = loads[number] >= net.capacities[resource] * (1.0 - SAME_LEVEL)
        # Those whom it stops are its highest, so mostly nobody else need be asked.
        peak = net.peaks[resource] if stops else np.inf
        most = levels[number] * (1.0 + SAME_LEVEL) if levels[number] >= 0.0 else np.inf
        rising = stops and (not full or tops[number] > peak * (1.0 + SAME_LEVEL))
        if not rising and not peak > most:
            continue
        for place in range(net.columns[resource], net.columns[resource] + net.counts[resource]):
            user = net.owners[net.users[place]]
            if members.inside[user]:
                continue
            if (rising and net.stoppers[user] == resource) or (
                net.rates[user] > most * net.weights[user]
            ):
                members.inside[user] = True
                members.demands[members.sizes[0]] = user
                members.sizes[0] += 1


@compiled
def _share(net: Net, members: Members) -> tuple[Floats, Floats, Floats]:  # noqa: C901, PLR0912, PLR0915
    """Fill progressively for the members, everybody else being held.

    One long function, as in `topo.solve.kernel`, and for the same reason. Gives for each resource
    of the members the level at which it stops some (-1: none), their highest level, and its load.
    """
    count = 0
    entries = 0
    for place in range(members.sizes[0]):
        demand = members.demands[place]
        for entry in range(net.rows[demand], net.rows[demand + 1]):
            resource = net.resources[entry]
            entries += 1
            if members.numbers[resource] < 0:
                members.numbers[resource] = count
                members.resources[count] = resource
                count += 1
    members.sizes[1] = count
    held = np.empty(count)
    left, pull = np.empty(count), np.zeros(count)
    users, first = np.zeros(count, np.int32), np.zeros(count + 1, np.int32)
    for number in range(count):
        held[number] = net.loads[members.resources[number]]
    for place in range(members.sizes[0]):
        demand = members.demands[place]
        for entry in range(net.rows[demand], net.rows[demand + 1]):
            number = members.numbers[net.resources[entry]]
            held[number] -= net.values[entry] * net.rates[demand]
            pull[number] += net.values[entry] * net.weights[demand]
            users[number] += 1
    for number in range(count):
        first[number + 1] = first[number] + users[number]
        if users[number] == net.counts[members.resources[number]]:
            held[number] = 0.0
        left[number] = max(0.0, net.capacities[members.resources[number]] - held[number])
    user, filled = np.empty(entries, np.int32), first.copy()
    keys = np.empty(count + members.sizes[0])
    indices = np.empty(keys.size, np.int64)
    for number in range(count):
        keys[number], indices[number] = left[number] / pull[number], number
    size = count
    for place in range(members.sizes[0]):
        demand = members.demands[place]
        members.rates[demand] = NOBODY
        for entry in range(net.rows[demand], net.rows[demand + 1]):
            number = members.numbers[net.resources[entry]]
            user[filled[number]] = demand
            filled[number] += 1
        if net.caps[demand] < np.inf:
            keys[size], indices[size] = net.caps[demand] / net.weights[demand], ~demand
            size += 1
    arrange(keys, indices, size)

    levels, tops = np.full(count, -1.0), np.zeros(count)
    waiting = members.sizes[0]
    level = 0.0
    alone = np.empty(1, np.int32)
    while waiting > 0:
        share, index = keys[0], indices[0]
        if index < 0:
            size = drop_least(keys, indices, size)
            if members.rates[~index] >= 0.0:
                continue
            alone[0] = ~index
            freezing = alone
            level = max(level, share)
        else:
            if users[index] == 0:
                size = drop_least(keys, indices, size)
                continue
            share = max(0.0, left[index]) / pull[index] if pull[index] > 0.0 else level
            if share > keys[0]:
                keys[0] = share
                settle_down(keys, indices, size, 0)
                continue
            size = drop_least(keys, indices, size)
            level = max(level, share)
            levels[index] = level
            freezing = user[first[index] : first[index + 1]]
        for demand in freezing:
            if members.rates[demand] >= 0.0:
                continue
            weight, cap = net.weights[demand], net.caps[demand]
            rate = cap if index < 0 else min(weight * level, cap)
            members.rates[demand] = rate
            members.stoppers[demand] = members.resources[index] if index >= 0 else NOBODY
            waiting -= 1
            for entry in range(net.rows[demand], net.rows[demand + 1]):
                number = members.numbers[net.resources[entry]]
                left[number] -= net.values[entry] * rate
                pull[number] -= net.values[entry] * weight
                users[number] -= 1
                held[number] += net.values[entry] * rate
                tops[number] = max(tops[number], rate / weight)
    return levels, tops, held
