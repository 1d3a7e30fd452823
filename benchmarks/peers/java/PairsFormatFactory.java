package benchmarks;

import java.util.Set;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.table.factories.BulkReaderFormatFactory;
import org.apache.flink.connector.file.table.format.BulkDecodingFormat;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.columnar.ColumnarRowData;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.VectorizedColumnBatch;
import org.apache.flink.table.data.columnar.vector.heap.HeapLongVector;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.types.DataType;

/** The same pairs as a format of Flink SQL's filesystem connector, in columns, as its Parquet format gives them. */
public class PairsFormatFactory implements BulkReaderFormatFactory {
    private static final ConfigOption<String> OUT = ConfigOptions.key("out").stringType().noDefaultValue();

    @Override
    public BulkDecodingFormat<RowData> createDecodingFormat(
            DynamicTableFactory.Context context, ReadableConfig options) {
        String out = options.get(OUT);
        return new BulkDecodingFormat<RowData>() {
            @Override
            public BulkFormat<RowData, FileSourceSplit> createRuntimeDecoder(
                    DynamicTableSource.Context source, DataType type) {
                return new RowPairs(out, source.createTypeInformation(type));
            }

            @Override
            public ChangelogMode getChangelogMode() {
                return ChangelogMode.insertOnly();
            }
        };
    }

    @Override
    public String factoryIdentifier() {
        return "pairs";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(OUT);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    private static final class RowPairs extends Pairs<RowData> {
        RowPairs(String out, TypeInformation<RowData> type) {
            super(out, type);
        }

        @Override
        protected Batch<RowData> batch(long[] keys, long[] values) {
            ColumnVector[] columns = {vector(keys), vector(values)};
            ColumnarRowData row = new ColumnarRowData(new VectorizedColumnBatch(columns));
            return index -> {
                row.setRowId(index);
                return row;
            };
        }

        private static HeapLongVector vector(long[] from) {
            HeapLongVector made = new HeapLongVector(from.length);
            System.arraycopy(from, 0, made.vector, 0, from.length);
            return made;
        }
    }
}
