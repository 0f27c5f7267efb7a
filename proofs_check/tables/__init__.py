"""The papers' tables and figures, reproduced next to the printed numbers."""
