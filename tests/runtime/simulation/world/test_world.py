"""World and Process: the order of events, and what happens to those of the dead, the frozen and the interrupted."""

from __future__ import annotations

import pytest

from understudy.runtime.simulation.world.process import Event
from understudy.runtime.simulation.world.world import Process, ProcessKilled, Stuck, World


@pytest.fixture
def world() -> World:
    return World(seed=1)


def operating(process: Process, done: list[object], *things: object) -> None:
    """A piece of code with an effect after each operation."""
    for thing in things:
        process.operate()
        done.append(thing)


class TestEvents:
    def test_happen_in_the_order_of_their_times_and_then_of_their_making(self, world: World) -> None:
        done: list[str] = []
        for name, when_ms in (("c", 5), ("a", 1), ("d", 5), ("b", 1)):
            world.at(when_ms, None, done.append, name)
        world.run_for(10)
        assert done == ["a", "b", "c", "d"]

    def test_time_is_that_of_the_event(self, world: World) -> None:
        times: list[float] = []
        for when_ms in (7.5, 2.25):
            world.at(when_ms, None, lambda: times.append(world.now_ms))
        world.run_for(100)
        assert times == [2.25, 7.5]
        assert world.now_ms == 100

    def test_of_the_past_happen_now(self, world: World) -> None:
        world.run_for(50)
        times: list[float] = []
        world.at(10, None, lambda: times.append(world.now_ms))
        world.run_for(1)
        assert times == [50]

    def test_of_this_instant_come_before_all_later_ones_in_order(self, world: World) -> None:
        done: list[str] = []
        process = world.process("p")

        def first() -> None:
            process.loop.call_soon(done.append, "soon 1")
            process.loop.call_later(0, done.append, "later")
            process.loop.call_soon(done.append, "soon 2")

        world.at(1, process, first)
        world.at(1, process, done.append, "same time")
        world.run_for(5)
        assert done == ["soon 1", "soon 2", "same time", "later"]

    def test_that_were_cancelled_do_not_happen(self, world: World) -> None:
        done: list[str] = []
        world.at(1, None, done.append, "cancelled").cancel()
        world.run_for(5)
        assert done == []

    def test_run_until_stops_at_the_condition_and_says_so(self, world: World) -> None:
        done: list[int] = []
        for when_ms in range(10):
            world.at(when_ms, None, done.append, when_ms)
        assert world.run_until(lambda: len(done) == 4, 100)
        assert (done, world.now_ms) == ([0, 1, 2, 3], 3)
        assert not world.run_until(lambda: len(done) == 100, 100)
        assert world.now_ms == 100

    def test_without_end_at_one_instant_are_noticed(self, world: World) -> None:
        process = world.process("p")

        def again() -> None:
            process.loop.call_soon(again)

        world.at(0, process, again)
        with pytest.raises(Stuck, match="again of p"):
            world.run_for(1)

    def test_of_a_process_know_it_as_the_current_one(self, world: World) -> None:
        process, seen = world.process("p"), []
        world.at(1, process, lambda: seen.append(world.current))
        world.at(2, None, lambda: seen.append(world.current))
        world.run_for(5)
        assert seen == [process, None]
        assert world.current is None

    def test_that_raise_are_noted_and_the_rest_goes_on(self, world: World) -> None:
        """As an event loop does: the exception handler hears of it."""
        done: list[str] = []

        def raising() -> None:
            raise ValueError("oh")

        process = world.process("p")
        world.at(1, process, raising)
        world.at(2, process, done.append, "next")
        world.run_for(5)
        assert done == ["next"]
        assert [(who, str(error)) for who, error in world.unhandled] == [("p", "oh")]
        assert any("unhandled: ValueError oh" in line for line in world.trace.lines())

    def test_of_the_world_itself_that_raise_end_the_run(self, world: World) -> None:
        def raising() -> None:
            raise ValueError("a bug of the simulator's")

        world.at(1, None, raising)
        with pytest.raises(ValueError, match="simulator"):
            world.run_for(5)


