package benchmarks;

import java.util.List;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.logical.LogicalType;

/**
 * Answer as a connector of Flink SQL. 'keys': how many of the first columns are the key of updates; 0: rows are added.
 * 'compared': how many of the first columns count.
 */
public class AnswerTableFactory implements DynamicTableSinkFactory {
    private static final ConfigOption<String> OUT = ConfigOptions.key("out").stringType().noDefaultValue();
    private static final ConfigOption<Integer> KEYS = ConfigOptions.key("keys").intType().noDefaultValue();
    private static final ConfigOption<Integer> COMPARED = ConfigOptions.key("compared").intType().noDefaultValue();

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        List<LogicalType> types =
                context.getCatalogTable().getResolvedSchema().getColumns().stream()
                        .map(Column::getDataType)
                        .map(type -> type.getLogicalType())
                        .limit(helper.getOptions().get(COMPARED))
                        .toList();
        return new AnswerTable(helper.getOptions().get(OUT), helper.getOptions().get(KEYS), types);
    }

    @Override
    public String factoryIdentifier() {
        return "answer";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(OUT, KEYS, COMPARED);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    private record AnswerTable(String out, int keys, List<LogicalType> types) implements DynamicTableSink {
        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return keys > 0 ? ChangelogMode.upsert() : ChangelogMode.insertOnly();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkV2Provider.of(new Answer(out, keys, types));
        }

        @Override
        public DynamicTableSink copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "answer";
        }
    }
}
