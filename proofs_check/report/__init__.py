"""What a run and a certificate show: the document, its pages, Markdown, the terminal."""
