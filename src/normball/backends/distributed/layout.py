"""Where the parts of a sharded tensor lie, as one operator sees them: the only place that talks to other ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

from normball.backends.torch_rules import others

__all__ = ["Layout"]


class Layout:
    """A sharded tensor as (problem, group, member), and the ranks to speak to.

    A dimension of the mesh may cut the groups, when it shards a member axis; spread them, when it shards another;
    divide the problems, when it shards a batch axis, of which no one needs to speak; or repeat the whole.
    """

    def __init__(self, Y: DTensor, members: Sequence[int], batch: Sequence[int]) -> None:
        self.Y, self.members, self.batch = Y, list(members), list(batch)
        self.groups = others(Y.ndim, [*members, *batch])
        self.mesh, self.placements = Y.device_mesh, Y.placements
        self.cut: list[Any] = []
        self.spread: list[Any] = []
        widest = [int(n) for n in Y.shape]  # of any rank: what `gather` pads to
        for number, placement in enumerate(self.placements):
            size = self.mesh.size(number)
            axis = self._axis(placement)
            if axis is None:
                if not isinstance(placement, Replicate):
                    self._refuse(number)
                continue
            parts = int(placement.split_factor) if isinstance(placement, _StridedShard) else 1
            widest[axis] = parts * math.ceil(math.ceil(widest[axis] / parts) / size)
            if size == 1 or axis in self.batch:
                continue
            (self.cut if axis in self.members else self.spread).append(self.mesh.get_group(number))
        self.place, self.ranks = 0, 1  # of this rank among those that hold other groups, as `gather` puts them
        for group in self.spread:
            self.place += dist.get_rank(group) * self.ranks
            self.ranks *= dist.get_world_size(group)
        self.local: Tensor = Y.to_local()
        self.problems = math.prod(self.local.shape[a] for a in self.batch)
        self.here = math.prod(self.local.shape[a] for a in self.groups)
        self.most = math.prod(widest[a] for a in self.groups)
        self.count = math.prod(Y.shape[a] for a in self.members)  # of the members of a whole group

    def _axis(self, placement: Any) -> int | None:
        """Return the axis that a placement shards."""
        return placement.dim % self.Y.ndim if isinstance(placement, (Shard, _StridedShard)) else None

    def _refuse(self, number: int) -> NoReturn:
        wanted = [Replicate() if self._axis(p) is None else p for p in self.placements]
        raise ValueError(
            f"Y: expected placements of Shard and Replicate, got {self.placements[number]} on dimension {number} of "
            f"the mesh, whose parts are yet to be added up; call Y.redistribute(placements={wanted}) first"
        )

    # ---- the part of this rank --------------------------------------------------------------------------------------

    @property
    def view(self) -> Tensor:
        """The part of this rank as (problem, group, member)."""
        moved = self.local.detach().permute(*self.batch, *self.groups, *self.members)
        return moved.reshape(self.problems, self.here, math.prod(self.local.shape[a] for a in self.members))

    def beside(self, values: Tensor) -> Tensor:
        """Return (problem, group) values, shaped to broadcast against the part of this rank."""
        shape = [self.local.shape[a] for a in (*self.batch, *self.groups)] + [1] * len(self.members)
        order = [*self.batch, *self.groups, *self.members]
        return values.reshape(shape).permute([order.index(a) for a in range(self.Y.ndim)])

    def of_groups(self, values: Tensor) -> DTensor:
        """Return (problem, group) values as a sharded tensor of the shape that the members leave."""
        kept = others(self.Y.ndim, self.members)
        shape = [self.local.shape[a] for a in (*self.batch, *self.groups)]
        order = [*self.batch, *self.groups]
        return self._shard(values.reshape(shape).permute([order.index(a) for a in kept]), kept)

    def of_problems(self, values: Tensor) -> Tensor:
        """Return the values of the problems: a plain tensor, or a sharded one where a batch axis is."""
        values = values.reshape([self.local.shape[a] for a in self.batch])
        divided = any(self._axis(p) in self.batch for p in self.placements)
        return self._shard(values, self.batch) if divided else values

    def _shard(self, values: Tensor, kept: Sequence[int]) -> DTensor:
        """Wrap the part of this rank of a tensor whose axes are the axes `kept` of `Y`."""
        placements: list[Any] = []
        for p in self.placements:
            axis = self._axis(p)
            if axis is None or axis not in kept:
                placements.append(Replicate())
            elif isinstance(p, _StridedShard):
                placements.append(_StridedShard(kept.index(axis), split_factor=p.split_factor))
            else:
                placements.append(Shard(kept.index(axis)))
        return _wrapped(values.contiguous(), self.mesh, placements, [self.Y.shape[a] for a in kept])

    def result(self, X: Tensor) -> DTensor:
        """Return the part of this rank as a tensor placed as `Y` is."""
        return DTensor.from_local(
            X, self.mesh, self.placements, run_check=False, shape=self.Y.shape, stride=self.Y.stride()
        )

    def part_of(self, values: Tensor, kept: Sequence[int]) -> Tensor:
        """Return this rank's part of a plain tensor that all ranks hold, whose axes are the axes `kept` of `Y`."""
        model = self._shard(self.local.new_zeros([0] * len(kept)), kept)
        return distribute_tensor(values, self.mesh, model.placements, src_data_rank=None).to_local()

    # ---- what is said to other ranks --------------------------------------------------------------------------------

    def total(self, values: Tensor) -> Tensor:
        """Add up over the ranks that hold parts of the same groups."""
        return _reduced(values, self.cut, dist.ReduceOp.SUM)

    def greatest(self, values: Tensor) -> Tensor:
        """Return the greatest over the ranks that hold parts of the same groups."""
        return _reduced(values, self.cut, dist.ReduceOp.MAX)

    def total_of_groups(self, values: Tensor) -> Tensor:
        """Add up over the ranks that hold other groups."""
        return _reduced(values, self.spread, dist.ReduceOp.SUM)

    def greatest_of_groups(self, values: Tensor) -> Tensor:
        """Return the greatest over the ranks that hold other groups."""
        return _reduced(values, self.spread, dist.ReduceOp.MAX)

    def greatest_of_problems(self, peaks: Tensor) -> Tensor:
        """Return the greatest (problem, group) value of each problem, over all the ranks that have a part of it."""
        mine = peaks.amax(1) if peaks.shape[1] else peaks.new_zeros(peaks.shape[0])
        return self.greatest_of_groups(self.greatest(torch.nan_to_num(mine, nan=torch.inf)))

    def gather(self, values: Tensor, length: int) -> Tensor:
        """Return the rows of all the ranks that hold other groups, of each as many as `length`, padded by zeros."""
        rows = values.new_zeros(length, *values.shape[1:])
        rows[: len(values)] = values
        for group in self.spread:
            size = dist.get_world_size(group)
            everyone = rows.new_empty(size * len(rows), *rows.shape[1:])
            dist.all_gather_into_tensor(everyone, rows.contiguous(), group=group)
            rows = everyone
        return rows.reshape(self.ranks, length, *values.shape[1:])


def _reduced(values: Tensor, groups: Sequence[Any], how: Any) -> Tensor:
    values = values.contiguous()
    for group in groups:
        dist.all_reduce(values, how, group=group)
    return values


def _wrapped(values: Tensor, mesh: Any, placements: Sequence[Any], shape: Sequence[int]) -> DTensor:
    stride = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return DTensor.from_local(
        values, mesh, placements, run_check=False, shape=torch.Size(shape), stride=tuple(stride)
    )
