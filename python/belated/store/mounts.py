"""The mounts that Linux lists: find the type of the file system of a path, and whether a file is a mount point."""

import os
import re

# File systems that machines share, or that a virtual machine shares with its host. SQLite's locks are not reliable
# there.
SHARED = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
    *("nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs"),
    *("fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"),
    *("fuse.davfs2", "fuse.drive", "fuse.mfs", "fuse.juicefs", "fuse.cephfs", "fuse.blobfuse", "fuse.goofys"),
    # Shared folders of the host in a virtual machine, as in Docker Desktop.
    *("virtiofs", "fakeowner", "fuse.grpcfuse", "osxfs", "fuse.osxfs", "prl_fs"),
}


def file_system(path: str) -> str:
    """Return the type of the file system of a path, or "" if the type is unknown."""
    real = os.path.realpath(path)
    kind, longest = "", 0
    for point, kind_there in _mounts():
        # A later mount hides an earlier mount of the same path.
        within = real == point or real.startswith(point.rstrip("/") + "/")
        if within and len(point) >= longest:
            kind, longest = kind_there, len(point)
    return kind


def is_mount_point(path: str) -> bool:
    """Return whether a path is a mount point; return False if the mounts are unknown."""
    real = os.path.realpath(path)
    return any(point == real for point, _ in _mounts())


def _mounts() -> list[tuple[str, str]]:
    """Return the path and the type of each mount that this process sees; return an empty list if mounts are unknown."""
    try:
        # Fields are separated only by spaces and line feeds, because other white space in paths is not escaped.
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            entries = [line.rstrip("\n").split(" ") for line in lines]
    except OSError:
        return []
    # Linux lists spaces, tabs, line feeds and backslashes in paths as octal numbers.
    paths = [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), entry[4]) for entry in entries]
    return [(path, entry[entry.index("-", 6) + 1]) for path, entry in zip(paths, entries, strict=True)]
