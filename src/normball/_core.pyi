from typing import Any

def project_l1inf(
    y: Any,
    x: Any,
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
) -> tuple[int, int, float, int] | None: ...
def norms(y: Any, dtype: int, axes: int, batch: int, threads: int, l1inf: Any, linf1: Any) -> None: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