class TestChance:
    def test_is_the_same_for_the_same_seed_and_purpose(self) -> None:
        assert World(3).chance("a").random() == World(3).chance("a").random()
        assert World(3).chance("a").random() != World(3).chance("b").random()
        assert World(3).chance("a").random() != World(4).chance("a").random()

    def test_gives_each_process_clocks_of_its_own(self, world: World) -> None:
        one, other = world.process("one"), world.process("other")
        assert one.clock.now_ms() != other.clock.now_ms()
        assert 0 < abs(one.clock.wall_ms() - other.clock.wall_ms()) <= 1000
        before = one.clock.now_ms(), one.clock.wall_ms()
        world.run_for(250)
        assert one.clock.now_ms() - before[0] == pytest.approx(250)
        assert one.clock.wall_ms() - before[1] == 250

    def test_ids_are_never_given_twice(self, world: World) -> None:
        assert [world.new_id("job"), world.new_id("task"), world.new_id("job")] == ["job-1", "task-1", "job-2"]

    def test_of_a_skewed_clock_only_the_wall_clock_jumps(self, world: World) -> None:
        process = world.process("p")
        monotonic, wall = process.clock.now_ms(), process.clock.wall_ms()
        process.clock.skew(-3_600_000)
        assert process.clock.now_ms() == monotonic
        assert process.clock.wall_ms() == wall - 3_600_000


class TestDeath:
    def test_nothing_more_happens_in_the_process(self, world: World) -> None:
        process, done = world.process("p"), []
        world.at(1, process, done.append, "before")
        world.at(2, None, process.kill, "SIGKILL")
        world.at(3, process, done.append, "after")
        world.run_for(5)
        assert done == ["before"]
        assert process.end_reason == "SIGKILL"

    def test_is_told_once(self, world: World) -> None:
        process, told = world.process("p"), []
        process.when_ended(told.append)
        process.kill("first")
        process.kill("second")
        assert told == ["first"]

    def test_comes_in_the_middle_of_an_operation(self, world: World) -> None:
        process, done = world.process("p"), []
        process.die_after(3)
        world.at(1, process, operating, process, done, "a", "b", "c", "d")
        world.run_for(5)
        assert done == ["a", "b"]
        assert not process.is_alive

    def test_lets_no_clean_up_code_reach_the_outside(self, world: World) -> None:
        process, done = world.process("p"), []
        process.die_after(1)

        def careful() -> None:
            try:
                operating(process, done, "work")
            except Exception:  # noqa: BLE001
                done.append("except")
            finally:
                operating(process, done, "finally")

        world.at(1, process, careful)
        world.run_for(5)
        assert done == []

    def test_that_code_hides_behind_another_error_is_death_all_the_same(self, world: World) -> None:
        process, done = world.process("p"), []
        process.die_after(1)

        def hiding() -> None:
            try:
                process.operate()
            except BaseException:  # noqa: BLE001  (as careless code does)
                raise ValueError("hidden") from None

        world.at(1, process, hiding)
        world.at(2, process, done.append, "after")
        world.run_for(5)
        assert done == []
        assert world.unhandled == []

    def test_in_a_coroutine_ends_it(self, world: World) -> None:
        process, done = world.process("p"), []
        process.die_after(2)

        async def work() -> None:
            try:
                operating(process, done, "a", "b")
            finally:
                done.append("its own memory only")
                operating(process, done, "c")

        world.at(1, process, lambda: process.loop.create_task(work()))
        world.run_for(5)
        assert done == ["a", "its own memory only"]


