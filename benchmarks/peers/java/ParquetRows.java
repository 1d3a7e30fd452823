package benchmarks;

import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.core.fs.Path;
import org.apache.flink.formats.parquet.ParquetColumnarRowInputFormat;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.hadoop.conf.Configuration;

/** Columns of int64 out of Parquet files as a DataStream's source, by Flink's vectorised reader. */
final class ParquetRows {
    private static final int BATCH = 2048;

    private ParquetRows() {}

    /** `out`: the folder in which the moment of the first read is noted. */
    static FileSource<RowData> source(java.nio.file.Path input, java.nio.file.Path out, String... columns) {
        LogicalType[] types = new LogicalType[columns.length];
        java.util.Arrays.fill(types, new BigIntType());
        RowType rows = RowType.of(types, columns);
        ParquetColumnarRowInputFormat<FileSourceSplit> parquet =
                new ParquetColumnarRowInputFormat<>(
                        new Configuration(), rows, InternalTypeInfo.of(rows), BATCH, true, true);
        return FileSource.forBulkFileFormat(new Noted<>(parquet, out.toString()), new Path(input.toUri())).build();
    }
}
