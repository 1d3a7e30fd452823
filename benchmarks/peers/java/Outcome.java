package benchmarks;

import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Sinks that keep what the check needs in memory and write it to the folder `out` at the end, with the moment. */
public final class Outcome {
    private Outcome() {}

    /** Reads one of the numbers of a record. */
    public interface Column<T> extends Serializable {
        long of(T record, int column);
    }

    /** Three columns, key, count and sum: keeps each key's last row. */
    public static <T> Sink<T> totals(String out, Column<T> column) {
        return new FolderSink<>(out, (folder, subtask) -> new Totals<>(column, folder.resolve("totals-" + subtask)));
    }

    /** Four columns: keeps their number and a digest that does not depend on their order; see digest.py. */
    public static <T> Sink<T> digest(String out, Column<T> column) {
        return new FolderSink<>(out, (folder, subtask) -> new Digest<>(column, folder.resolve("digest-" + subtask)));
    }

    private interface Opened<T> extends BiFunction<Path, Integer, SinkWriter<T>>, Serializable {}

    private static final class FolderSink<T> implements Sink<T> {
        private final String out;
        private final Opened<T> opened;

        FolderSink(String out, Opened<T> opened) {
            this.out = out;
            this.opened = opened;
        }

        @Override
        public SinkWriter<T> createWriter(WriterInitContext context) {
            return opened.apply(Path.of(out), context.getTaskInfo().getIndexOfThisSubtask());
        }
    }

    private abstract static class AtTheEnd<T> implements SinkWriter<T> {
        protected final Column<T> column;
        private final Path path;

        AtTheEnd(Column<T> column, Path path) {
            this.column = column;
            this.path = path;
        }

        protected abstract byte[] result();

        @Override
        public void flush(boolean endOfInput) throws IOException {
            if (endOfInput) {
                long now = System.currentTimeMillis();
                Files.writeString(path.resolveSibling("ended-" + path.getFileName()), Long.toString(now));
                Files.write(path, result());
            }
        }

        @Override
        public void close() {}
    }

    private static final class Totals<T> extends AtTheEnd<T> {
        private final Map<Long, long[]> rows = new HashMap<>();

        Totals(Column<T> column, Path path) {
            super(column, path);
        }

        @Override
        public void write(T record, Context context) {
            long[] row = rows.computeIfAbsent(column.of(record, 0), key -> new long[] {key, 0, 0});
            row[1] = column.of(record, 1);
            row[2] = column.of(record, 2);
        }

        @Override
        protected byte[] result() {
            ByteBuffer bytes = ByteBuffer.allocate(rows.size() * 24).order(ByteOrder.LITTLE_ENDIAN);
            for (long[] row : rows.values()) {
                bytes.putLong(row[0]).putLong(row[1]).putLong(row[2]);
            }
            return bytes.array();
        }
    }

    private static final class Digest<T> extends AtTheEnd<T> {
        private static final long[] MULTIPLIERS = {
            0x9E3779B97F4A7C15L, 0xC2B2AE3D27D4EB4FL, 0x165667B19E3779F9L, 0x27D4EB2F165667C5L
        };
        private static final long MIXER = 0xBF58476D1CE4E5B9L;

        private long rows;
        private long digest;

        Digest(Column<T> column, Path path) {
            super(column, path);
        }

        @Override
        public void write(T record, Context context) {
            long mixed = 0;
            for (int index = 0; index < MULTIPLIERS.length; index++) {
                mixed += column.of(record, index) * MULTIPLIERS[index];
            }
            mixed = (mixed ^ (mixed >>> 32)) * MIXER;
            digest += mixed ^ (mixed >>> 29);
            rows++;
        }

        @Override
        protected byte[] result() {
            return (rows + " " + Long.toUnsignedString(digest)).getBytes();
        }
    }
}
