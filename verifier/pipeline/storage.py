"""Paths through pyarrow filesystems: local, s3:// and gs:// read and write alike."""

import fcntl
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pyarrow import ArrowInvalid
from pyarrow import fs as pafs

from verifier.errors import ConfigurationError

_RAY_FOLDER = "/runtime_resources/working_dir_files/"  # where a submitted job works
_FOLDERS = ("work", "results", "rejects", "checkpoint")


def open_filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem of a local path or URI, and the path inside it."""
    try:
        if "://" in path:
            filesystem, inside = pafs.FileSystem.from_uri(path)
            return filesystem, inside
        return pafs.LocalFileSystem(), Path(path).expanduser().absolute().as_posix()
    except (ArrowInvalid, OSError, ImportError) as error:
        raise ConfigurationError(f"{path} cannot be opened: {_first_line(error)}") from error


def is_local(filesystem: pafs.FileSystem) -> bool:
    """Whether files of this filesystem can be opened with the operating system's calls."""
    return isinstance(filesystem, pafs.LocalFileSystem)


def list_files(path: str) -> tuple[pafs.FileSystem, list[str]]:
    """The files behind a file, folder or pattern (``*``, ``?``, ``**``), sorted; nothing there is an error.

    Files and folders inside a folder whose name starts with ``.`` or ``_`` are left out, as Spark and Arrow do.
    """
    filesystem, inside = open_filesystem(path)
    try:
        found = _found(filesystem, inside, "://" in path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {_first_line(error)}") from error
    if found is None:
        raise ConfigurationError(f"{path} does not exist; check the path")
    if not found:
        raise ConfigurationError(f"{path} names no file; check the path or pattern")
    return filesystem, sorted(found)


def _found(filesystem: pafs.FileSystem, inside: str, is_uri: bool) -> list[str] | None:
    info = filesystem.get_file_info(inside)
    if info.type == pafs.FileType.File:
        return [inside]
    if info.type == pafs.FileType.Directory:
        return _inside(filesystem, inside)
    wild = "*" if is_uri else "*?"
    if not any(character in inside for character in wild):
        return None
    parts = PurePosixPath(inside).parts
    fixed = next(index for index, part in enumerate(parts) if any(character in part for character in wild))
    base = PurePosixPath(*parts[:fixed]).as_posix()
    pattern = _pattern(PurePosixPath(inside).as_posix(), wild)
    if filesystem.get_file_info(base).type != pafs.FileType.Directory:
        return []
    return [name for name in _inside(filesystem, base) if pattern.fullmatch(name)]


def _inside(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    infos = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True))
    files = [info.path for info in infos if info.type == pafs.FileType.File]
    depth = len(PurePosixPath(folder).parts)
    return [name for name in files if not any(part[0] in "._" for part in PurePosixPath(name).parts[depth:])]


def _pattern(glob: str, wild: str) -> re.Pattern[str]:
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" if "?" in wild else r"\?"}
    split = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(pieces.get(piece, re.escape(piece)) for piece in split))


def delete_files(filesystem: pafs.FileSystem, folder: str, name: str) -> None:
    """Delete the files directly in ``folder`` whose name matches the regular expression ``name``."""
    selector = pafs.FileSelector(folder, allow_not_found=True)
    for info in filesystem.get_file_info(selector):
        if info.type == pafs.FileType.File and re.fullmatch(name, info.base_name):
            filesystem.delete_file(info.path)


def exists(path: str) -> bool:
    """Whether a file or folder is there."""
    filesystem, inside = open_filesystem(path)
    return bool(filesystem.get_file_info(inside).type != pafs.FileType.NotFound)


def read_text(filesystem: pafs.FileSystem, path: str) -> str | None:
    """The text of a small file, or None where there is none."""
    if filesystem.get_file_info(path).type != pafs.FileType.File:
        return None
    with filesystem.open_input_stream(path) as stream:
        content: bytes = stream.read()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is damaged: it is no UTF-8; use another output.dir") from error


def write_text(filesystem: pafs.FileSystem, path: str, text: str) -> None:
    """Write a small file so that it is there whole or not at all."""
    # An object store shows an object only once it is complete; a local file needs the rename.
    target = f"{path}.partial" if is_local(filesystem) else path
    with filesystem.open_output_stream(target) as stream:
        stream.write(text.encode())
    if target != path:
        filesystem.move(target, path)


def is_in_ray_copy(path: str) -> bool:
    """Whether an absolute path lies in the copy of a folder that a submitted job works in."""
    return _RAY_FOLDER in path


def check_writable(run_dir: str, name: str = "output.dir") -> None:
    """Raise ConfigurationError, naming the setting, where a run directory cannot be made or written to."""
    filesystem, root = open_filesystem(run_dir)
    if is_in_ray_copy(root):
        raise ConfigurationError(
            f"{name} is {run_dir}, in the copy of your folder that Ray deletes after the job:"
            " give an absolute path or a URI that every node reaches"
        )
    probe = f"{root}/probe.partial"
    try:
        filesystem.create_dir(root, recursive=True)
        write_text(filesystem, probe, "")
        filesystem.delete_file(probe)
        for info in filesystem.get_file_info([f"{root}/{folder}" for folder in _FOLDERS]):
            if info.type == pafs.FileType.File:
                raise NotADirectoryError(f"{info.path} is a file and no folder")
    except OSError as error:
        raise ConfigurationError(
            f"{name} is {run_dir}, which cannot be written to: {_first_line(error)}: name another folder"
        ) from error


def check_apart(output_dir: str, runs: Iterable[str]) -> None:
    """Raise ConfigurationError where an output folder cannot be written to or is one of these run directories."""
    check_writable(output_dir)
    mine = open_filesystem(output_dir)[1].rstrip("/")
    if mine in {open_filesystem(run)[1].rstrip("/") for run in runs}:
        raise ConfigurationError(f"output.dir is {output_dir}, a run directory itself: name a folder of its own")


@contextmanager
def held(run_dir: str) -> Iterator[None]:
    """Hold a local run directory for one job while the block runs; ConfigurationError where another one holds it.

    The lock ends with the process, however that ends. An object store has none.
    """
    filesystem, root = open_filesystem(run_dir)
    if not is_local(filesystem):
        yield
        return
    with (Path(root) / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigurationError(
                f"another job is at work in {run_dir}: wait until it is done, or use another output.dir"
            ) from error
        yield


@contextmanager
def scratch_folder(filesystem: pafs.FileSystem, root: str) -> Iterator[str]:
    """A local folder, beside the output where that is local: it has room, the system's own may not."""
    if not is_local(filesystem):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
        return
    local = Path(root) / "evidence.partial"
    shutil.rmtree(local, ignore_errors=True)
    local.mkdir(parents=True)
    try:
        yield str(local)
    finally:
        shutil.rmtree(local, ignore_errors=True)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
