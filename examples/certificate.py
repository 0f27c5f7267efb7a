"""Choose a feature map for a real table, with a certificate.

The table is the breast cancer data of scikit-learn: 569 rows of 30 measurements, in two classes. Run it as a script, or
cell by cell in an editor that knows the marks `# %%`. It writes a page, `certificate.html`, into a new folder.
"""

# %% The table, as a file that anyone might have.
import tempfile
from pathlib import Path

import jax
import numpy as np
from sklearn.datasets import load_breast_cancer

from jaxkern import io
from proofs_check.certify import certify, open_table

folder = Path(tempfile.mkdtemp())
data = load_breast_cancer()
names = [name.replace(" ", "_") for name in data.feature_names]
rows = [
    ",".join([*(f"{value:.6g}" for value in x), data.target_names[y]])
    for x, y in zip(data.data, data.target, strict=True)
]
(folder / "cells.csv").write_text("\n".join([",".join([*names, "diagnosis"]), *rows]) + "\n")

# %% Open it. Columns are standardised; the classes are text and not a coordinate.
table = open_table(folder / "cells.csv", labels="diagnosis", standardize=True)
print(f"{table.rows} rows, {table.dim} columns, left out: {table.left_out}")
for note in table.notes:
    print("note:", note)

# %% Ask for the Gram matrix within 5 % of n, except with probability 5 %. Two maps, to be quick.
spectral = certify(jax.random.key(0), table, goal="spectral", eps=0.05, maps=["nystrom", "paired_fourier"], time=10)
print(spectral.guarantee)
for reason in spectral.reasons:
    print("-", reason)

# %% What a theorem asks for, next to what draws on these data certify.
for demand in spectral.theory:
    if demand["map"] in ("nystrom", "paired_fourier") and demand["sizes"]:
        print(f"{demand['map']}: {demand['sizes']} by {demand['source']}")
for entry in spectral.maps:
    print(f"{entry['map']}: {entry['sizes']} by {entry['draws']} draws, {entry['failures']} of which failed")

# %% Use the map: on the points as they come, from a file, in one line.
spectral.save(folder / "map.npz")
phi = io.load(folder / "map.npz")
X = np.asarray(data.data, "float32")
Z = phi(X)
print("features:", Z.shape)

# %% Check the promise on fresh randomness: how many of 100 new draws fail?
failures, draws = spectral.fails(jax.random.key(1), draws=100)
print(f"{failures} of {draws} fresh draws failed; at most {spectral.delta:.0%} were promised")

# %% Another question: does the map keep the two classes apart?
apart = certify(jax.random.key(2), table, goal="separation", eps=0.2, maps=["nystrom", "kernel_jl"], time=10)
print(apart.guarantee or "no map was certified")

# %% The page with the plots.
spectral.write(folder)
print("page:", folder / "certificate.html")
