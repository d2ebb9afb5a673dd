"""From a table to the few features that matter: the whole procedure, with its rivals and its checks.

Needs scikit-learn and PyTorch: ``pip install normball[sklearn]``.
"""

from normball.selection.application import Application, apply_model
from normball.selection.models import load_model, save_model
from normball.selection.preparation import Impute, Log
from normball.selection.procedure import study
from normball.selection.results import Study

__all__ = ["Application", "Impute", "Log", "Study", "apply_model", "load_model", "save_model", "study"]
