"""SparkCluster: TaskManagers as Spark tasks, on the Spark session you already have."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...actors.launcher import Launcher
from ..api.translation import Translation
from .cluster import Cluster, ClusterSettings
from .spark_launcher import SparkLauncher
from .task_manager_process import TaskManagerLaunch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkCluster(Cluster):
    """`with SparkCluster(spark, task_managers=2) as cluster: cluster.submit(env)`. Further settings: ClusterSettings.

    Each TaskManager takes one Spark task slot for as long as its job runs. The package itself is shipped to the
    executors; what it depends on (see setup.cfg) must be installed there. On executors of other machines set `host`
    to an address of the driver that they reach."""

    def __init__(
        self, spark: SparkSession, task_managers: int = 1, slots_per_task_manager: int = 1, **settings: Any
    ) -> None:
        super().__init__(ClusterSettings(task_managers, slots_per_task_manager, **settings))
        self._spark = spark
        self._launcher: SparkLauncher | None = None

    def _start_launcher(self) -> Launcher:
        ship_package(self._spark)
        self._launcher = SparkLauncher(self._spark, self._tell_job_manager)
        return self._launcher

    def _stop_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def _prepare(self, launch: TaskManagerLaunch, translation: Translation) -> None:
        assert self._launcher is not None
        dataframes = {
            binding.first_task_manager: (binding.dataframe, binding.parallelism) for binding in translation.dataframes
        }
        self._launcher.prepare(launch, self.settings.task_managers, dataframes)


def ship_package(spark: SparkSession) -> None:
    """Send this package's source to the executors (`addPyFile`), once per Spark context."""
    context = spark.sparkContext
    if any(Path(name).name == "understudy.zip" for name in context._python_includes or ()):
        return
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(prefix="understudy-ship-") as folder:
        path = Path(folder) / "understudy.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, source in _sources(root):
                archive.write(source, name)
        context.addPyFile(str(path))


def _sources(floor_parent: Path) -> list[tuple[str, Path]]:
    """Every module of the package with its place in it, whether the package is installed or linked from a checkout."""
    import understudy

    package = Path(understudy.__file__).parent
    found = [(f"understudy/{path.name}", path) for path in sorted(package.glob("*.py"))]
    for floor in ("messages", "state", "actors", "runtime"):
        folder = (package / floor).resolve() if (package / floor).exists() else floor_parent / floor
        found += [(f"understudy/{floor}/{path.relative_to(folder)}", path) for path in sorted(folder.rglob("*.py"))]
    return found
