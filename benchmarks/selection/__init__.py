"""Accuracy and number of features of the estimator and of its rivals, on the same folds."""
