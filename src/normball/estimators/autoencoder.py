"""The supervised autoencoder as a scikit-learn estimator."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from normball.estimators import _checks, _persistence
from normball.estimators._descents import Plan
from normball.estimators._fitted import FittedMixin
from normball.estimators._fitting import Request, fit
from normball.estimators._ranks import ALONE, everyone
from normball.estimators._stream import Stream
from normball.estimators._tables import checked
from normball.estimators._training import Progress, Schooling

__all__ = ["SupervisedAutoencoder"]

_SMALL = 1 << 20  # entries of a table on which double precision costs nothing that matters

# What a parameter that is None stands for.
PRESETS: dict[str | None, dict[str, Any]] = {
    None: {
        "descent": "refit",
        "head": "auto",
        "batch_size": 128,
        "reconstruction_weight": 0.1,
    },
    "paper": {
        "radius": 0.1,
        "descent": "double",
        "head": "network",
        "epochs": 20,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "reconstruction_weight": 5e-5,
    },
}


class SupervisedAutoencoder(FittedMixin, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that finds the few features that matter.

    A network is trained on all the features, and its first layer is projected onto the ball of a norm that makes whole
    columns zero: their features are not used. What remains is trained again.

    Parameters
    ----------
    n_features_to_select : int, float or "auto"
        A number of features, a fraction of them, or the choice by inner cross-validation along the `ranking`: the
        fewest whose held-out log-likelihood is not worse than the best by more than one standard error of the paired
        difference, which counts as 0.01 at least and as 0.02 at most. At most 512. The choice looks at no more than
        20000 samples.
    radius : float, optional
        The radius of the ball, in place of a number of features: giving both is an error.
    norm : {"l1inf", "l12", "l1", "bilevel_l1inf", "bilevel_l11", "bilevel_l12"} or None
        The norm of the ball. None uses all the features, without a projection; the network is then the only `head`, and
        a number of features, a radius or a `descent` is an error.
    ranking : {"layer", "grown"}
        "layer": the order in which the ball takes the columns of the first layer, and so the exact path. "grown": of
        its first 1024 features those come first that tell most of what the ones before leave open, so that a feature
        which repeats others comes late. No ball leaves just these: `radius_` and `theta_` are None then.
    descent : {"refit", "double", "masked", "projected"}, optional
        "refit", the default: rank the features by a short descent, train a small network on the best. "double", as in
        the paper: train, project, rewind the surviving weights to their initial values, train again with the zeros
        frozen. "masked": the same without rewinding. "projected": project after every epoch, each time from the theta
        of the last projection.
    head : {"auto", "network", "linear", "gaussian"}, optional
        The model that predicts from the selected features: the latent vector of the network; logistic regression; one
        Gaussian for each class. "auto", the default, takes the first of linear, gaussian, network that no later one
        clearly beats in the inner cross-validation.
    hidden : int or tuple of int
        The hidden layers of the encoder; the decoder mirrors them.
    activation : {"silu", "relu"}
        Between the layers.
    reconstruction_weight : float, optional
        The loss is this times SmoothL1 of the reconstruction, plus the cross entropy. 0.1 by default.
    epochs, learning_rate : int, float, optional
        Of Adam. By default 20 epochs, and no fewer than 60 steps; 0.01 for the small network of "refit", else 0.001.
    batch_size : int, optional
        The number of samples in a batch, 128 by default. Data that fit into one batch are not shuffled.
    constraints : mapping, optional
        Balls of other layers, from patterns of `normball.nn.constrain`: ``{"encoder.2.weight": L1InfBall(0.5)}``. They
        hold after every step of Adam, in every network but that which only ranks for "refit". The layers are
        ``encoder.0, encoder.2, ...`` and ``decoder.0, decoder.2, ...``; the first is that of `norm`.
    standardize : bool
        Standardise the features, by the moments of the training data.
    class_weight : dict, "balanced" or None
        As elsewhere in scikit-learn.
    cv : int, splitter or iterable, optional
        The inner splits; five stratified folds by default.
    expand : {None, "associated"}
        Also look for features that the selected ones explain; kept only where inner validation improves.
    device : str
        "cpu", "cuda" or "auto".
    distributed : bool
        Train data-parallel, over the ranks of PyTorch's default process group: every rank calls `fit` with the same
        table, reads its own part of the rows, and ends with the same estimator. See `docs/distributed.md`.
    random_state : int, RandomState or None
        With an int, the same bits on every fit on the CPU.
    warm_start : bool
        Begin the first descent from the first layer of the fit before. See `partial_fit` for data that come in chunks.
    callback : callable, optional
        Called after each epoch with a dict: stage, epoch, epochs, loss.
    checkpoint : path, optional
        A file to write after each epoch. A fit that finds one goes on from there, to the same bits, and removes it at
        its end.
    preset : {None, "paper"}
        The values that `radius`, `descent`, `head`, `reconstruction_weight`, `epochs`, `learning_rate` and `batch_size`
        have where they are None. None: the defaults named above. "paper": the paper's recipe, which is radius 0.1,
        "double", "network", 5e-5, 20, 0.001 and 32; its radius gives way to a number of features.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    support_ : ndarray of bool
        The selected features; `selected_features_` has their names, or their numbers where `X` had no names.
    feature_importances_ : ndarray
        Zero for features that are not selected; the others add up to 1.
    feature_path_ : dict of ndarray
        What the inner cross-validation saw: n_features, head, accuracy, standard_error, log_likelihood; and theta and
        radius of the projection of the first layer that leaves so many features.
    radius_, theta_ : float
        Of the projection that leaves the selected features; None where they were grown.
    head_ : str
        What predicts.
    expanded_ : bool
        Whether `expand` changed the selection.

    Notes
    -----
    G. Perez, L. Condat and M. Barlaud, *Near-linear time projection onto the l1,inf ball; application to sparse neural
    networks* (2023). A column survives the exact l1,inf projection if and only if its l1 norm exceeds theta: so one
    trained layer gives the whole path from one feature to all.

    A sample of weight w counts as w samples. Test data have no part in any choice.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from normball.estimators import SupervisedAutoencoder
    >>> X, y = make_classification(200, 50, n_informative=3, n_redundant=0, class_sep=2, shuffle=False, random_state=0)
    >>> sae = SupervisedAutoencoder(n_features_to_select=3, random_state=0).fit(X, y)
    >>> sae.get_support(indices=True)
    array([0, 1, 2])
    >>> sae.transform(X).shape
    (200, 2)
    """

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        radius: float | None = None,
        norm: str | None = "l1inf",
        ranking: str = "layer",
        descent: str | None = None,
        head: str | None = None,
        hidden: int | tuple[int, ...] = 100,
        activation: str = "silu",
        reconstruction_weight: float | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        constraints: Any = None,
        standardize: bool = True,
        class_weight: Any = None,
        cv: Any = None,
        expand: str | None = None,
        device: str = "cpu",
        distributed: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
        preset: str | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.radius = radius
        self.norm = norm
        self.ranking = ranking
        self.descent = descent
        self.head = head
        self.hidden = hidden
        self.activation = activation
        self.reconstruction_weight = reconstruction_weight
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.constraints = constraints
        self.standardize = standardize
        self.class_weight = class_weight
        self.cv = cv
        self.expand = expand
        self.device = device
        self.distributed = distributed
        self.random_state = random_state
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint
        self.preset = preset

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _asked(self) -> Any:
        """Return an estimator with the same parameters, but with the values of the preset where they are None."""
        _checks.consistent(self, tuple(PRESETS))
        mine = self.get_params(deep=False)
        preset = {name: value for name, value in PRESETS[self.preset].items() if mine[name] is None}
        if self.norm is None or not isinstance(self.n_features_to_select, str):
            preset.pop("radius", None)
        return type(self)(**mine | preset)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SupervisedAutoencoder:
        """Select features and fit.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or table on a disk, of shape (n_samples, n_features)
            A memory-mapped array, an HDF5 or Zarr dataset, and the ``X`` of a backed AnnData, dense or CSR, are read
            batch by batch; only the selected columns are held in memory. `expand` holds them all.
        y : array_like of shape (n_samples,)
            The labels, numbers or strings.
        sample_weight : array_like of shape (n_samples,), optional
            A sample of weight w counts as w samples.

        Returns
        -------
        SupervisedAutoencoder
            Itself.
        """
        asked, device = self._ready(y)
        ranks = everyone() if asked.distributed else ALONE
        X, y = checked(self, X, y, finite=not asked.distributed)
        if asked.distributed:
            _checks.finite_rows(X, ranks)
        check_classification_targets(y)
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_, codes = _checks.labels(y, sample_weight)
        if asked.class_weight is not None:
            balance = compute_class_weight(
                asked.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
            )
            sample_weight = sample_weight * balance[codes]
        self.__dict__.pop("_stream", None)
        seed = int(check_random_state(asked.random_state).randint(1 << 31))
        fingerprint = "" if asked.checkpoint is None else _persistence.fingerprint(asked, seed, X, y)
        progress = Progress(asked.callback, asked.checkpoint, fingerprint, ranks)
        plan = self._plan(asked, X, seed, device, progress)
        start = getattr(self, "_layer", None) if asked.warm_start else None
        self._take(fit(X, codes, sample_weight, plan, self._request(asked, start, asked.ranking == "grown")))
        progress.finish()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SupervisedAutoencoder:
        """Go on learning from a chunk of the data: one pass over it, unless `epochs` says more.

        The features are standardised by the moments of all the chunks so far, ranked by a network that has seen them
        all, and those ranked best are what a second network learns from and predicts with. With "auto" the number of
        features is chosen on the first chunk. `descent`, `cv` and `checkpoint` have no part in it. A fit before gives
        the first ranking; all else begins anew.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; the labels need not all be there.
        classes : array_like, optional
            All the labels that will ever come; needed on the first call.

        Returns
        -------
        SupervisedAutoencoder
            Itself.
        """
        asked, device = self._ready(y)
        _checks.streaming(asked)
        X, y = checked(self, X, y, reset=not hasattr(self, "n_features_in_"))
        check_classification_targets(y)
        _check_partial_fit_first_call(self, classes)
        codes = _checks.codes_of(y, self.classes_)
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if asked.class_weight is not None:
            sample_weight = sample_weight * [asked.class_weight.get(label, 1.0) for label in self.classes_[codes]]
        if not sample_weight.any():
            raise ValueError("sample_weight: expected a sample of weight > 0, by its class too, got none")
        stream = getattr(self, "_stream", None)
        seed = int(check_random_state(asked.random_state).randint(1 << 31)) if stream is None else stream.seed
        plan = self._plan(asked, X, seed, device, Progress(asked.callback, None, ""))
        start = getattr(self, "_layer", None) if asked.descent == "refit" else None
        request = self._request(asked, start)
        if stream is None:
            stream = Stream(seed, plan.network(X.shape[1]), asked.learning_rate)
        self._take(stream.learn(X, codes, sample_weight, plan, request))
        self._stream = stream
        return self

    def _ready(self, y: Any) -> tuple[Any, torch.device]:
        """Check what does not depend on the data; return the parameters and the device."""
        asked = self._asked()
        _checks.options(asked)
        device = _checks.device_of(asked.device)
        _checks.plain_labels(y)
        return asked, device

    def _plan(self, asked: Any, X: Any, seed: int, device: torch.device, progress: Progress) -> Plan:
        sizes = (asked.hidden,) if isinstance(asked.hidden, numbers.Integral) else asked.hidden
        hidden = tuple(int(size) for size in sizes)
        ranks = everyone() if asked.distributed else ALONE
        return Plan(
            hidden=hidden,
            classes=len(self.classes_),
            activation=asked.activation,
            norm=asked.norm,
            descent=asked.descent,
            epochs=asked.epochs,
            learning_rate=asked.learning_rate,
            schooling=Schooling(int(asked.batch_size), float(asked.reconstruction_weight), seed, ranks),
            progress=progress,
            dtype=torch.float64 if X.shape[0] * X.shape[1] <= _SMALL else torch.float32,
            device=device,
            constraints=_checks.constraints(asked.constraints, hidden),
        )

    def _request(self, asked: Any, start: npt.NDArray[Any] | None, grown: bool = False) -> Request:
        count = _checks.count_of(asked.n_features_to_select, self.n_features_in_)
        return Request(count, asked.radius, grown, asked.head, asked.cv, asked.standardize, asked.expand, start)
