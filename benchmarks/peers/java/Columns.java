package benchmarks;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.MutableRecordAndPosition;
import org.apache.flink.connector.file.src.util.RecordAndPosition;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.columnar.ColumnarRowData;
import org.apache.flink.table.data.columnar.vector.BytesColumnVector;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.LongColumnVector;
import org.apache.flink.table.data.columnar.vector.TimestampColumnVector;
import org.apache.flink.table.data.columnar.vector.VectorizedColumnBatch;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;

/**
 * A format for Flink's own file source: blocks of columns, as benchmarks/nexmark/dataset.py writes them. A value is read
 * from the bytes of its block when a query asks for it: less work than decoding Parquet. A file is one split.
 */
final class Columns implements BulkFormat<RowData, FileSourceSplit> {
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final String out;
    private final TypeInformation<RowData> type;
    private final List<LogicalType> types;
    private final int[] columns;

    /** `columns`: of those in the file, the ones that are read, of these `types`. `out`: where a first read is noted. */
    Columns(String out, TypeInformation<RowData> type, List<LogicalType> types, int[] columns) {
        this.out = out;
        this.type = type;
        this.types = types;
        this.columns = columns;
    }

    @Override
    public Reader<RowData> createReader(Configuration settings, FileSourceSplit split) throws IOException {
        return new BlockReader(split);
    }

    @Override
    public Reader<RowData> restoreReader(Configuration settings, FileSourceSplit split) {
        throw new UnsupportedOperationException("a job of the benchmark does not restart");
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<RowData> getProducedType() {
        return type;
    }

    private final class BlockReader implements Reader<RowData> {
        private final FSDataInputStream file;
        private final byte[] number = new byte[4];
        private long position;

        BlockReader(FileSourceSplit split) throws IOException {
            Noted.start(out);
            file = split.path().getFileSystem().open(split.path());
        }

        @Override
        public RecordIterator<RowData> readBatch() throws IOException {
            int rows = readNumber();
            if (rows < 0) {
                return null;
            }
            int stored = readNumber();
            ColumnVector[] vectors = new ColumnVector[columns.length];
            for (int column = 0; column < stored; column++) {
                int size = readNumber();
                int wanted = placeOf(column);
                if (wanted < 0) {
                    file.seek(file.getPos() + size);
                } else {
                    vectors[wanted] = vector(types.get(wanted), file.readNBytes(size), rows);
                }
            }
            Rows made = new Rows(new ColumnarRowData(new VectorizedColumnBatch(vectors)), rows, position);
            position += rows;
            return made;
        }

        private int placeOf(int column) {
            for (int place = 0; place < columns.length; place++) {
                if (columns[place] == column) {
                    return place;
                }
            }
            return -1;
        }

        /** The next int32, or -1 at the end of the file. */
        private int readNumber() throws IOException {
            return file.readNBytes(number, 0, 4) < 4 ? -1 : (int) INTS.get(number, 0);
        }

        @Override
        public void close() throws IOException {
            file.close();
        }
    }

    private static ColumnVector vector(LogicalType type, byte[] bytes, int rows) {
        if (type.is(LogicalTypeRoot.BIGINT)) {
            return new Numbers(bytes);
        }
        return type.is(LogicalTypeRoot.VARCHAR) ? new Texts(bytes, 4 * (rows + 1)) : new Times(bytes);
    }

    private record Numbers(byte[] bytes) implements LongColumnVector {
        @Override
        public long getLong(int row) {
            return (long) LONGS.get(bytes, 8 * row);
        }

        @Override
        public boolean isNullAt(int row) {
            return false;
        }
    }

    private record Times(byte[] bytes) implements TimestampColumnVector {
        @Override
        public TimestampData getTimestamp(int row, int precision) {
            return TimestampData.fromEpochMillis((long) LONGS.get(bytes, 8 * row));
        }

        @Override
        public boolean isNullAt(int row) {
            return false;
        }
    }

    private record Texts(byte[] bytes, int first) implements BytesColumnVector {
        @Override
        public Bytes getBytes(int row) {
            int start = (int) INTS.get(bytes, 4 * row);
            return new Bytes(bytes, first + start, (int) INTS.get(bytes, 4 * row + 4) - start);
        }

        @Override
        public boolean isNullAt(int row) {
            return false;
        }
    }

    private static final class Rows implements RecordIterator<RowData> {
        private final MutableRecordAndPosition<RowData> current = new MutableRecordAndPosition<>();
        private final ColumnarRowData row;
        private final int rows;
        private int next;

        Rows(ColumnarRowData row, int rows, long position) {
            this.row = row;
            this.rows = rows;
            current.setPosition(-1L, position);
        }

        @Override
        public RecordAndPosition<RowData> next() {
            if (next == rows) {
                return null;
            }
            row.setRowId(next++);
            current.setNext(row);
            return current;
        }

        @Override
        public void releaseBatch() {}
    }
}
