"""Where there is no Java, PySpark says only that its gateway has ended."""

from __future__ import annotations

from pathlib import Path

from understudy.runtime.clusters.spark_session import java_advice


def test_a_wrong_home_of_java_is_named(tmp_path: Path) -> None:
    said = java_advice({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert said == f"JAVA_HOME is {tmp_path}, and there is no {tmp_path}/bin/java: correct it, or unset it"


def test_without_java_it_is_said_to_install_one(tmp_path: Path) -> None:
    assert java_advice({"PATH": str(tmp_path)}).startswith("there is no java on the PATH, and no JAVA_HOME: install")
    assert java_advice({}).startswith("there is no java on the PATH")


def test_with_java_nothing_is_said(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    assert java_advice({"JAVA_HOME": str(tmp_path)}) == ""
    assert java_advice({"PATH": str(java.parent)}) == ""


def test_a_java_that_is_too_old_is_named_with_the_one_that_is_wanted(tmp_path: Path) -> None:
    said = (
        'Exception in thread "main" java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been '
        "compiled by a more recent version of the Java Runtime (class file version 61.0), this version of the Java "
        "Runtime only recognizes class file versions up to 52.0"
    )
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    for environ in ({"JAVA_HOME": str(tmp_path)}, {"PATH": str(java.parent)}):
        assert java_advice(environ, said) == (
            f"{java} is Java 8, and PySpark wants Java 17 or later: set JAVA_HOME to where that is"
        )
