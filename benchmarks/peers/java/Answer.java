package benchmarks;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.binary.BinaryStringData;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;

/**
 * Keeps a digest of all rows, or of the last row of each key, and writes it to the folder `out` at the end, with the
 * moment: what AnswerSink of benchmarks/nexmark/sink.py does, with the arithmetic of answers.py.
 */
final class Answer implements Sink<RowData> {
    private static final long BY_LENGTH = 0x9E3779B97F4A7C15L;
    private static final long BY_FIRST = 0xC2B2AE3D27D4EB4FL;
    private static final long BY_LAST = 0x165667B19E3779F9L;
    private static final long MIXER = 0xBF58476D1CE4E5B9L;
    private static final long NULL = 0x6E756C6CL;

    private final String out;
    private final int keys;
    private final List<LogicalType> types;

    Answer(String out, int keys, List<LogicalType> types) {
        this.out = out;
        this.keys = keys;
        this.types = new ArrayList<>(types);
    }

    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
        return new Writer(Path.of(out), context.getTaskInfo().getIndexOfThisSubtask());
    }

    private final class Writer implements SinkWriter<RowData> {
        private final Path folder;
        private final int subtask;
        private final Word[] words = types.stream().map(Answer::wordOf).toArray(Word[]::new);
        private final Map<Long, long[]> last = new HashMap<>();
        private long rows;
        private long sum;

        Writer(Path folder, int subtask) {
            this.folder = folder;
            this.subtask = subtask;
        }

        @Override
        public void write(RowData row, Context context) {
            long word = digest(row, words.length);
            if (keys == 0) {
                rows++;
                sum += word;
            } else if (row.getRowKind() == RowKind.DELETE) {
                last.remove(digest(row, keys));
            } else if (row.getRowKind() != RowKind.UPDATE_BEFORE) {
                last.computeIfAbsent(digest(row, keys), key -> new long[1])[0] = word;
            }
        }

        private long digest(RowData row, int columns) {
            long total = 0;
            for (int column = 0; column < columns; column++) {
                total += (row.isNullAt(column) ? NULL : words[column].of(row, column)) * MULTIPLIERS[column];
            }
            total = (total ^ (total >>> 32)) * MIXER;
            return total ^ (total >>> 29);
        }

        @Override
        public void flush(boolean endOfInput) throws IOException {
            if (endOfInput) {
                Files.writeString(folder.resolve("ended-" + subtask), Long.toString(System.currentTimeMillis()));
                for (long[] word : last.values()) {
                    rows++;
                    sum += word[0];
                }
                last.clear();
                Files.writeString(folder.resolve("answer-" + subtask), rows + " " + Long.toUnsignedString(sum));
            }
        }

        @Override
        public void close() {}
    }

    private interface Word extends Serializable {
        long of(RowData row, int column);
    }

    private static Word wordOf(LogicalType type) {
        switch (type.getTypeRoot()) {
            case BIGINT:
                return RowData::getLong;
            case INTEGER:
                return RowData::getInt;
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return (row, column) -> row.getTimestamp(column, 3).getMillisecond();
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return (row, column) -> {
                    DecimalData value = row.getDecimal(column, decimal.getPrecision(), decimal.getScale());
                    return value.toBigDecimal().unscaledValue().longValue();
                };
            case VARCHAR:
            case CHAR:
                return (row, column) -> textWord((BinaryStringData) row.getString(column));
            default:
                throw new IllegalArgumentException("no query gives " + type);
        }
    }

    private static long textWord(BinaryStringData text) {
        int length = text.getSizeInBytes();
        MemorySegment[] segments = text.getSegments();
        if (length >= 8 && segments.length == 1) {
            long first = segments[0].getLongLittleEndian(text.getOffset());
            long end = segments[0].getLongLittleEndian(text.getOffset() + length - 8);
            return length * BY_LENGTH + first * BY_FIRST + end * BY_LAST;
        }
        byte[] bytes = text.toBytes();
        long first = eight(bytes, 0, Math.min(8, length));
        long end = length >= 8 ? eight(bytes, length - 8, 8) : first;
        return length * BY_LENGTH + first * BY_FIRST + end * BY_LAST;
    }

    private static long eight(byte[] bytes, int from, int count) {
        long word = 0;
        for (int index = count - 1; index >= 0; index--) {
            word = word << 8 | bytes[from + index] & 0xFF;
        }
        return word;
    }

    private static final long[] MULTIPLIERS = new long[32];

    static {
        for (int position = 0; position < MULTIPLIERS.length; position++) {
            long mixed = (1_000L + position + 1) * BY_LENGTH;
            mixed = (mixed ^ (mixed >>> 30)) * MIXER;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
            MULTIPLIERS[position] = (mixed ^ (mixed >>> 31)) | 1;
        }
    }
}
