"""The simulator's dispatchers and its blocking pool: actors as in any system, one call at a time, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors.actor import Actor, Step
from understudy.runtime.simulation.world.blocking import SimulatedBlocking
from understudy.runtime.simulation.world.dispatchers import SimulatedDispatcher, SimulatedStepping
from understudy.runtime.simulation.world.world import Process, World
from understudy.runtime.system import ActorSystem


class Node:
    """A process with an actor system that has no network."""

    def __init__(self, world: World, name: str = "p") -> None:
        self.world = world
        self.process = world.process(name)
        self.blocking = SimulatedBlocking(self.process, lambda: 5.0)
        self.system = ActorSystem(
            name,
            loop=self.process.loop,
            clock=self.process.clock,
            new_id=world.new_id,
            blocking=self.blocking,
            dispatchers={
                "asyncio": SimulatedDispatcher(self.process),
                "thread": SimulatedDispatcher(self.process, world.chance("threads")),
                "stepping": SimulatedStepping(self.process),
            },
        )
        self.do(lambda: self.process.loop.create_task(self.system.open()))

    def do(self, function: Callable[[], Any]) -> None:
        self.world.after(0, self.process, function)
        self.world.run_for(0)

    def spawn(self, actor: Actor, **options: Any) -> Any:
        return self.system.spawn(actor, **options)


@pytest.fixture
def world() -> World:
    return World(seed=1)


@pytest.fixture
def node(world: World) -> Node:
    return Node(world)


class Listing(Actor):
    def __init__(self, heard: list[Any]) -> None:
        self.heard = heard

    def on_receive(self, message: Any) -> Any:
        self.heard.append(message)
        return message


class Stepping(Actor):
    """Counts down, one step at a time, and then idles."""

    def __init__(self, steps: int, log: list[Any], name: str = "", idle_ms: float | None = None) -> None:
        self.left = steps
        self.log = log
        self.name = name
        self.idle_ms = idle_ms
        self.idled = 0

    def on_receive(self, message: Any) -> None:
        self.log.append(message)

    def step(self) -> Step:
        if self.left:
            self.left -= 1
            self.log.append(f"{self.name}{self.left}")
            return Step.BUSY
        self.idled += 1
        return Step.IDLE


@pytest.mark.parametrize("dispatcher", ["asyncio", "thread"])
class TestActors:
    def test_take_their_messages_in_order(self, world: World, node: Node, dispatcher: str) -> None:
        heard: list[Any] = []
        ref = node.spawn(Listing(heard), dispatcher=dispatcher)
        for number in range(100):
            ref.tell(number)
        world.run_for(100)
        assert heard == list(range(100))

    def test_answer(self, world: World, node: Node, dispatcher: str) -> None:
        future = node.spawn(Listing([]), dispatcher=dispatcher).ask("hello")
        world.run_for(10)
        assert future.result(timeout=0) == "hello"

    def test_do_nothing_in_a_frozen_process(self, world: World, node: Node, dispatcher: str) -> None:
        heard: list[Any] = []
        ref = node.spawn(Listing(heard), dispatcher=dispatcher)
        world.run_for(10)
        node.process.freeze()
        ref.tell("waits")
        world.run_for(100)
        assert heard == []
        node.process.thaw()
        world.run_for(10)
        assert heard == ["waits"]

    def test_are_not_called_again_while_a_handler_lets_the_world_go_on(
        self, world: World, node: Node, dispatcher: str
    ) -> None:
        """As a listener that asks the JobManager something and waits for the answer."""
        heard: list[Any] = []

        class Waiting(Listing):
            def on_receive(self, message: Any) -> None:
                heard.append(("begins", message))
                world.run_for(50)
                heard.append(("ends", message))

        ref = node.spawn(Waiting([]), dispatcher=dispatcher)
        ref.tell(1)
        world.after(10, node.process, ref.tell, 2)
        world.run_for(200)
        assert heard == [("begins", 1), ("ends", 1), ("begins", 2), ("ends", 2)]

    def test_stop_with_their_system(self, world: World, node: Node, dispatcher: str) -> None:
        ref = node.spawn(Listing([]), dispatcher=dispatcher)
        node.do(lambda: node.process.loop.create_task(node.system.close()))
        world.run_for(1_000)
        assert not ref.is_alive()


class TestStepping:
    def test_steps_until_idle_and_again_after_a_message(self, world: World, node: Node) -> None:
        log: list[Any] = []
        actor = Stepping(3, log)
        ref = node.spawn(actor, dispatcher="stepping:a")
        world.run_for(100)
        assert (log, actor.idled) == (["2", "1", "0"], 1)
        ref.tell("message")
        world.run_for(100)
        assert (log[-1], actor.idled) == ("message", 2)

    def test_an_idle_actor_is_stepped_again_when_its_time_is_over(self, world: World, node: Node) -> None:
        actor = Stepping(0, [], idle_ms=10)
        node.spawn(actor, dispatcher="stepping:a")
        world.run_for(1_000)
        assert 80 <= actor.idled <= 101

    def test_an_actor_without_anything_to_do_costs_nothing(self, world: World, node: Node) -> None:
        node.spawn(Stepping(0, []), dispatcher="stepping:a")
        world.run_for(100)
        before = world.events
        world.run_for(100_000)
        assert world.events == before

    def test_a_group_takes_turns(self, world: World, node: Node) -> None:
        log: list[Any] = []
        for name in "ab":
            node.spawn(Stepping(3, log, name), dispatcher="stepping:same")
        world.run_for(100)
        assert [entry for entry in log if entry[0] == "a"] == ["a2", "a1", "a0"]
        assert {"".join(sorted(pair[0] for pair in log[at : at + 2])) for at in (2, 4)} <= {"ab"}

    def test_groups_interleave_as_chance_has_it(self) -> None:
        def order(seed: int) -> tuple[Any, ...]:
            node, log = Node(World(seed)), list[Any]()
            for name in "ab":
                node.spawn(Stepping(4, log, name), dispatcher=f"stepping:{name}")
            node.world.run_for(100)
            return tuple(log)

        assert len({order(seed) for seed in range(20)}) > 3
        assert order(5) == order(5)

    def test_what_ends_a_thread_ends_its_actors(self, world: World, node: Node) -> None:
        """As in the real dispatcher: the group's thread is gone, and whoever watches hears of it."""

        class Ending(Stepping):
            def step(self) -> Step:
                raise GeneratorExit

        neighbour = node.spawn(Stepping(0, [], idle_ms=10), dispatcher="stepping:same")
        ending = node.spawn(Ending(0, []), dispatcher="stepping:same")
        world.run_for(100)
        assert not neighbour.is_alive()
        assert not ending.is_alive()
        actor = Stepping(1, log := [])
        node.spawn(actor, dispatcher="stepping:same")
        world.run_for(100)
        assert log == ["0"]

    def test_death_in_the_middle_of_a_turn_spares_the_rest_of_it(self, world: World, node: Node) -> None:
        log: list[Any] = []

        class Sending(Stepping):
            def step(self) -> Step:
                node.process.operate()
                return super().step()

        node.process.die_after(2)
        for name in "ab":
            node.spawn(Sending(5, log, name), dispatcher="stepping:same")
        world.run_for(100)
        assert log == ["a4"]


