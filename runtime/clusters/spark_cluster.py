"""SparkCluster: TaskManagers as Spark tasks, on the Spark session you already have."""

from __future__ import annotations

import importlib.util
import logging
import py_compile
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ...actors.job_manager.launcher import Launcher
from ..api.errors import InvalidProgram, InvalidSetting
from ..api.translation import DataFrameBinding
from ..connectors.spark.this_python import python_of_pyspark, use_this_python
from ..high_availability.kept_jobs import TakenOver
from .cluster import Cluster
from .cluster_settings import ClusterOptions, ClusterSettings, known_settings
from .spark_launcher import SparkLauncher
from .spark_session_use import check_frame, check_is_session, check_session, check_speculation, local_slots
from .task_manager_process import TaskManagerLaunch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("understudy.job")

ARCHIVE = "understudy.zip"
DAEMON_SETTING = "spark.python.daemon.module"
DAEMON = "understudy.runtime.clusters.spark_daemon"


class SparkCluster(Cluster):
    """`with SparkCluster(spark, task_managers=2) as cluster: cluster.submit(env)`. Further settings: ClusterSettings.

    Each TaskManager takes one Spark task slot for as long as its job runs. The package itself is shipped to the
    executors; what it depends on (see setup.cfg) must be installed there. On executors of other machines set `host`
    to an address of the driver that they reach.
    """

    @known_settings("SparkCluster")
    def __init__(
        self,
        spark: SparkSession,
        task_managers: int = 1,
        slots_per_task_manager: int = 1,
        **settings: Unpack[ClusterOptions],
    ) -> None:
        super().__init__(ClusterSettings(task_managers, slots_per_task_manager, **settings))
        check_is_session(spark)
        self._spark = spark
        self._launcher: SparkLauncher | None = None

    def _start_launcher(self) -> Launcher:
        check_session(self._spark)
        self._check_slots()
        check_speculation(self._spark)
        use_this_python(self._spark)
        preload_workers(self._spark)
        ship_package(self._spark)
        self._launcher = SparkLauncher(self._spark, self._tell_job_manager, self.settings.slot_timeout_ms)
        return self._launcher

    def _stop_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def _runs_on_this_machine(self) -> bool:
        context: Any = self._spark.sparkContext
        return str(context.master).startswith("local")

    def _prepare(self, launch: TaskManagerLaunch, dataframes: Sequence[DataFrameBinding]) -> None:
        if (launcher := self._launcher) is None:
            raise RuntimeError("this cluster is not running: another thread, or the handler of a signal, closes it")
        check_session(self._spark)
        for each in dataframes:
            check_frame(each.source_name, each.dataframe, self._spark)
        read_by = {each.first_task_manager: (each.dataframe, each.parallelism) for each in dataframes}
        launcher.prepare(launch, self.settings.task_managers, read_by)

    def _check_slots(self) -> None:
        slots, wanted = local_slots(self._spark), self.settings.task_managers
        if slots is not None and slots < wanted:
            fewer = f", or give the cluster task_managers={slots}" if slots else ""
            raise InvalidSetting(
                f"SparkCluster: {wanted} TaskManagers take {wanted} Spark task slots for as long as a job runs, and "
                f"there are {slots} (master {self._spark.sparkContext.master}): make the session with more, as with "
                f".master('local[{wanted}]') and the usual spark.task.cpus=1{fewer}"
            )

    def _check_queries(self, names: str) -> None:
        slots, wanted = local_slots(self._spark), self.settings.task_managers
        if slots is not None and slots <= wanted:
            raise InvalidProgram(
                f"source {names} reads a query of Spark, and {wanted} TaskManagers take all of its {slots} slots "
                f"({self._spark.sparkContext.master}): make it local[{wanted + 1}] or more, or use a LocalCluster"
            )

    def _take_over(self, left: TakenOver) -> None:
        """Only the program has its DataFrames: the job goes on when the program submits it again, by its name."""
        log.info("job %r of an earlier leader goes on when it is submitted again", left.submitted.graph.name)


def preload_workers(spark: SparkSession) -> None:
    """Let Spark fork its Python workers from our daemon, unless the user has chosen the daemon or the interpreter.

    Only on a local master, whose executor reads the driver's settings, and only if a new interpreter finds this very
    package: what a script has put on its own path, a daemon does not see. The setting holds for the whole session, and
    DataFrames that were made before with functions or rows of Python keep PySpark's own interpreter: it must find the
    package too.
    """
    context: Any = spark.sparkContext
    settings = context._jsc.sc().conf()
    is_local = context.master == "local" or context.master.startswith("local[")
    if not is_local or context.pythonExec != sys.executable or settings.contains(DAEMON_SETTING):
        return
    if all(_is_installed(python) for python in {sys.executable, python_of_pyspark()}):
        settings.set(DAEMON_SETTING, DAEMON)
    else:
        log.info(
            "Spark's Python workers start without the imports of TaskManagers: %r, which this session may have used "
            "before, does not find this package; activate the virtual environment, or set PYSPARK_PYTHON",
            python_of_pyspark(),
        )


def ship_package(spark: SparkSession) -> None:
    """Send this package's source to the executors (`addPyFile`), once per Spark context.

    The archive lies in PySpark's own temporary folder: executors that come later fetch it too, and it goes when Spark
    stops.
    """
    context: Any = spark.sparkContext
    if any(Path(name).name == ARCHIVE for name in context._python_includes or ()):
        return
    path = Path(context._temp_dir) / ARCHIVE
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in _sources():
            archive.write(source, name)
            archive.writestr(f"{name}c", _compiled(source, name))
    context.addPyFile(str(path))


def _is_installed(python: str) -> bool:
    """Whether this interpreter imports the package from where it was imported here."""
    find = "import importlib.util as u; found = u.find_spec('understudy'); print(found.origin if found else '', end='')"
    try:
        found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return found.returncode == 0 and found.stdout == str(_package() / "__init__.py")


def _compiled(source: Path, name: str) -> bytes:
    """The module's byte code: workers start faster with it, and those of another Python version ignore it."""
    with tempfile.NamedTemporaryFile(suffix=".pyc") as file:
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), file.name, name, doraise=True, invalidation_mode=unchecked)
        return Path(file.name).read_bytes()


def _sources() -> list[tuple[str, Path]]:
    """Every module of the package with its place in it, whether it is installed or linked from a checkout."""
    package = _package()
    found = [(f"understudy/{path.name}", path) for path in sorted(package.glob("*.py"))]
    for floor in ("messages", "state", "actors", "runtime"):
        folder = (package / floor).resolve()
        found += [(f"understudy/{floor}/{path.relative_to(folder)}", path) for path in sorted(folder.rglob("*.py"))]
    return found


def _package() -> Path:
    """The folder of `understudy`, found by name: nothing below the package imports its face."""
    found = importlib.util.find_spec("understudy")
    assert found is not None, "this module is part of it"
    assert found.origin is not None, "it has a face"
    return Path(found.origin).parent
