"""Build the wheel, install it into an empty virtual environment, and run a job from another directory.

Run by `make wheel`. What builds and installs it, and its dependencies, are this environment's: nothing is downloaded,
but for other versions of Python that are found on the machine (other_pythons.py).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

import other_pythons  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parent.parent

JOB = """
import understudy
from understudy import LocalCluster, StreamEnvironment
from understudy.testing import SimulatedCluster  # in the wheel too

assert "site-packages" in understudy.__file__, understudy.__file__
assert "wheel-check" in understudy.__file__, understudy.__file__

if __name__ == "__main__":
    env = StreamEnvironment()
    env.from_collection(range(100)).map(lambda n: n * 2).collect(name="doubled")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=60)
        assert sorted(job.results("doubled")) == list(range(0, 200, 2))
    print("the wheel runs a job")
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as name:
        folder = Path(name)
        shutil.rmtree(ROOT / "build", ignore_errors=True)  # what an older build left there would go into this wheel
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), str(ROOT)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(ROOT / "build")
        (wheel,) = (folder / "dist").glob("*.whl")
        missing = _unpackaged(wheel)
        if missing:
            raise SystemExit(f"not in the wheel: {', '.join(missing)}; list the package in setup.cfg")
        environment = folder / "env"
        venv.create(environment)
        python = environment / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python)]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-compile", str(wheel)], check=True)
        site = Path(
            subprocess.check_output(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
            ).strip()
        )
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        (folder / "job.py").write_text(JOB)
        subprocess.run([python, "job.py"], cwd=folder, check=True)
        others = [other_pythons.run_first_job(other, wheel, folder) for other in other_pythons.found()]
        if others:
            other_pythons.run_tests(others[-1])


def _unpackaged(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = [
        f"understudy/{path.relative_to(ROOT)}"
        for folder in ("actors", "messages", "state", "runtime")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return [path for path in wanted if path not in packed]


if __name__ == "__main__":
    main()
