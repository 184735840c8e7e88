"""What docs/python.md shows works: its blocks of `python`, in order, in one folder. Those of `py` need a
cluster or code of the reader, and are compiled."""

import re

from common import ROOT


def blocks(language):
    text = (ROOT / "docs/python.md").read_text()
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = blocks("python")
    assert len(shown) >= 5
    namespace = {}
    for block in shown:
        exec(compile(block, "docs/python.md", "exec"), namespace)
    assert namespace["karat"].compare(namespace["before"], namespace["after"])["recall@1"].improved == ["q-2"]
    assert not namespace["after"].judged(namespace["before"]).failed
    assert (tmp_path / "report.json").is_file()


def test_the_other_examples_compile():
    shown = blocks("py")
    assert len(shown) >= 4
    for block in shown:
        compile(block, "docs/python.md", "exec")


def test_every_function_that_the_page_names_exists():
    import karat

    text = (ROOT / "docs/python.md").read_text().split("## Metrics and statistics")[1].split("## Reports")[0]
    table = "".join(line for line in text.splitlines() if line.startswith("|"))
    named = {name for name in re.findall(r"`(\w+)`", table)}
    assert len(named) > 35
    assert [name for name in named if not hasattr(karat, name)] == []
    public = [name for name in (*karat.metrics.__all__, *karat.stats.__all__) if name.islower()]
    assert [name for name in public if name not in text] == []
