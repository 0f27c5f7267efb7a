"""The theorem atlas of the documentation: a page a paper with what a full run found, and the errata of the papers.

`python -m proofs_check.report.atlas RUN --docs docs` writes both, where RUN is the folder of a full run; without RUN
it writes the errata alone, which need no run. Equal reports give equal files.
"""
