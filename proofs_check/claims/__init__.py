"""The statements of the papers, one file per paper, named by bib key."""
