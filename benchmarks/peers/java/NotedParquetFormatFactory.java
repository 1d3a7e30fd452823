package benchmarks;

import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.table.factories.BulkReaderFormatFactory;
import org.apache.flink.connector.file.table.format.BulkDecodingFormat;
import org.apache.flink.formats.parquet.ParquetFileFormatFactory;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.ProjectableDecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.types.DataType;

/** Flink's own Parquet format for SQL, with the moment of the first read noted. */
public class NotedParquetFormatFactory implements BulkReaderFormatFactory {
    private static final ConfigOption<String> OUT = ConfigOptions.key("out").stringType().noDefaultValue();

    @Override
    public BulkDecodingFormat<RowData> createDecodingFormat(
            DynamicTableFactory.Context context, ReadableConfig options) {
        return new Decoding(new ParquetFileFormatFactory.ParquetBulkDecodingFormat(options), options.get(OUT));
    }

    @Override
    public String factoryIdentifier() {
        return "noted-parquet";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(OUT);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return new ParquetFileFormatFactory().optionalOptions();
    }

    private record Decoding(ParquetFileFormatFactory.ParquetBulkDecodingFormat parquet, String out)
            implements BulkDecodingFormat<RowData>, ProjectableDecodingFormat<BulkFormat<RowData, FileSourceSplit>> {
        @Override
        public BulkFormat<RowData, FileSourceSplit> createRuntimeDecoder(
                DynamicTableSource.Context source, DataType type, int[][] projections) {
            return new Noted<>(parquet.createRuntimeDecoder(source, type, projections), out);
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return parquet.getChangelogMode();
        }
    }
}
