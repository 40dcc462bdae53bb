"""What kind of file system a folder is on, and whether a store may be written there.

A store is files that several processes map and lock together. On a file system of another machine
the map is not shared and locks may be granted twice, and then commits are lost without an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from clew.errors import NetworkFolder

MOUNTS = Path("/proc/self/mounts")
ALLOW = "CLEW_ALLOW_NETWORK_FOLDER"
NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ncpfs", "ncp", "ceph",
    "glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2", "coda", "davfs", "vboxsf",
    "prl_fs", "vmhgfs",
})  # fmt: skip
"""Other machines, and the folders that a virtual machine's host lends it."""
LOCAL_FUSE = frozenset({
    "ntfs", "ntfs-3g", "lowntfs-3g", "exfat", "ext2", "ext4", "bindfs", "mergerfs", "gocryptfs",
    "encfs", "cryfs", "securefs", "veracrypt", "fuse-overlayfs", "unionfs", "unionfs-fuse", "lxcfs",
    "apfs", "apfs-fuse", "zfs", "zfs-fuse", "bcachefs", "squashfuse", "portal",
})  # fmt: skip
"""FUSE file systems whose files are on this machine. Of others nobody knows, and so they count as
a network: sshfs, s3fs, rclone, gcsfuse and whatever comes next."""


def is_network(kind: str | None) -> bool:
    """Whether files on this kind of file system are on another machine, as far as is known."""
    if kind is None:
        return False
    if kind.startswith("fuse."):
        return kind.removeprefix("fuse.") not in LOCAL_FUSE
    return kind in NETWORK or kind == "fuse"


def kind_of(folder: Path, mounts: str) -> str | None:
    """Kind of the file system that an absolute folder is on, by the text of /proc/self/mounts. Of
    mounts at one place the last one is seen."""
    best, kind = "", None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = _unescaped(fields[1])
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Kind of the file system that a folder is on; None where the system does not tell."""
    if str(folder).startswith("\\\\"):
        return "smbfs"  # Windows: the path names another machine
    try:
        return kind_of(folder, mounts.read_text("utf-8", "replace"))
    except OSError:
        return None


def check_folder(
    folder: Path, mounts: Path = MOUNTS, environ: Mapping[str, str] = os.environ
) -> None:
    """Raise NetworkFolder if a store in this folder is not to be opened for writing."""
    kind = file_system(folder, mounts)
    if is_network(kind) and environ.get(ALLOW, "").strip() != "1":
        raise NetworkFolder(
            f"{folder} is on a network file system ({kind}), where SQLite's locks do not hold and "
            f"commits get lost. Put the store on a local disk (--store, CLEW_STORE), or use "
            f"PostgreSQL for several machines (CLEW_STORE=postgresql://...). {ALLOW}=1 opens it "
            f"all the same: then never from two machines at once, and with backups"
        )


def _unescaped(point: str) -> str:
    """A path as the kernel writes it there: spaces and some others as octal numbers."""
    if "\\" not in point:
        return point
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, sign)
    return point
