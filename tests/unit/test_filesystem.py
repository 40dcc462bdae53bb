"""Which file systems a store may be written on, by lists of mounts as systems have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import NetworkFolder
from clew.store.filesystem import ALLOW, check_folder, file_system, is_network, kind_of
from clew.store.sqlite import SqliteBackend

MOUNTS = r"""sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0
/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0
tmpfs /run tmpfs rw,nosuid,nodev,size=1620812k,mode=755 0 0
nas:/export/home /home/lan nfs4 rw,relatime,vers=4.2,rsize=1048576,hard,proto=tcp,timeo=600 0 0
/dev/sdb1 /home/lan/local xfs rw,relatime,attr2,inode64 0 0
//nas/my\040files /mnt/my\040files cifs rw,relatime,vers=3.1.1,cache=strict,username=me 0 0
me@host:/srv /mnt/ssh fuse.sshfs rw,nosuid,nodev,relatime,user_id=1000,group_id=1000 0 0
drive: /mnt/drive fuse.rclone rw,nosuid,nodev,relatime,user_id=1000,group_id=1000 0 0
s3fs /mnt/bucket fuse.s3fs rw,nosuid,nodev,relatime,user_id=0,group_id=0,allow_other 0 0
/dev/sda1 /mnt/windows fuseblk rw,relatime,user_id=0,group_id=0,allow_other,blksize=4096 0 0
1:2:3 /mnt/pool fuse.mergerfs rw,relatime,user_id=0,group_id=0 0 0
drvfs /mnt/c 9p rw,noatime,dirsync,aname=drvfs;path=C:\134 0 0
overlay /var/lib/docker/overlay2/x/merged overlay rw,relatime,lowerdir=/l,upperdir=/u 0 0
share /media/sf_share vboxsf rw,nodev,relatime,iocharset=utf8,uid=0,gid=998 0 0
/dev/sdc1 /mnt/over ext4 rw 0 0
nas:/over /mnt/over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind", "network"),
    [
        ("/var/lib", "ext4", False), ("/run/user", "tmpfs", False), ("/home/me", "ext4", False),
        ("/home/lan", "nfs4", True), ("/home/lan/deep/er", "nfs4", True),
        ("/home/landing", "ext4", False), ("/home/lan/local/x", "xfs", False),
        ("/mnt/my files/x", "cifs", True), ("/mnt/ssh", "fuse.sshfs", True),
        ("/mnt/drive/x", "fuse.rclone", True), ("/mnt/bucket", "fuse.s3fs", True),
        ("/mnt/windows/x", "fuseblk", False), ("/mnt/pool", "fuse.mergerfs", False),
        ("/mnt/c/Users", "9p", True), ("/var/lib/docker/overlay2/x/merged/a", "overlay", False),
        ("/media/sf_share", "vboxsf", True), ("/mnt/over", "nfs", True),
    ],
)  # fmt: skip
def test_kinds_by_the_list_of_mounts(folder: str, kind: str, network: bool) -> None:
    assert kind_of(Path(folder), MOUNTS) == kind
    assert is_network(kind) is network


def test_an_unknown_fuse_counts_as_a_network_and_an_unknown_system_does_not() -> None:
    assert is_network("fuse.next-years-cloud")
    assert not is_network("bcachefs")
    assert not is_network(None)


def test_where_the_system_has_no_list(tmp_path: Path) -> None:
    assert file_system(tmp_path, tmp_path / "none") is None
    check_folder(tmp_path, tmp_path / "none", {})
    assert file_system(Path(r"\\server\share")) == "smbfs"


def test_a_store_on_a_network_folder_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names what to do; who insists says so in the environment."""
    monkeypatch.delenv(ALLOW, raising=False)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"{MOUNTS}nas:/x {tmp_path / 'lan'!s} nfs4 rw 0 0\n")
    lan = tmp_path / "lan"
    lan.mkdir()
    with pytest.raises(NetworkFolder, match=r"nfs4.*PostgreSQL") as caught:
        SqliteBackend(lan / "a.db", mounts=mounts)
    assert "local disk" in str(caught.value)
    assert ALLOW in str(caught.value)
    assert list(lan.iterdir()) == []
    monkeypatch.setenv(ALLOW, "1")
    SqliteBackend(lan / "a.db", mounts=mounts).close()
    monkeypatch.delenv(ALLOW)
    with pytest.raises(NetworkFolder):
        SqliteBackend(lan / "a.db", mounts=mounts)
