"""ChangedTable: the table whose changes are followed, its publication and its slot: whether they fit, and making them.

What is made here stays: a slot keeps the server's log until its job has confirmed it, so whoever will not start a
job again drops its slot. Reading it is not at home here.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import pyarrow as pa

from ..column_types import arrow_type_of_oid, numeric_parts
from ..errors import ChangesLost, NotReplicable, SlotInUse
from ..relation import Relation
from .lsn import lsn_of, lsn_text
from .position import Position
from .replication_stream import application_prefix

log = logging.getLogger(__name__)

_WITH_SCHEMAS = 150000
"""The release of PostgreSQL whose publications may have all tables of a schema."""
_WITH_SLOTS_OF_STANDBYS = 160000
"""The release whose standbys may have slots for changes."""
_HANDOVER_S = 15.0
"""How long the slot may still be held by a process that has ended."""


class SlotState(NamedTuple):
    confirmed: int
    active_pid: int | None


class ChangedTable:
    """Plain data; `connection` is psycopg's, in autocommit mode. Raises ReplicationErrors and psycopg's errors."""

    def __init__(self, relation: Relation, slot: str, publication: str) -> None:
        self.relation, self.slot, self.publication = relation, slot, publication

    # -- which table it is

    def oid(self, connection: Any) -> int:
        """Of the table that has the name now."""
        return int(connection.execute("SELECT %s::regclass::oid::bigint", [self._regclass]).fetchone()[0])

    def check_same(self, connection: Any, known: int) -> None:
        """Whether the name is still that of the table with the OID `known`. Raises ChangesLost."""
        if self.oid(connection) != known:
            raise ChangesLost(
                f"{self._where}: {self.relation.name} is another table than the one whose changes the job has read: "
                "that one was dropped or renamed, and a new one has its name. Drop the slot and start the job without "
                "state: it reads the table again"
            )

    # -- what the server and the table must be

    def standby_in_the_way(self, connection: Any, *, is_resumed: bool) -> str:
        """That the server is a standby which cannot send the changes now; empty: it can, or is none. `is_resumed`:
        changes were read before, so that there must be a slot.
        """
        (is_standby,) = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        if not is_standby:
            return ""
        has_slots = connection.info.server_version >= _WITH_SLOTS_OF_STANDBYS
        if has_slots and not (is_resumed and self.slot_state(connection) is None):
            return ""
        return "the server is a standby" + (", without this slot" if has_slots else ", and those send no changes")

    def check_no_standby(self, connection: Any) -> None:
        """Raises NotReplicable; for who makes the source, and has not to wait until it has become the primary."""
        if in_the_way := self.standby_in_the_way(connection, is_resumed=False):
            raise NotReplicable(f"{self._where}: {in_the_way}: give the URL of the primary")

    def check(self, connection: Any) -> None:
        """Raises NotReplicable for what a user has to change first."""
        self._check_server(connection)
        self._check_identity(connection)

    def warn_of_large_values(self, connection: Any) -> None:
        """Of columns whose values may not be sent with an update."""
        (identity,) = connection.execute(
            "SELECT relreplident::text FROM pg_class WHERE oid = %s::regclass", [self._regclass]
        ).fetchone()
        large = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attname = ANY(%s) AND "
            "attstorage <> 'p' "
            "AND attname <> ALL(%s) AND atttypid <> 1700",
            [self._regclass, self.relation.schema.names, list(self.relation.key)],
        ).fetchall()
        if large and identity != "f":
            log.warning(
                "%s: values of %s that are stored out of line are not sent with an update that leaves them as they "
                "are: give %s REPLICA IDENTITY FULL if there are any (docs/connectors/postgres-cdc.md)",
                self._where,
                ", ".join(name for (name,) in large),
                self.relation.name,
            )

    def _check_server(self, connection: Any) -> None:
        (level,) = connection.execute("SHOW wal_level").fetchone()
        if level != "logical":
            raise NotReplicable(
                f"{self._where}: wal_level is {level!r}, and logical replication needs 'logical': ALTER SYSTEM SET "
                "wal_level = 'logical', and start the server again"
            )
        may = "SELECT rolreplication OR rolsuper, rolname FROM pg_roles WHERE rolname = current_user"
        is_allowed, role = connection.execute(may).fetchone()
        if not is_allowed and not _is_member(connection, "rds_replication"):
            raise NotReplicable(f"{self._where}: role {role} may not replicate: ALTER ROLE {role} REPLICATION")

    def _check_identity(self, connection: Any) -> None:
        asked = "SELECT relreplident::text, relkind::text FROM pg_class WHERE oid = %s::regclass"
        identity, kind = connection.execute(asked, [self._regclass]).fetchone()
        if kind not in ("r", "p"):
            raise NotReplicable(f"{self._where}: {self.relation.name} is no table: only tables have changes")
        if identity == "f":
            return
        index = "indisprimary" if identity == "d" else "indisreplident" if identity == "i" else "false"
        known = connection.execute(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
            "ANY(i.indkey) "
            f"WHERE i.indrelid = %s::regclass AND {index}",
            [self._regclass],
        ).fetchall()
        names = {name for (name,) in known}
        if not names or not names >= set(self.relation.key):
            has = f"sends only {', '.join(sorted(names))}" if names else "sends nothing"
            raise NotReplicable(
                f"{self._where}: of a deleted row of {self.relation.name} its replica identity {has}, wanted "
                f"{', '.join(self.relation.key) or 'a key'}: ALTER TABLE {self.relation.name} REPLICA IDENTITY FULL"
            )

    # -- publication

    def settle_publication(self, connection: Any) -> None:
        """Make it where there is none; else it must have all changes of the table."""
        from psycopg import errors, sql

        asked = "SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication WHERE pubname = %s"
        published = connection.execute(asked, [self.publication]).fetchone()
        if published is None:
            statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)").format(
                sql.Identifier(self.publication), sql.Identifier(*self.relation.parts)
            )
            try:
                connection.execute(statement)
            except errors.InsufficientPrivilege as error:
                raise NotReplicable(
                    f"{self._where}: there is no publication {self.publication!r}, and this role may not make it: let "
                    f"the table's owner run {statement.as_string(connection)}"
                ) from error
            except errors.DuplicateObject:
                pass
            return
        missing = [
            name
            for name, is_there in zip(("insert", "update", "delete", "truncate"), published, strict=True)
            if not is_there
        ]
        if missing:
            raise NotReplicable(f"{self._where}: publication {self.publication!r} leaves out {', '.join(missing)}")
        self.check_published(connection)

    def check_published(self, connection: Any) -> None:
        """Whether all columns and rows of the table are in the publication. Raises NotReplicable."""
        view = "SELECT * FROM pg_publication_tables WHERE pubname = %s AND (schemaname, tablename) = (%s, %s)"
        cursor = connection.execute(view, [self.publication, *self.qualified(connection)])
        row = cursor.fetchone()
        if row is None:
            raise NotReplicable(
                f"{self._where}: publication {self.publication!r} does not have {self.relation.name}: ALTER "
                "PUBLICATION "
                f"{self.publication} ADD TABLE {self.relation.name}"
            )
        found = dict(zip((each.name for each in cursor.description), row, strict=True))
        absent = set(self.relation.read_schema.names) - set(found.get("attnames") or self.relation.read_schema.names)
        if absent or found.get("rowfilter"):
            what = f"the columns {', '.join(sorted(absent))}" if absent else f"rows ({found['rowfilter']})"
            raise NotReplicable(
                f"{self._where}: publication {self.publication!r} leaves out {what} of {self.relation.name}, "
                "so that the "
                "changes would not fit what is read of the table"
            )

    def published(self, connection: Any) -> str:
        """By what the table is in the publication: the numbers of the server's entries, which are new ones when it was
        taken out and put in again. Raises NotReplicable where it is not.
        """
        self.check_published(connection)
        schemas = "SELECT oid FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = c.relnamespace"
        asked = (
            "SELECT p.oid, ARRAY(SELECT r.oid FROM pg_publication_rel r WHERE r.prpubid = p.oid AND (r.prrelid = c.oid "
            "OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(c.oid) relid)) ORDER BY r.oid)::text, "
            f"ARRAY({schemas if connection.info.server_version >= _WITH_SCHEMAS else 'SELECT 0 WHERE false'})::text "
            "FROM pg_publication p, pg_class c WHERE p.pubname = %s AND c.oid = %s::regclass"
        )
        row = connection.execute(asked, [self.publication, self._regclass]).fetchone()
        return "" if row is None else " ".join(map(str, row))

    def check_still_published(self, connection: Any, known: str) -> None:
        """Whether it has been in the publication since `published` said this. Raises NotReplicable, ChangesLost."""
        if self.published(connection) != known:
            raise ChangesLost(
                f"{self._where}: {self.relation.name} was taken out of publication {self.publication!r} and put in "
                "again (another list of columns or another filter is that to the server, too): the changes in "
                "between are not sent. Drop the slot and start the job without state: it reads the table again"
            )

    # -- slot

    def slot_state(self, connection: Any) -> SlotState | None:
        """None: there is none. Raises NotReplicable for one of another kind, ChangesLost for a lost one."""
        asked = (
            "SELECT slot_type, plugin, database = current_database(), active_pid, restart_lsn::text, "
            "confirmed_flush_lsn::text, wal_status FROM pg_replication_slots WHERE slot_name = %s"
        )
        row = connection.execute(asked, [self.slot]).fetchone()
        if row is None:
            return None
        kind, plugin, is_here, pid, restart, confirmed, status = row
        if kind != "logical" or plugin != "pgoutput" or not is_here:
            raise NotReplicable(
                f"{self._where}: the slot {self.slot!r} is a {kind} one of plug-in {plugin}"
                f"{'' if is_here else ' of another database'}, wanted a logical one of pgoutput in this database: give "
                "another slot=..."
            )
        if restart is None or status == "lost":
            raise ChangesLost(
                f"{self._where}: the server has removed the log that slot {self.slot!r} needs (wal_status is "
                f"{status!r}, "
                "see max_slot_wal_keep_size): changes are lost. Drop the slot and start the job without state: "
                "it reads "
                "the table again"
            )
        if status == "unreserved":
            log.warning(
                "%s: the log of slot %s is about to be removed: the job is too far behind", self._where, self.slot
            )
        return SlotState(lsn_of(confirmed), pid)

    def check_position(self, state: SlotState | None, system: str, position: Position) -> None:
        """Whether the slot can go on there. Raises ChangesLost."""
        again = "Start the job without state: it reads the table again"
        if position.system != system:
            raise ChangesLost(
                f"{self._where}: the job has read the changes of another server (system identifier {position.system}, "
                f"found {system}), whose log is not this one's. {again}"
            )
        if state is None:
            raise ChangesLost(
                f"{self._where}: slot {self.slot!r} is not there any more, and with it the changes since "
                f"{lsn_text(position.lsn)}, which the job needs. {again}"
            )
        if state.confirmed > position.lsn:
            raise ChangesLost(
                f"{self._where}: slot {self.slot!r} has let go of all before {lsn_text(state.confirmed)}, and "
                "the job goes "
                f"on at {lsn_text(position.lsn)}: it was restored from an older checkpoint, or another job has "
                "read the "
                f"slot, or it was made again. {again}"
            )

    def take_over(self, connection: Any, state: SlotState | None, job_id: str, attempt: int, pause: Any) -> None:
        """End the connection of an earlier attempt that still has the slot. Raises SlotInUse for another job's."""
        waited = 0.0
        while state is not None and state.active_pid is not None:
            asked = "SELECT application_name FROM pg_stat_activity WHERE pid = %s"
            row = connection.execute(asked, [state.active_pid]).fetchone()
            name = "" if row is None else row[0] or ""
            prefix = application_prefix(job_id)
            if name.startswith(prefix) and int(name[len(prefix) :]) < attempt:
                connection.execute("SELECT pg_terminate_backend(%s)", [state.active_pid])
            elif waited > _HANDOVER_S:
                raise SlotInUse(
                    f"{self._where}: slot {self.slot!r} is read by {name or 'another program'} (pid "
                    f"{state.active_pid}): "
                    "each job needs a slot of its own, slot=..."
                )
            pause(0.1)
            waited += 0.1
            state = self.slot_state(connection)

    # -- names

    def qualified(self, connection: Any) -> tuple[str, str]:
        """The names of its schema and of itself, as messages have them."""
        asked = (
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = %s::regclass"
        )
        schema, name = connection.execute(asked, [self._regclass]).fetchone()
        return schema, name

    def columns(self, connection: Any) -> dict[str, pa.DataType]:
        """What it has now. A change that was committed, and is sent here before others see it, still holds its lock on
        the table: this waits for that, by a statement that needs no right but to read one of the columns.
        """
        from psycopg import sql

        connection.execute(sql.SQL("SELECT FROM ONLY {} LIMIT 0").format(self.relation.identifier))
        asked = (
            "SELECT attname, atttypid::int, atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND "
            "attnum > 0 AND "
            "NOT attisdropped"
        )
        return {
            name: arrow_type_of_oid(kind, *numeric_parts(modifier))
            for name, kind, modifier in connection.execute(asked, [self._regclass]).fetchall()
        }

    def collations(self, connection: Any) -> dict[str, str]:
        """Of the columns that have one, as SQL."""
        asked = (
            "SELECT attname, quote_ident(n.nspname) || '.' || quote_ident(c.collname) FROM pg_attribute a "
            "JOIN pg_collation c ON c.oid = a.attcollation JOIN pg_namespace n ON n.oid = c.collnamespace "
            "WHERE attrelid = %s::regclass"
        )
        return dict(connection.execute(asked, [self._regclass]).fetchall())

    @property
    def _where(self) -> str:
        return self.relation.database.name

    @property
    def _regclass(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in self.relation.parts)


def _is_member(connection: Any, role: str) -> bool:
    """Of a role by which a service grants replication."""
    asked = "SELECT count(*) FROM pg_roles WHERE rolname = %s AND pg_has_role(oid, 'member')"
    return bool(connection.execute(asked, [role]).fetchone()[0])
