"""The load counts what was answered, refuses to count what was not, and repeats no update."""

import asyncio
import json

import pytest

from tests.bench.load import Load, LoadPlan, whole_bytes
from tests.bench.stub import Stub
from tests.bench.updates import Mix, first_update_id
from tests.live.process import free_port


class Counting:
    """The stub, and the ids of all updates that were posted to it."""

    def __init__(self) -> None:
        self.stub = Stub(self._on_call)
        self.update_ids: list[int] = []

    def _on_call(self, method: str, body: bytes) -> None:
        assert method == "anything"
        self.update_ids.append(json.loads(body)["update_id"])


def plan(port: int, *, updates_max: int, per_second: float = 0) -> LoadPlan:
    return LoadPlan(
        port=port,
        path="/bot/anything",
        secret="s3cret",
        first_update_id=first_update_id(1),
        seconds=5,
        updates_max=updates_max,
        connections=4,
        per_second=per_second,
    )


@pytest.mark.parametrize("per_second", [0, 2_000])
async def test_every_answer_is_counted_and_no_update_comes_twice(per_second: float) -> None:
    """As fast as answers come, and at a pace of its own."""
    server = Counting()
    port = free_port()
    async with server.stub.serving(port):
        report = await Load(plan(port, updates_max=200, per_second=per_second)).run()
    assert report.answers == server.stub.calls == 200
    assert sorted(server.update_ids) == [first_update_id(1) + number for number in range(200)]
    assert report.refused == {}
    assert 0 < report.p50_ms <= report.p99_ms <= report.worst_ms


async def test_a_refusal_is_no_answer() -> None:
    """A server that says 503 quickly must not win."""
    callers = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append(asyncio.current_task())
        while await reader.read(65_536):
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    port = free_port()
    async with await asyncio.start_server(refuse, "127.0.0.1", port):
        report = await Load(plan(port, updates_max=8)).run()
        await asyncio.gather(*(caller for caller in callers if caller))
    assert report.refused == {"503": 8}
    assert report.answers == 0


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Le", 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", 0),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 40),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 27),
    ],
)
def test_an_answer_in_pieces_is_waited_for(data: bytes, size: int) -> None:
    assert whole_bytes(data) == size


def test_all_updates_of_a_kind_have_one_size_and_each_is_json() -> None:
    """Servers are compared on the same bytes, whatever the number."""
    bodies = [Mix(first_update_id(3)).body(number) for number in range(1_000)]
    kinds = {tuple(json.loads(body))[1] for body in bodies}
    assert kinds == {"message", "callback_query"}
    assert len({len(body) for body in bodies}) == 2


def test_a_seldom_text_comes_as_often_as_asked() -> None:
    mix = Mix(first_update_id(0), seldom_text="pause", seldom_every=10)
    texts = [json.loads(mix.body(number)).get("message", {}).get("text") for number in range(100)]
    assert texts.count("pause") == 10
