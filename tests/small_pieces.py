"""The library with small pieces: what it does in chunks, batches and tables that grow, it does a few entries at a time.

State that fits into one chunk never meets the seam between two, nor the step from an empty table to a grown one; and
chunks are large, so that tests would need a hundred thousand keys to get there. Here every such size is from 1 to some
dozens, and tests of ten keys cross all seams. Answers stay the same: a size that is a promise to users, or part of a
format, is not in the table.

    UNDERSTUDY_SMALL_PIECES=1 pytest tests/state        # tests/conftest.py calls `install`
    python -m tests.small_pieces simulate --seeds 200   # the command line of understudy
    make small                                          # both, and more

A test that needs a size as it is, as one of memory or of a file's bytes, is marked `usual_sizes` and left out.

A module's sizes are replaced in its source as it is imported. So they hold wherever the name is used: as a default of a
parameter, within another constant, and in modules that import it. They hold for a whole process, and not for processes
that it starts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

ASKED_FOR_BY = "UNDERSTUDY_SMALL_PIECES"
"""The variable of the environment: whether tests run with small pieces."""

PACKAGE = "understudy"
ROOT = Path(__file__).resolve().parent.parent

SIZES: Mapping[str, Mapping[str, int]] = {
    "state.storage": {"_PIECE_BYTES": 7},
    "state.keyring": {"CHUNK_BYTES": 64},
    "state.backends.changed_keys": {"_FEWEST_KEYS": 2},
    "state.backends.expiring_state": {"ACCESSES_PER_CLEANING": 3},
    "state.backends.group_parts": {"_MUCH_PER_PART": 1},
    "state.backends.heap_blocks": {"CHUNK_ENTRIES": 3},
    "state.backends.run_ledger": {"_FEWEST_SLOTS": 1, "MOST_OF_A_LEVEL": 2},
    "state.backends.timer_queue": {"_MOST_EMPTY": 1},
    "state.checkpoints.local_copies": {"_PIECE_BYTES": 7},
    "state.columnar.columnar_table": {"_PARTIALS_AT_A_TIME": 3},
    "state.columnar.group_sections": {"_READ_AT_A_TIME": 3},
    "state.columnar.keyed_rows": {"_FEWEST_ROWS": 3},
    "state.columnar.pane": {"_FEWEST": 1},
    "state.columnar.pane_table": {"_FEWEST_KEYS": 3, "_PARTIALS_AT_A_TIME": 3},
    "state.columnar.row_columns": {"_FEWEST": 1},
    "state.columnar.row_store": {"PAIRS_AT_A_TIME": 3, "_SORTED_AS_WORDS": 4, "_FOLLOWED": 2},
    "state.columnar.session_table": {"_FEWEST_KEYS": 3, "_BUCKETS_PER_GAP": 2},
    "state.columnar.slot_backend": {"_FEWEST_KEYS": 3},
    "state.columnar.slot_keys": {"_CHUNK": 5},
    "state.columnar.slot_states": {"_FEWEST_SLOTS": 1},
    "state.columnar.slot_timers": {"AT_ONCE": 3},
    "state.columnar.window_rows": {"MOST_ROWS": 3},
    "state.columns.arrow_batches": {"_MANY_ROWS": 2},
    "state.columns.marshalled_columns": {"_SAMPLE": 2},
    "state.columns.packed_columns": {"_FEW_ITEMS": 2},
    "state.columns.timed_batch": {"BLOCK_ROWS": 3},
    "state.keys.column_hash": {"_CHUNK": 7, "_CHUNK_BYTES": 9, "FEW": 1},
    "state.keys.key_groups": {"_CHUNK": 7},
    "state.keys.key_hash": {"_LONG_FROM": 4},
    "state.keys.text_index": {"_LONG": 16, "_ENCODES_AFTER": 1},
    "state.keys.word_range": {"_RANGE_PER_SLOT": 1, "_RANGE_PER_SLOT_OF_SMALL": 2},
    "state.keys.word_table": {"_FEWEST_SLOTS": 4, "_CHUNK": 7},
    "state.rocks.cached_rows": {"GENERATION_ENTRIES": 3, "_ROWS_PER_WRITE": 2},
    "state.rocks.common_format": {"ENTRIES": 2},
    "state.rocks.rocks_restore": {"_AT_ONCE": 2},
    "state.rocks.rocks_state": {"READS_AHEAD": 2, "MOST_LOOKS": 3},
    "state.rocks.rocks_timers": {"_MOST_CHANGES": 3},
    "state.rocks.store": {"_FILE_BYTES": 4096},
    "actors.async_calls.async_calls": {"_SETTLED_AT_BARRIER": 2},
    "actors.async_calls.run": {"LOCKED_RECORDS": 2, "MOST_RECORDS": 5},
    "actors.async_calls.runs": {"_SHORT_RUN": 2, "_MOST_PATIENCE": 4},
    "actors.async_calls.waiting_batches": {"_LEAST_ROWS": 2},
    "actors.compiled.growing_rows": {"LEAST_ROWS": 1},
    "actors.flow.output_buffer": {"ROWS_PER_CHANNEL": 3, "BYTES_PER_CHANNEL": 200},
    "actors.flow.partitioner": {"MAX_BATCH_RECORDS": 5, "_FEW_CHANNELS": 1},
    "actors.joins.deduplicate": {"_FEWEST_ROWS": 3},
    "actors.joins.interval_join": {"_FEWEST_ROWS": 3},
    "actors.joins.lookup_table": {"_FEWEST_ROWS": 3},
    "actors.joins.regular_join": {"_FEWEST_ROWS": 3},
    "actors.joins.temporal_join": {"_FEWEST_ROWS": 3},
    "actors.operators.aggregate": {
        "LocalAggregate.MOST_KEYS": 3,
        "LocalAggregate.MOST_ROWS": 5,
        "LocalAggregate.ENOUGH_ROWS": 3,
    },
    "actors.operators.keyed_operator": {"PIECE_ROWS": 3},
    "actors.operators.timers": {"FIRED_AT_ONCE": 2},
    "actors.windows.local_windows": {
        "LocalWindows.MOST_PARTIALS": 3,
        "LocalWindows.ENOUGH_ROWS": 3,
        "LocalWindows.MOST_ROWS": 2,
    },
    "runtime.clusters.inlet": {"PART_ROWS": 3, "PART_BYTES": 200},
    "runtime.clusters.inlet_sender": {"REQUEST_BYTES": 200, "_WELL_FILLED_BYTES": 100},
    "runtime.clusters.outlet": {"ANSWER_BYTES": 200},
    "runtime.connectors.files.outlet_sink": {"DELETED_AT_ONCE": 2},
    "runtime.connectors.files.segment_writer": {"SEGMENT_BYTES": 200, "LARGEST_PIECE_BYTES": 100, "ROWS_AT_ONCE": 3},
    "runtime.savepoints.edited_rows": {"_AT_ONCE": 3},
    "runtime.savepoints.state_table": {"BATCH_ROWS": 3},
}
"""By module: what its sizes are set to."""


class LostSize(Exception):
    """A size of the table has another name now, or another place: the table has to follow."""


def install() -> None:
    """For all modules that are imported from here on. A size that is gone, or a module that is there already, is an
    error: the tests would pass with large pieces, and say nothing.
    """
    for module in SIZES:
        with_small_sizes(module, path_of(module).read_text())
    if early := sorted(module for module in SIZES if f"{PACKAGE}.{module}" in sys.modules):
        raise LostSize(f"small pieces have to come before the library: {', '.join(early)} was imported earlier")
    sys.meta_path.insert(0, _Finder())


def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not path.exists():
        raise LostSize(f"tests/small_pieces.py has sizes of {module}, and there is no such module: change its table")
    return path


def with_small_sizes(module: str, source: str) -> ast.Module:
    """The module's code with its sizes of the table."""
    tree = ast.parse(source)
    values = {name: statement for name, statement in _named(tree.body) if name in SIZES[module]}
    for name, size in SIZES[module].items():
        if name not in values:
            raise LostSize(
                f"tests/small_pieces.py sets {name} of {module}, which has no such constant: change its table"
            )
        old = values[name].value
        assert old is not None
        values[name].value = ast.copy_location(ast.Constant(size), old)
    return tree


def _named(body: Sequence[ast.stmt], of: str = "") -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """Constants of a module and, as `Class.NAME`, of its classes."""
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield from _named(each.body, f"{each.name}.")
        elif isinstance(each, ast.AnnAssign) and each.value is not None and isinstance(each.target, ast.Name):
            yield of + each.target.id, each
        elif isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            yield of + each.targets[0].id, each


class _Loader(SourceFileLoader):
    """Neither reads nor writes bytecode that is kept: that of other runs has large pieces."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = with_small_sizes(fullname.removeprefix(f"{PACKAGE}."), self.get_data(path).decode())
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = fullname.partition(".")
        if package != PACKAGE or module not in SIZES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


if __name__ == "__main__":
    install()
    from understudy.runtime.cli import main

    main()
