"""Sphinx configuration. Build with ``make docs``."""

import normball

project = "normball"
version = release = normball.__version__
project_copyright = "the normball contributors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "benchmarks_numbers.md", "reproduction_numbers.md"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it better
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"normball {release}"