class TestFreezing:
    def test_postpones_what_comes_due(self, world: World) -> None:
        process, done = world.process("p"), []
        for when_ms in (1, 3, 4):
            world.at(when_ms, process, lambda: done.append(world.now_ms))
        world.at(2, None, process.freeze)
        world.at(10, None, process.thaw)
        world.run_for(20)
        assert done == [1, 10, 10]

    def test_leaves_the_order_within_a_lane(self, world: World) -> None:
        process, done = world.process("p"), []
        process.freeze()
        for number in range(50):
            lane = "ab"[number % 2]
            world.schedule(Event(process, done.append, ((lane, number),), float(number), lane=lane))
        world.at(100, None, process.thaw)
        world.run_for(200)
        assert len(done) == 50
        for lane in "ab":
            assert [number for of, number in done if of == lane] == [n for n in range(50) if "ab"[n % 2] == lane]

    def test_lets_chance_decide_which_lane_goes_on_first(self) -> None:
        def first(seed: int) -> str:
            world, done = World(seed), list[str]()
            process = world.process("p")
            process.freeze()
            world.schedule(Event(process, done.append, ("timer",), 1.0))
            world.schedule(Event(process, done.append, ("frame",), 2.0, lane="connection"))
            world.at(5, None, process.thaw)
            world.run_for(10)
            assert sorted(done) == ["frame", "timer"]
            return done[0]

        assert {first(seed) for seed in range(20)} == {"timer", "frame"}

    def test_of_others_is_not_its_own(self, world: World) -> None:
        frozen, other, done = world.process("frozen"), world.process("other"), []
        frozen.freeze()
        world.at(1, other, done.append, "other")
        world.run_for(5)
        assert done == ["other"]

    def test_then_death_forgets_what_was_postponed(self, world: World) -> None:
        process, done = world.process("p"), []
        process.freeze()
        world.at(1, process, done.append, "postponed")
        world.at(2, None, process.kill, "SIGKILL")
        world.at(3, None, process.thaw)
        world.run_for(5)
        assert done == []

    def test_in_the_middle_of_an_operation_stands_still_between_two_effects(self, world: World) -> None:
        """What no freeze between two events can show: a commit of which the half happens much later."""
        process, done = world.process("p"), []
        process.freeze_after(2, for_ms=100)
        world.at(1, process, operating, process, done, "a", "b")
        world.at(2, process, done.append, "its next event")
        world.at(50, None, done.append, "meanwhile")
        world.run_for(60)
        assert done == ["a", "meanwhile", "b", "its next event"]
        assert world.now_ms == 101

    def test_in_the_middle_and_then_death_never_goes_on(self, world: World) -> None:
        process, done = world.process("p"), []
        process.freeze_after(2, for_ms=100)
        world.at(1, process, operating, process, done, "a", "b")
        world.at(50, None, process.kill, "SIGKILL")
        world.run_for(200)
        assert done == ["a"]

    def test_of_two_in_the_middle_lets_none_run_twice_at_once(self, world: World) -> None:
        """The one that froze first thaws first, but its code lies below the other's: its events wait for it."""
        one, other, done = world.process("one"), world.process("other"), []
        one.freeze_after(1, for_ms=10)
        other.freeze_after(1, for_ms=50)
        world.at(1, one, operating, one, done, "one")
        world.at(2, one, done.append, "one's next")
        world.at(3, other, operating, other, done, "other")
        world.run_for(100)
        assert done == ["other", "one", "one's next"]


class TestPausing:
    def paused(self, world: World, process: Process, done: list[str], for_ms: float = 10) -> None:
        world.is_on_thread = True
        done.append("before")
        world.pause(process, for_ms)
        done.append("after")

    def test_lets_others_go_on_and_its_own_loop_too(self, world: World) -> None:
        process, other, done = world.process("p"), world.process("other"), []
        world.at(1, process, self.paused, world, process, done)
        world.at(2, other, done.append, "another process")
        world.at(3, process, done.append, "its loop")
        world.run_for(20)
        assert done == ["before", "another process", "its loop", "after"]

    def test_is_for_threads_only(self, world: World) -> None:
        process, done = world.process("p"), []
        world.at(1, process, world.pause, process, 10)
        world.at(1, process, done.append, "next")
        world.run_for(1)
        assert done == ["next"]
        assert world.now_ms == 1

    def test_ends_in_death_when_the_process_died_meanwhile(self, world: World) -> None:
        process, done = world.process("p"), []
        world.at(1, process, self.paused, world, process, done)
        world.at(2, None, process.kill, "SIGKILL")
        world.run_for(20)
        assert done == ["before"]

    def test_lasts_until_a_process_that_froze_meanwhile_thaws(self, world: World) -> None:
        process, done = world.process("p"), []
        world.at(1, process, self.paused, world, process, done)
        world.at(2, None, process.freeze)
        world.at(50, None, done.append, "frozen still")
        world.at(90, None, process.thaw)
        world.run_for(100)
        assert done == ["before", "frozen still", "after"]

    def test_is_not_nested_without_bound(self, world: World) -> None:
        processes, done = [world.process(f"p{number}") for number in range(30)], list[str]()
        for number, process in enumerate(processes):
            world.at(1 + number / 10, process, self.paused, world, process, done, 100)
        world.run_for(500)
        assert len(done) == 60
        assert all(process.is_alive for process in processes)


def test_the_dead_may_not_operate(world: World) -> None:
    process = world.process("p")
    process.kill("SIGKILL")
    with pytest.raises(ProcessKilled):
        process.operate()
