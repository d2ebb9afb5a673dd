"""Launches the checks on sharded tensors: two and four processes, and a job whose rank is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("needs torch.distributed with gloo", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]


def torchrun(ranks, module, *arguments):
    """Run a module on so many ranks; its output is told where it fails."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
    return subprocess.run(
        [*command, module, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_contract(ranks):
    done = torchrun(ranks, "tests.distributed.contract")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    assert done.stdout.count("passed") >= 6


def test_a_killed_rank_ends_the_job_and_its_checkpoint_goes_on(tmp_path):
    from tests.distributed import job

    done = torchrun(2, "tests.distributed.job", tmp_path, 7)
    assert done.returncode != 0
    assert "Signal 9 (SIGKILL) received" in done.stderr, done.stderr[-4000:]  # torchrun says which rank, and why
    # On another number of ranks: this process alone.
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model, began = job.train(tmp_path)
        assert began == 6
        expected, _ = job.alone()
        for parameter, other in zip(model.parameters(), expected.parameters(), strict=True):
            assert torch.allclose(parameter.full_tensor(), other, atol=1e-10)
    finally:
        dist.destroy_process_group()