class TestBlocking:
    def test_takes_time_and_then_has_its_outcome(self, world: World, node: Node) -> None:
        future = node.blocking.submit(lambda: world.now_ms)
        world.run_for(4)
        assert not future.is_done
        world.run_for(2)
        assert future.get(timeout=0) == 5.0

    def test_what_it_raises_is_its_outcome(self, world: World, node: Node) -> None:
        def failing() -> None:
            raise SystemExit(3)

        future = node.blocking.submit(failing)
        world.run_for(10)
        with pytest.raises(SystemExit):
            future.get(timeout=0)

    def test_of_a_dead_process_never_ends(self, world: World, node: Node) -> None:
        done: list[str] = []
        future = node.blocking.submit(done.append, "done")
        node.process.kill("SIGKILL")
        world.run_for(10)
        assert done == []
        assert not future.is_done

    def test_of_a_frozen_process_waits(self, world: World, node: Node) -> None:
        future = node.blocking.submit(lambda: world.now_ms)
        node.process.freeze()
        world.after(100, None, node.process.thaw)
        world.run_for(200)
        assert future.get(timeout=0) == 100

    def test_that_is_killed_in_the_middle_has_no_outcome(self, world: World, node: Node) -> None:
        done: list[str] = []

        def work() -> None:
            for thing in "abc":
                node.process.operate()
                done.append(thing)

        node.process.die_after(2)
        future = node.blocking.submit(work)
        world.run_for(10)
        assert done == ["a"]
        assert not future.is_done

    def test_two_pieces_of_work_may_overlap(self, world: World, node: Node) -> None:
        """They have threads of their own."""
        done: list[str] = []

        def work(process: Process, name: str) -> None:
            done.append(f"{name} begins")
            world.pause(process, 20)
            done.append(f"{name} ends")

        node.blocking.submit(work, node.process, "one")
        world.run_for(1)
        node.blocking.submit(work, node.process, "other")
        world.run_for(100)
        assert done == ["one begins", "other begins", "other ends", "one ends"]
