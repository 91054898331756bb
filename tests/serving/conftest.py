"""One tiny model and one server for all tests of this folder."""

import pytest

from tests.small import export_small


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """The folder of an exported model with random weights."""
    from tests.serving.processes import NAME

    return export_small(tmp_path_factory.mktemp("tiny") / NAME, 1024)


@pytest.fixture(scope="session")
def server(tmp_path_factory, tiny_model):
    """A running server of it, with little patience for slow clients."""
    pytest.importorskip("fastapi")
    from tests.serving.processes import running

    folder = tmp_path_factory.mktemp("server")
    with running(tiny_model, folder, "--body_seconds=1", "--num_alternatives=2") as server:
        yield server
