"""Files that are not what they say: arrays and archives made by hand, and what is asked of the line that refuses."""

import unicodedata
import warnings
import zipfile

import pytest


def is_plain(text):
    """Tell whether a terminal shows text on one line, as it is: no control, and no change of direction."""
    return not any(
        unicodedata.category(sign)[0] == "C" or sign in "\u2028\u2029" for sign in text
    )


def one_line(call, errors, *words):
    """Assert that a call raises one of these errors, with these words on one short line, and return it."""
    with pytest.raises(errors) as caught:
        call()
    message = str(caught.value)
    assert message and is_plain(message) and len(message) < 1500, message
    for word in words:
        assert word in message, message
    return message


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def npy(text, content=b"", version=1):
    """Return the bytes of a .npy file with this text for a header."""
    raw = text if isinstance(text, bytes) else text.encode()
    size = len(raw).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + raw + content


def declared(shape, dtype="'<f8'", content=b"", order=False):
    return npy(
        f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}", content
    )


def archive(path, entries, method=zipfile.ZIP_STORED):
    """Write an archive of names and contents, which may repeat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that repeat
        with zipfile.ZipFile(path, "w", method) as file:
            for name, content in entries:
                file.writestr(name, content)
    return path


def patched(path, at, content):
    """Overwrite bytes of the first record in the directory of an archive."""
    raw = bytearray(path.read_bytes())
    start = raw.index(b"PK\x01\x02") + at
    raw[start : start + len(content)] = content
    return write(path, bytes(raw))
