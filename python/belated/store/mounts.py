"""Mounts of this machine, as Linux lists them: the file system of a path, and files that are mount points."""

import os
import re
from typing import NamedTuple

# File systems that machines share, or that a virtual machine shares with its host. SQLite's locks are not reliable on
# them.
SHARED = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
    *("nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs"),
    *("fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"),
    *("fuse.davfs2", "fuse.drive", "fuse.mfs", "fuse.juicefs", "fuse.cephfs", "fuse.blobfuse", "fuse.goofys"),
    # Shared folders of the host in a virtual machine, as in Docker Desktop.
    *("virtiofs", "fakeowner", "fuse.grpcfuse", "osxfs", "fuse.osxfs", "prl_fs"),
}


class _Mount(NamedTuple):
    point: str
    kind: str


def file_system(path: str) -> str:
    """Return the type of the file system of a path, or "" if the type is unknown."""
    real = os.path.realpath(path)
    kind, longest = "", 0
    for mount in _mounts():
        # A later mount hides an earlier mount of the same path.
        within = real == mount.point or real.startswith(mount.point.rstrip("/") + "/")
        if within and len(mount.point) >= longest:
            kind, longest = mount.kind, len(mount.point)
    return kind


def is_mount_point(path: str) -> bool:
    """Return whether a path is a mount point; False if this is unknown."""
    real = os.path.realpath(path)
    return any(mount.point == real for mount in _mounts())


def _mounts() -> list[_Mount]:
    """Return the mounts that this process sees; the list is empty if they are unknown."""
    try:
        # Fields are separated only by spaces and line feeds, because other white space in paths is not escaped.
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            entries = [line.rstrip("\n").split(" ") for line in lines]
    except OSError:
        return []
    return [_Mount(_unescaped(entry[4]), entry[entry.index("-", 6) + 1]) for entry in entries]


def _unescaped(path: str) -> str:
    """Return a path without escapes. Linux lists spaces, tabs, line feeds and backslashes as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
