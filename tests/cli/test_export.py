"""clew export."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import clew
from clew.exporters.saving import file_name, save
from clew.importers.clew_jsonl import bring

from .helpers import Demo, Run, process

HOSTILE = (
    "../../etc/passwd", "a/b\\c:d", "..", ".", "", "\0\n", "CON", "x" * 5000, "日本" * 500, "-rf",
)  # fmt: skip


def test_export_all_and_bring_it_back(demo: Demo, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    shown = run("export", "--all", "-o", file)
    assert f"{file}: 5 conversations, 71 messages" in shown.stdout
    assert "1 message waiting" in shown.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    header = json.loads(file.read_bytes().split(b"\n")[0])
    assert (header["clew"], header["type"], header["profile"]) == (1, "store", "default")
    assert header["made_by"].startswith("clew ")
    with clew.open(tmp_path / "back.db") as store, file.open("rb") as stream:
        assert bring(store.profile("default"), stream).new == 5
        assert store.verify() == []
    shown = run("export", "--all").stdout.encode()
    assert shown.split(b"\n")[1:] == file.read_bytes().split(b"\n")[1:]


def test_a_branch_comes_with_what_it_goes_on_from(demo: Demo, run: Run) -> None:
    lines = [json.loads(line) for line in run("export", demo.ids.other_way).stdout.splitlines()]
    facts = [line["in"] for line in lines if line.get("type") == "conversation"]
    assert lines[0]["type"] == "conversations"
    assert facts == [demo.ids.flaky, demo.ids.other_way]
    text = run("export", demo.ids.flaky, "--no-branches").stdout
    assert demo.ids.other_way not in text


@pytest.mark.parametrize("form", ["chat", "responses", "atif", "markdown", "html"])
def test_one_conversation_to_standard_output(demo: Demo, run: Run, form: str) -> None:
    text = run("export", demo.ids.flaky[:6], "--format", form).stdout
    assert "The retry test fails now and then." in text
    assert "日本語でも説明してください" not in text  # cut away
    assert "\x1b" not in text
    assert "\u202e" not in text
    if form in ("chat", "responses", "atif"):
        json.loads(text)


def test_several_conversations_make_a_folder(demo: Demo, run: Run, tmp_path: Path) -> None:
    assert "make as many files" in run("export", "--all", "-f", "html", code=2).stderr
    folder = tmp_path / "pages"
    shown = json.loads(run("export", "--all", "-f", "html", "-o", folder, "--json").stdout)
    names = sorted(path.name for path in folder.iterdir())
    assert Path(shown["index"]).name == "index.html"
    names.remove("index.html")
    assert sorted(Path(file["path"]).name for file in shown["files"]) == names
    assert len(names) == 5
    index = (folder / "index.html").read_text("utf-8")
    for name in names:
        assert f'href="{quote(name)}"' in index
    assert f"Fix-the-flaky-retry-test-{demo.ids.flaky}.html" in names
    assert f"Reise-nach-Kyōto-京都-{demo.ids.trip}.html" in names
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = {path: path.read_bytes() for path in folder.iterdir()}
    (folder / names[3]).write_text("mine")
    refused = run("export", "--all", "-f", "html", "-o", folder, code=2).stderr
    assert "exists already" in refused
    run("export", "--all", "-f", "html", "-o", folder, "--force")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_pages_of_a_folder_link_to_each_other(demo: Demo, run: Run, tmp_path: Path) -> None:
    run("export", demo.ids.flaky, "--with-branches", "-f", "html", "-o", tmp_path / "both")
    names = {path.name for path in (tmp_path / "both").iterdir()} - {"index.html"}
    assert len(names) == 2
    for name in names:
        page = (tmp_path / "both" / name).read_text("utf-8")
        (other,) = names - {name}
        assert f'href="{quote(other)}"' in page
    run("export", demo.ids.trip, "-f", "html", "-o", f"{tmp_path}/one/")
    assert len([*(tmp_path / "one").iterdir()]) == 1  # one page needs no index
    run("export", "--all", "-f", "markdown", "-o", f"{tmp_path}/notes/")
    assert not (tmp_path / "notes" / "index.html").exists()


def test_an_index_that_is_there_is_not_replaced(demo: Demo, run: Run, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    refused = run("export", "--all", "-f", "html", "-o", tmp_path, code=2).stderr
    assert "index.html exists already" in refused
    assert [path.name for path in tmp_path.glob("*.html")] == ["index.html"]
    run("export", "--all", "-f", "html", "-o", tmp_path, "--force")
    assert (tmp_path / "index.html").read_text("utf-8") != "mine"


def test_of_many_files_it_is_said_how_many(demo: Demo, run: Run, tmp_path: Path) -> None:
    few = run("export", "--all", "-f", "markdown", "-o", f"{tmp_path}/few/").stdout
    assert few.count("\n") == 5
    with demo.open() as store:
        for number in range(20):
            store.profile("default").create(title=f"t{number}").append([clew.user("x")])
    many = run("export", "--all", "-f", "html", "-o", f"{tmp_path}/many/").stdout
    assert "25 files in " in many
    assert "25 conversations, 91 messages, " in many
    assert "index.html lists them." in many
    assert many.count("\n") <= 3


@pytest.mark.parametrize("form", ["clew", "html", "chat"])
def test_a_dash_is_standard_output(
    demo: Demo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {*tmp_path.iterdir()}
    dashed = run("export", demo.ids.trip, "-f", form, "-o", "-").stdout
    assert "京都" in dashed
    assert dashed.split("\n")[1:] == run("export", demo.ids.trip, "-f", form).stdout.split("\n")[1:]
    assert {*tmp_path.iterdir()} == before
    assert "give -o as well" in run("export", "--all", "--json", "-o", "-", code=2).stderr


def test_one_conversation_into_a_folder_or_file(demo: Demo, run: Run, tmp_path: Path) -> None:
    run("export", demo.ids.trip, "-f", "markdown", "-o", f"{tmp_path}/new/")
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".md"]
    run("export", demo.ids.trip, "-f", "markdown", "-o", tmp_path / "trip.md")
    assert (tmp_path / "trip.md").read_text("utf-8").startswith("# Reise nach Kyōto 京都\n")
    run("export", demo.ids.trip, "-o", tmp_path / "new")
    assert (tmp_path / "new" / "default.jsonl").exists()
    assert "is a file" in run(
        "export", "--all", "-f", "html", "-o", tmp_path / "trip.md", code=2
    ).stderr  # fmt: skip


def test_sub_agents_and_branches_when_they_are_asked_for(
    demo: Demo, run: Run, loads: Any, tmp_path: Path
) -> None:
    with demo.open() as store:
        parent = store.profile("default").open(demo.ids.trip)
        child = parent.delegate(clew.NewConversation(title="Helper"))
        child.add(clew.user("find flights"))

    def files(*args: object) -> int:
        return len(loads("export", *args, "-f", "html", "-o", tmp_path / "f", "--force")["files"])

    assert files("--all") == 5
    assert files("--all", "--with-delegates") == 6
    assert files("--all", "--no-branches") == 4
    assert files(demo.ids.trip, "--with-delegates") == 2
    assert files(demo.ids.flaky, "--with-branches") == 2
    atif = json.loads(run("export", demo.ids.trip, "-f", "atif").stdout)
    assert [t["trajectory_id"] for t in atif["subagent_trajectories"]] == [child.id]
    alone = json.loads(run("export", demo.ids.trip, "-f", "atif", "--no-delegates").stdout)
    assert "subagent_trajectories" not in alone
    assert child.id in run("export", demo.ids.trip).stdout
    assert child.id not in run("export", demo.ids.trip, "--no-delegates").stdout.replace(
        f'"origin":"{child.id}"', ""
    )


def test_wrong_usage(demo: Demo, run: Run, tmp_path: Path) -> None:
    for args, said in (
        ((), "name conversations, or give --all"),
        (("--all", demo.ids.trip), "name conversations, or give --all"),
        (("--all", "--json"), "give -o as well"),
        (("--all", "-f", "pdf"), "pdf"),
        (("--all", "-o", tmp_path / "no" / "file.jsonl"), "there is no folder"),
    ):
        assert said in run("export", *args, code=2).stderr
    assert "no conversation" in run("export", "nobody", code=3).stderr
    assert run("export", "--all", "--store", tmp_path / "none.db", code=3)
    assert not (tmp_path / "none.db").exists()


def test_an_empty_profile(demo: Demo, run: Run, tmp_path: Path) -> None:
    run("export", "--all", "--profile", "nobody", "-o", tmp_path / "none.jsonl")
    assert (tmp_path / "none.jsonl").read_bytes().count(b"\n") == 1
    told = run("export", "--all", "--profile", "nobody", "-f", "html", "-o", f"{tmp_path}/none/")
    assert "nothing to export" in told.stderr


def test_a_file_is_there_whole_or_not_at_all(demo: Demo, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("precious")
    assert "exists already" in run("export", "--all", "-o", file, code=2).stderr
    assert file.read_text() == "precious"

    def fails(write: Any) -> None:
        write(b"half")
        raise KeyboardInterrupt

    for path, force in ((tmp_path / "b.jsonl", False), (file, True)):
        with pytest.raises(KeyboardInterrupt):
            save(path, force, fails)
    assert file.read_text() == "precious"
    assert not [path.name for path in tmp_path.iterdir() if "partial" in path.name]
    assert not (tmp_path / "b.jsonl").exists()


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def slow(write: Any) -> None:
        write(b"export")
        (tmp_path / "a").write_text("came meanwhile")

    with pytest.raises(clew.InputError, match="exists already"):
        save(tmp_path / "a", False, slow)
    assert (tmp_path / "a").read_text() == "came meanwhile"
    (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(clew.InputError, match="exists already"):
        save(tmp_path / "b", False, lambda write: None)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("title", HOSTILE)
@pytest.mark.parametrize("id", HOSTILE)
def test_names_of_files_hold_nothing_of_a_path(title: str, id: str, tmp_path: Path) -> None:
    name = file_name(title, id, "md")
    assert not set(name) & set("/\\:\0\n<>|?*\"'")
    assert not name.startswith((".", "-"))
    assert len(name.encode()) < 200
    assert save(tmp_path / name, False, lambda write: write(b"x") and None) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_ids_that_look_alike_have_files_of_their_own() -> None:
    assert file_name("", "a/b", "md") != file_name("", "a.b", "md")
    assert len({file_name("", id, "md") for id in HOSTILE}) == len(HOSTILE)


def test_output_is_utf8_whatever_the_locale(demo: Demo) -> None:
    done = process(
        "export", demo.ids.trip, "-f", "markdown", CLEW_STORE=str(demo.path), LC_ALL="C",
        PYTHONIOENCODING="ascii", PYTHONUTF8="0",
    )  # fmt: skip
    assert "Kyōto 京都" in done.stdout


def test_a_redacted_export(demo: Demo, run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    """Also in the names of files, and with a key of ours that has no form."""
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")
    with demo.open() as store:
        conv = store.profile("default").create(title="With ghp_abcdefghijklmnopqrstuvwxyz")
        conv.append([clew.user("correct-horse-battery at /home/ann/x, to ann@example.com")])
        conv.append([clew.user("Thanks", author="Ann")])
    for form in ("clew", "chat", "responses", "atif", "markdown", "html"):
        plain = run("export", conv.id, "-f", form).stdout
        secrets = run("export", conv.id, "-f", form, "--redact").stdout
        people = run("export", conv.id, "-f", form, "--redact-people").stdout
        assert "correct-horse-battery" in plain
        for text in (secrets, people):
            assert "correct-horse" not in text
            assert "ghp_" not in text
            assert "/home/ann" not in text
        assert "ann@example.com" in secrets
        assert "ann@example.com" not in people
    folder = tmp_path / "pages"
    run("export", "--all", "-f", "html", "--redact", "-o", folder)
    assert not [path for path in folder.iterdir() if "ghp" in path.name]
    assert "ghp_" not in (folder / "index.html").read_text("utf-8")


def test_a_keyring_that_cannot_be_asked_is_told(demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "keyring").write_text("openai\n")
    shown = process(
        "export", demo.ids.flaky, "-f", "chat", "--redact", CLEW_HOME=str(tmp_path),
        PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring", OPENAI_API_KEY="",
    )  # fmt: skip
    assert shown.returncode == 0
    assert "keys of openai: they are found by their form only" in shown.stderr
