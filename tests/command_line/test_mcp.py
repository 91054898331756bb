"""mate-tf mcp: an assistant's client starts it, lists tables and asks them by the shipped model."""

import sys

import pytest

from mate_tf.command_line.main import main
from tests.small import ROOT, cases

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytestmark = pytest.mark.medium
CALLS = {
    "list": ("list_tables", {}),
    "list_inside": ("list_tables", {"folder": "inside"}),
    "file": ("ask_table", {"path": "inside/cities.csv", "question": "which city is in France?"}),
    "text": ("ask_table", {"text": "team,points\nA,3\nB,9\n", "question": "how many teams?"}),
    "outside": ("ask_table", {"path": "../secret.csv", "question": "who?"}),
    "link": ("ask_table", {"path": "link.csv", "question": "who?"}),
    "both": ("ask_table", {"path": "a.csv", "text": "a\n1", "question": "who?"}),
    "empty": ("ask_table", {"path": "inside/cities.csv", "question": " "}),
}


@pytest.fixture(scope="module")
def replies(tmp_path_factory):
    """What the calls returned, by their names, and the tools."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parent = tmp_path_factory.mktemp("mcp")
    folder = parent / "tables"
    for place in (folder / "inside", folder / ".hidden"):
        place.mkdir(parents=True)
        (place / "cities.csv").write_text("city,country\nParis,France\nRome,Italy\n")
    (folder / "notes.pdf").write_text("no table")
    (parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(parent / "secret.csv")
    arguments = ["-m", "mate_tf", "mcp", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)

    async def ask_all():
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            found = {"tools": (await session.list_tools()).tools}
            for name, (tool, given) in CALLS.items():
                found[name] = await session.call_tool(tool, given)
            return found

    return anyio.run(ask_all)


def test_each_tool_and_input_is_described(replies):
    assert [tool.name for tool in replies["tools"]] == ["ask_table", "list_tables"]
    for tool in replies["tools"]:
        assert tool.description
        assert all(one["description"] for one in tool.inputSchema["properties"].values())


def test_tables_are_listed_and_asked(replies):
    assert replies["list"].structuredContent == {"files": ["link.csv", "inside/cities.csv"]}
    assert replies["list_inside"].structuredContent == {"files": ["inside/cities.csv"]}
    answer = replies["file"].structuredContent
    assert answer["answer"] == "Paris" and answer["confidence"] == "sure"
    assert [(cell["row"], cell["column"]) for cell in answer["cells"]] == [(0, 0)]
    assert replies["text"].structuredContent["answer"] == "2"


@cases(
    "name, message",
    ("outside", "expected a path below"),
    ("link", "expected a path below"),
    ("both", "expected either path or text"),
    ("empty", "expected a question, got an empty one"),
)
def test_what_cannot_be_asked_is_an_error_with_its_reason(replies, name, message):
    assert replies[name].isError
    assert message in replies[name].content[0].text


def test_a_folder_that_is_not_there_is_named(capsys):
    assert main(["mcp", "nowhere"]) == 1
    assert "expected a folder of tables at" in capsys.readouterr().err
