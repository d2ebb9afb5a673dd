"""Projections that are the same at every step, recorded as a CUDA graph: the host launches all of them in one call."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch import nn

from normball._info import ProjectionInfo
from normball.backends import cuda, torch_checks
from normball.balls.l1inf import L1InfBall

__all__ = ["Recording"]


class Recording:
    """The projections of all parameters, once they have been the same twice: onto l1,inf balls of fixed radii.

    A recorded projection starts from the caps and theta of the one before, and leaves its own in their place. It holds
    as long as the parameters stay where they are, the balls are the same, and the infos are those that it writes to;
    else it is given up, and the next steps are projected one by one until a new one can be made.
    """

    def __init__(self) -> None:
        self._seen: Any = None  # what was projected at the last step
        self._graph: torch.cuda.CUDAGraph | None = None
        self._holds_for: list[tuple[Any, ...]] = []

    def replay(
        self, parameters: Mapping[str, nn.Parameter], balls: Mapping[str, Any], infos: MutableMapping[str, Any]
    ) -> bool:
        """Project, and return True; False, with nothing done, where this is not for a recording, or not yet."""
        first = next(iter(parameters.values()), None)
        if first is None or first.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
            return False  # the last: into a graph of the caller's
        if self._graph is None or not self._holds(parameters, balls, infos):
            seen = None
            if _fit(parameters, balls, infos):
                seen = [(*_where(p), balls[name], infos[name].mu.shape) for name, p in parameters.items()]
            again = seen is not None and seen == self._seen
            self._seen, self._graph = seen, None
            if not again:
                return False
            self._record(parameters, balls, infos)
        assert self._graph is not None
        self._graph.replay()
        for parameter in parameters.values():
            torch.autograd.graph.increment_version(parameter)
        return True

    def _holds(
        self, parameters: Mapping[str, nn.Parameter], balls: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> bool:
        """Whether all is as it was recorded. This, and the launch, is what a step costs the host."""
        for name, place, dtype, shape, strides, ball, info in self._holds_for:
            parameter, now = parameters[name], balls[name]
            if (
                infos.get(name) is not info
                or parameter.data_ptr() != place
                or parameter.dtype != dtype
                or parameter.shape != shape
                or parameter.stride() != strides
                or not (now is ball or (type(now.radius) is type(ball.radius) and now == ball))
            ):
                return False
        return bool(torch.cuda.current_device() == parameter.device.index)

    def _record(
        self, parameters: Mapping[str, nn.Parameter], balls: Mapping[str, Any], infos: MutableMapping[str, Any]
    ) -> None:
        for name, info in infos.items():  # of its own: an earlier info may be in other hands
            infos[name] = ProjectionInfo(info.theta.clone(), info.mu.clone(), None, None, None)
        self._graph = _recorded(parameters, balls, infos)
        self._holds_for = [
            (name, *_where(parameter), balls[name], infos[name]) for name, parameter in parameters.items()
        ]


def _fit(parameters: Mapping[str, nn.Parameter], balls: Mapping[str, Any], infos: Mapping[str, Any]) -> bool:
    """Whether all is on the current GPU, which has the kernels, and the radii are numbers."""
    here = torch.device("cuda", torch.cuda.current_device())
    return all(
        type(parameter) is nn.Parameter
        and parameter.device == here
        and cuda.has_kernels(parameter)
        and parameter.numel() > 0
        and type(balls[name]) is L1InfBall
        and isinstance(balls[name].radius, (int, float))
        and name in infos
        and infos[name].mu.device == infos[name].theta.device == here
        and infos[name].mu.dtype == parameter.dtype
        and infos[name].mu.is_contiguous()
        for name, parameter in parameters.items()
    )


def _where(parameter: nn.Parameter) -> tuple[Any, ...]:
    return parameter.data_ptr(), parameter.dtype, parameter.shape, parameter.stride()


def _recorded(
    parameters: Mapping[str, nn.Parameter], balls: Mapping[str, Any], infos: Mapping[str, Any]
) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        graph.capture_begin(capture_error_mode="thread_local")  # what other threads do on the GPU is no matter
        for name, parameter in parameters.items():
            axes, _ = torch_checks.axes(parameter.ndim, balls[name].axis, None)
            state = infos[name].mu, infos[name].theta
            cuda.project_l1inf(parameter, parameter, float(balls[name].radius), axes, (), state, state)
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)
    return graph
