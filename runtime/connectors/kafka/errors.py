"""What can go wrong with Kafka.

ConnectorError
└── KafkaError
    ├── KafkaUnavailable    no broker has answered for as long as one may be away
    ├── KafkaRefused        a broker says no: login, permission, or a setting that it does not take
    ├── NoSuchTopic         the topic is not there
    ├── UnreadableMessage   a message is not what its format or schema says
    ├── DataGone            records that the source was to read next are deleted
    └── TransactionLost     what a completed checkpoint covers can never be committed any more

Texts name topics, ids and brokers; never a password.
"""

from __future__ import annotations

from ..errors import ConnectorError


class KafkaError(ConnectorError):
    """Base of all errors with Kafka; not of the errors that the client library raises."""


class KafkaUnavailable(KafkaError):
    """It may be back when the job has restarted, so restarts go on as the job's restart strategy says."""

    may_pass = True


class KafkaRefused(KafkaError, ValueError):
    """The text has the broker's words, and names the setting or permission."""


class NoSuchTopic(KafkaError, ValueError):
    """Topics are not made by the way: a name that is misspelt would be a topic of its own."""


class UnreadableMessage(KafkaError, ValueError):
    """The text names topic, partition and offset."""


class DataGone(KafkaError):
    """Retention, or somebody, has deleted records from the place on where the source would go on."""


class TransactionLost(KafkaError):
    """The broker has aborted the transaction, or has given it to another producer: its records are in no output."""
