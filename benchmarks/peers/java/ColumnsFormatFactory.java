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
import org.apache.flink.table.connector.Projection;
import org.apache.flink.table.connector.format.ProjectableDecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.types.DataType;

/** The blocks of Columns as a format of Flink SQL's filesystem connector. Columns that a query leaves out are skipped. */
public class ColumnsFormatFactory implements BulkReaderFormatFactory {
    private static final ConfigOption<String> OUT = ConfigOptions.key("out").stringType().noDefaultValue();

    @Override
    public BulkDecodingFormat<RowData> createDecodingFormat(
            DynamicTableFactory.Context context, ReadableConfig options) {
        return new Decoding(options.get(OUT));
    }

    @Override
    public String factoryIdentifier() {
        return "columns";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(OUT);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    private record Decoding(String out)
            implements BulkDecodingFormat<RowData>, ProjectableDecodingFormat<BulkFormat<RowData, FileSourceSplit>> {
        @Override
        public BulkFormat<RowData, FileSourceSplit> createRuntimeDecoder(
                DynamicTableSource.Context source, DataType type, int[][] projections) {
            DataType projected = Projection.of(projections).project(type);
            TypeInformation<RowData> produced = source.createTypeInformation(projected);
            int[] columns = Projection.of(projections).toTopLevelIndexes();
            return new Columns(out, produced, projected.getLogicalType().getChildren(), columns);
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }
    }
}
