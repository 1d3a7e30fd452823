package benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.MutableRecordAndPosition;
import org.apache.flink.connector.file.src.util.RecordAndPosition;
import org.apache.flink.core.fs.FSDataInputStream;

/**
 * A format for Flink's own file source: a file of little-endian int64 pairs, key and value. Reading it costs less than
 * reading Parquet. A subclass says what one pair becomes. A file is one split.
 */
public abstract class Pairs<T> implements BulkFormat<T, FileSourceSplit> {
    private static final int BATCH = 4096;
    private static final int PAIR_BYTES = 16;

    private final String out;
    private final TypeInformation<T> type;

    /** `out`: the folder in which the moment of the first read is noted. */
    protected Pairs(String out, TypeInformation<T> type) {
        this.out = out;
        this.type = type;
    }

    /** Turns one batch into records; called once a batch. */
    protected abstract Batch<T> batch(long[] keys, long[] values);

    /** The records of one batch, by index. */
    public interface Batch<T> {
        T get(int index);
    }

    @Override
    public Reader<T> createReader(Configuration settings, FileSourceSplit split) throws IOException {
        return new PairsReader(split, 0);
    }

    @Override
    public Reader<T> restoreReader(Configuration settings, FileSourceSplit split) throws IOException {
        return new PairsReader(split, split.getReaderPosition().get().getRecordsAfterOffset());
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<T> getProducedType() {
        return type;
    }

    private final class PairsReader implements Reader<T> {
        private final FSDataInputStream file;
        private final byte[] bytes = new byte[BATCH * PAIR_BYTES];
        private long position;

        PairsReader(FileSourceSplit split, long skipped) throws IOException {
            Noted.start(out);
            file = split.path().getFileSystem().open(split.path());
            file.seek(skipped * PAIR_BYTES);
            position = skipped;
        }

        @Override
        public RecordIterator<T> readBatch() throws IOException {
            int rows = file.readNBytes(bytes, 0, bytes.length) / PAIR_BYTES;
            if (rows == 0) {
                return null;
            }
            LongBuffer pairs = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
            long[] keys = new long[rows];
            long[] values = new long[rows];
            for (int row = 0; row < rows; row++) {
                keys[row] = pairs.get(2 * row);
                values[row] = pairs.get(2 * row + 1);
            }
            Records<T> records = new Records<>(batch(keys, values), rows, position);
            position += rows;
            return records;
        }

        @Override
        public void close() throws IOException {
            file.close();
        }
    }

    private static final class Records<T> implements BulkFormat.RecordIterator<T> {
        private final MutableRecordAndPosition<T> current = new MutableRecordAndPosition<>();
        private final Batch<T> batch;
        private final int rows;
        private int next;

        Records(Batch<T> batch, int rows, long position) {
            this.batch = batch;
            this.rows = rows;
            current.setPosition(-1L, position);
        }

        @Override
        public RecordAndPosition<T> next() {
            if (next == rows) {
                return null;
            }
            current.setNext(batch.get(next++));
            return current;
        }

        @Override
        public void releaseBatch() {}
    }
}
