from typing import Any

def project_l1inf(
    y: Any,
    x: Any | None,
    dtype: int,
    axes: int,
    batch: int,
    radius: float,
    radii: Any | None,
    method: int,
    check_finite: bool,
    threads: int,
    theta: Any | None,
    mu: Any | None,
    warm_theta: Any | None,
    warm_mu: Any | None,
    blank: bool,
) -> tuple[int, int, float, int] | None: ...
def tangent_l1inf(
    y: Any,
    v: Any,
    x: Any,
    dtype: int,
    axes: int,
    batch: int,
    threads: int,
    theta: Any,
    mu: Any,
    change: Any,
) -> bool: ...
def norms(y: Any, dtype: int, axes: int, batch: int, threads: int, l1inf: Any, linf1: Any) -> None: ...
def aggregate(y: Any, dtype: int, axes: int, kind: int, threads: int, values: Any) -> None: ...
def thresholds(
    y: Any,
    x: Any | None,
    dtype: int,
    axes: int,
    write: int,
    with_sign: bool,
    tiny: bool,
    check_finite: bool,
    threads: int,
    radii: Any,
    taus: Any,
    sums: Any | None,
    blank: bool,
) -> tuple[bool, float]: ...
def write(
    y: Any, x: Any, dtype: int, axes: int, kind: int, tiny: bool, threads: int, parameters: Any, blank: bool
) -> None: ...
def weighted_thresholds(
    y: Any, x: Any, weights: Any, dtype: int, check_finite: bool, radii: Any, taus: Any
) -> bool: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
