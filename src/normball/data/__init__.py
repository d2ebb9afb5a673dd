"""Tables of samples by features: read from the files that laboratories have, checked, or made up.

Needs nothing but NumPy for text and npz files; pyarrow, if there, makes text faster. Parquet, xlsx and h5ad need
``pip install normball[omics]``.
"""

from normball.data.read import read_table
from normball.data.synthetic import make_omics
from normball.data.table import Table, TableError

__all__ = ["Table", "TableError", "make_omics", "read_table"]
