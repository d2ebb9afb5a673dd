"""From a table to the few features that matter: the whole procedure, with its rivals and its checks.

Needs scikit-learn and PyTorch: ``pip install normball[sklearn]``.
"""
