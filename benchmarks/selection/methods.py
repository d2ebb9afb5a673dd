"""The estimator and its rivals: each fits on a training part, and tells its features and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from normball.estimators import SupervisedAutoencoder

COUNTS = (8, 16, 32, 48, 64, 128)


@dataclass(frozen=True)
class Method:
    make: Callable[[bool], Any]
    support: Callable[[Any], Any]
    slow: bool = False  # all the seeds of the first synthetic table, one of the others, no real table


def _scaled(standardize: bool, *steps: tuple[str, Any]) -> Pipeline:
    return Pipeline([("scale", StandardScaler() if standardize else "passthrough"), *steps])


def _anova(head: Any) -> Callable[[bool], Any]:
    def make(standardize: bool) -> Any:
        pipe = _scaled(standardize, ("pick", SelectKBest(f_classif)), ("head", head))
        return GridSearchCV(pipe, {"pick__k": COUNTS}, cv=3)

    return make


def _l1(standardize: bool) -> Any:
    model = OneVsRestClassifier(LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=200))
    return GridSearchCV(_scaled(standardize, ("head", model)), {"head__estimator__C": [0.03, 0.1, 0.3, 1.0]}, cv=3)


def _l2(standardize: bool) -> Any:
    model = LogisticRegression(max_iter=300)
    return GridSearchCV(_scaled(standardize, ("head", model)), {"head__C": [1e-3, 1e-2, 0.1, 1.0]}, cv=3)


def _sae(**options: Any) -> Callable[[bool], Any]:
    return lambda standardize: SupervisedAutoencoder(random_state=0, standardize=standardize, **options)


def _lassonet(standardize: bool) -> Any:
    return LassoNet(standardize)


class LassoNet:
    """LassoNet over a bounded path, its penalty chosen on a fifth of the training part."""

    def __init__(self, standardize: bool) -> None:
        self.scale = StandardScaler(with_mean=standardize, with_std=standardize)

    def fit(self, X: Any, y: Any) -> LassoNet:
        from lassonet import LassoNetClassifier
        from sklearn.model_selection import train_test_split

        self.classes, codes = np.unique(y, return_inverse=True)
        X = self.scale.fit_transform(X).astype(np.float32)
        A, B, a, b = train_test_split(X, codes, test_size=0.2, stratify=codes, random_state=0)
        # The start of the path is given: LassoNet's own search for it takes minutes at 10000 features.
        self.model = LassoNetClassifier(
            hidden_dims=(100,), n_iters=(300, 30), patience=(50, 10), lambda_start=20.0, path_multiplier=1.15,
            random_state=0, verbose=0,
        )  # fmt: skip
        path = self.model.path(A, a, return_state_dicts=True)
        best, self.chosen = -1.0, np.ones(X.shape[1], bool)
        for item in path:
            self.model.load(item.state_dict)
            score = float((self.model.predict(B) == b).mean())
            if score >= best:  # later on the path the features are fewer
                best, keep, self.chosen = score, item.state_dict, np.asarray(item.selected)
        self.model.load(keep)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes[self.model.predict(self.scale.transform(X).astype(np.float32))]


def _coef(model: Any) -> Any:
    heads = model.best_estimator_["head"].estimators_
    return np.any([np.abs(head.coef_).max(0) > 0 for head in heads], axis=0)


def _every(model: Any) -> Any:
    return np.ones(model.n_features_in_, bool)


def _of_sae(model: Any) -> Any:
    return model.support_


METHODS: dict[str, Method] = {
    "normball, default": Method(_sae(), _of_sae),
    "normball, expand": Method(_sae(expand="associated"), _of_sae),
    "ANOVA + logistic": Method(
        _anova(LogisticRegression(C=0.1, max_iter=300)), lambda m: m.best_estimator_["pick"].get_support()
    ),
    "ANOVA + QDA": Method(
        _anova(QuadraticDiscriminantAnalysis(reg_param=0.1)), lambda m: m.best_estimator_["pick"].get_support()
    ),
    "L1 logistic": Method(_l1, _coef),
    "L2 logistic": Method(_l2, _every),
    "random forest": Method(lambda standardize: RandomForestClassifier(300, random_state=0), _every),
    "normball, network head": Method(_sae(head="network"), _of_sae, slow=True),
    "normball, paper": Method(_sae(preset="paper"), _of_sae, slow=True),
    "normball, no projection": Method(_sae(norm=None), _of_sae, slow=True),
    "LassoNet": Method(_lassonet, lambda m: m.chosen, slow=True),
}
