"""The pieces of work: the radii are those asked for, nothing is timed that does not agree, one layer is two stories."""

from dataclasses import asdict

import numpy as np
import pytest

import normball
from normball.experiments import fits, projections, registry, tables
from normball.experiments.fits import Synthetic
from normball.experiments.style import spread

SMALL = Synthetic(features=60, samples=120, informative=8)


@pytest.mark.parametrize("distribution", projections.DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_radii_leave_the_share_asked_for(distribution, dtype):
    Y = projections.matrix(distribution, 30, 200, 0, dtype)
    for share in (0.999, 0.9, 0.5, 0.0):
        _, info = normball.project_l1inf(Y, projections.radius_at(Y, "zeros", share), return_info=True)
        zeros = 200 - info.n_nonzero
        tied = 8 if distribution == "ties" else 0
        assert abs(zeros - min(round(200 * share), 199)) <= tied, share
        assert info.n_nonzero > 0


def test_other_ways_to_ask_for_a_radius():
    Y = projections.matrix("uniform", 10, 20, 0)
    assert projections.radius_at(Y, "radius", 0.3) == 0.3
    assert projections.radius_at(Y, "norm", 0.5) == pytest.approx(0.5 * normball.norm_l1inf(Y))


def test_matrices_have_contiguous_columns_and_depend_on_the_seed_alone():
    Y = projections.matrix("normal", 7, 5, 3)
    assert Y.shape == (7, 5)
    assert Y.flags.f_contiguous
    assert np.array_equal(Y, projections.matrix("normal", 7, 5, 3))
    assert not np.array_equal(Y, projections.matrix("normal", 7, 5, 4))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_is_timed_that_does_not_agree(dtype):
    Y = projections.matrix("normal", 20, 20, 0, dtype)
    X = normball.project_l1inf(Y, 1.0)
    projections.check_agreement({"a": X, "b": X.copy()}, Y)
    for wrong in (X * np.asarray(1.01, dtype), np.full_like(X, np.nan)):
        with pytest.raises(ArithmeticError, match="a and b differ"):
            projections.check_agreement({"a": X, "b": wrong}, Y)


def test_times_of_all_the_algorithms_and_the_copy():
    (cell,) = projections.sweep([(40, 50)], "zeros", [0.5], budget=0.0)
    rows = {row["algorithm"]: row for row in cell.rows()}
    assert set(rows) == {*projections.ALGORITHMS, projections.COPY}
    assert all(row["ms"] > 0 and row["rounds"] == 3 for row in rows.values())
    assert rows["newton"]["zeros"] == pytest.approx(0.5)


def test_slow_actions_stop_at_their_budget_and_quick_ones_go_on():
    import time

    actions = {"slow": lambda: time.sleep(0.01), "quick": lambda: None}
    rows = projections.by_turns(actions, 0.015, least=2, most=6, clock=time.perf_counter)
    assert {row["algorithm"]: row["rounds"] for row in rows} == {"slow": 2, "quick": 6}


def test_the_layer_without_a_projection_is_that_of_the_first_descent():
    """So fig:theta, which projects the one, speaks of the same network as table:autoencoder, which uses the other."""
    table = asdict(SMALL)
    (layer,) = [row for row in fits.radii_of_layer(table=table, seed=1, radii=[0.1]).rows()]
    (cell,) = fits.fits(SMALL, ["l1inf"], 1)
    (fit,) = fits._fit(table=table, method="l1inf", options={}, seed=1).rows()
    assert layer["kept"] == fit["kept"]
    assert 0 < fit["kept"] < SMALL.features
    assert cell.params["seed"] == 0


def test_rivals_keep_what_they_are_asked_for():
    for method in ("anova_qda", "anova_logistic", "default"):
        (cell,) = fits.fits(SMALL, [method], 1, [{"n_features_to_select": 6}])
        (row,) = cell.rows()
        assert row["kept"] == 6
        assert row["informative_kept"] <= 6
        assert 0 <= row["accuracy"] <= 100


def test_labels_move_apart_and_no_further():
    heights = spread(np.array([0.1, 0.5, 0.51, 0.52, 0.9]), 0.1)
    assert np.diff(heights).min() >= 0.1 - 1e-12
    assert heights[0] == 0.1
    assert heights[-1] == 0.9
    assert np.mean(heights[1:4]) == pytest.approx(0.51)


def test_experiments_are_found_in_the_order_of_the_paper():
    known = list(registry.experiments())
    assert known[:3] == ["fig:radius", "fig:time", "fig:large"]
    assert [each.id for each in registry.chosen(["fig:J", "fig:radius"])] == ["fig:radius", "fig:J"]
    with pytest.raises(ValueError, match="did you mean fig:radius"):
        registry.chosen(["fig:radios"])
    with pytest.raises(ValueError, match="did you mean fig:size"):
        registry.chosen(["size"])


@pytest.mark.parametrize("way", ["", ":status", ":row=1"])
def test_labels_are_where_the_user_says(tmp_path, way):
    rows = [line.split(",") for line in ("s1,ill,1,2000", "s2,well,4,-3", "s3,ill,5,7", "s4,well,,8")]
    head = ["sample", {"": "label", ":status": "status"}.get(way, "kind"), "f", "g"]
    lines = np.vstack([head, rows])
    if way == ":row=1":
        lines = np.vstack([lines[:, 1], lines[:, 2:].T])
    path = tmp_path / "table.csv"
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    name, X, y = tables.load(f"{path}{way}")
    assert tables.absolute(f"{path.parent}/../{path.parent.name}/table.csv{way}") == f"{path.resolve()}{way}"
    assert name == "table.csv, 4 x 2, 2 classes, logs"
    assert list(y) == ["ill", "well", "ill", "well"]
    assert X[0] == pytest.approx(np.arcsinh([1.0, 2000.0]))
    assert np.isnan(X[3, 0])


def test_a_changed_table_is_another_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("label,f\na,1\nb,2\n")
    (before,) = tables.cross_validations((str(path),), ["none"], 1, 2)
    path.write_text("label,f\na,1\nb,3\n")
    (after,) = tables.cross_validations((str(path),), ["none"], 1, 2)
    assert before.key("") != after.key("")
