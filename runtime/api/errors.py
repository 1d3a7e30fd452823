"""What a user of the API may meet.

ApiError
├── InvalidSetting           an argument of StreamEnvironment, a source or a restart strategy
└── InvalidProgram           a stream program that cannot run; names the operator
    ├── DuplicateName        two operators of one name or uid
    ├── InvalidOperator      not an operator, abstract, or without its process method
    ├── UnknownColumn        a column that the stream does not have
    ├── SchemaMismatch       columns that do not fit the operator or sink
    ├── ForeignStream        streams of two environments in one program
    ├── NotPicklable         user code that cannot be shipped; says what inside it
    ├── OperatorCheckFailed  an operator's own check at submit, as of the folder that a sink writes to
    ├── NoSink               nothing would run
    └── ClusterTooSmall      fewer TaskManagers or slots than the program needs

How a job ends and what it answers: clusters/job_errors.py.
"""

from __future__ import annotations


class ApiError(Exception):
    """Base of all errors of the API."""


class InvalidSetting(ApiError, ValueError):
    """A setting is out of range or of the wrong type; the text says what was found and what was wanted."""


class InvalidProgram(ApiError, ValueError):
    """The program cannot run as it stands."""


class DuplicateName(InvalidProgram):
    """Names and uids are unique in an environment: state is restored, and questions are addressed, by them."""


class InvalidOperator(InvalidProgram, TypeError):
    """An object given as an operator is not one, or is not complete."""


class UnknownColumn(InvalidProgram):
    """A column name or position that the stream's schema does not have."""


class SchemaMismatch(InvalidProgram):
    """The stream's schema does not fit the operator or sink that takes it."""


class ForeignStream(InvalidProgram):
    """Streams of different environments cannot be joined."""


class NotPicklable(InvalidProgram, TypeError):
    """User code is shipped with cloudpickle, and something inside it cannot be."""


class OperatorCheckFailed(InvalidProgram):
    """What an operator's `check_at_submit` raised, which is the cause: the job would fail."""


class NoSink(InvalidProgram):
    """Only what reaches a sink runs."""


class ClusterTooSmall(InvalidProgram):
    """The program needs more TaskManagers or slots than the cluster has."""
