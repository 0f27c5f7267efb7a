"""Nothing is lost: whatever call of the file layer fails, the old or the new state is there, and commands can go on."""

import errno
import os

import pytest

from proofs_check import files

CALLS = ("_open", "_write", "_fsync", "_rename")


class Faults:
    """Count the calls of the file layer, and make one of them fail."""

    def __init__(self, monkeypatch, at=-1, error=errno.ENOSPC):
        self.count, self.at, self.error = 0, at, error
        for name in CALLS:
            monkeypatch.setattr(files, name, self.wrap(getattr(os, name[1:] if name != "_rename" else "replace")))

    def wrap(self, call):
        def failing(*args):
            self.count += 1
            if self.count == self.at:
                raise OSError(self.error, os.strerror(self.error))
            return call(*args)

        return failing


@pytest.mark.parametrize("before", [b"old", None])
def test_a_file_is_written_as_a_whole_or_not_at_all(before, monkeypatch, tmp_path):
    path = tmp_path / "report"
    for at in range(1, 7):
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        with monkeypatch.context() as patch:
            faults = Faults(patch, at)
            if at == 6:  # after the last
                files.write(path, "new\udcff")
                assert faults.count == 5  # open, write, fsync, rename, and fsync of the folder
            else:
                with pytest.raises(files.StorageError, match=r"report cannot be written \(No space left on device\)"):
                    files.write(path, "new\udcff")
        found = path.read_bytes() if path.exists() else None
        assert found == (b"new\\udcff" if at > 4 else before) and {p.name for p in tmp_path.iterdir()} <= {"report"}


def test_one_process_alone_has_a_locked_file(tmp_path):
    path = tmp_path / "records"
    handle = files.open_locked(path)
    assert files.open_locked(path) is None
    files.append(handle, b"kept")
    os.close(handle)
    again = files.open_locked(path)
    assert os.read(again, 9) == b"kept"
    os.close(again)
    assert files.leftovers(tmp_path) == []
    aside = tmp_path / f".report.json.{'0' * 16}.tmp"
    aside.touch()
    assert files.leftovers(tmp_path) == [aside]
