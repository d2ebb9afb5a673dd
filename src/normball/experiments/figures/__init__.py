"""One file for each figure and table."""

ORDER = (
    "fig:radius",
    "fig:time",
    "fig:large",
    "fig:size",
    "fig:J",
    "fig:sparsity",
    "fig:distributions",
    "fig:threads",
    "fig:gpu",
    "fig:theta",
    "fig:accuracy",
    "table:autoencoder",
    "fig:accuracy-features",
    "fig:latent",
    "fig:features",
    "table:training",
    "table:biology",
)
