package benchmarks;

import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;

/** The sinks of Outcome as a connector of Flink SQL: 'keeps' is 'totals' or 'digest'. */
public class OutcomeTableFactory implements DynamicTableSinkFactory {
    private static final ConfigOption<String> OUT = ConfigOptions.key("out").stringType().noDefaultValue();
    private static final ConfigOption<String> KEEPS = ConfigOptions.key("keeps").stringType().noDefaultValue();

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        return new OutcomeTable(helper.getOptions().get(OUT), helper.getOptions().get(KEEPS));
    }

    @Override
    public String factoryIdentifier() {
        return "outcome";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(OUT, KEEPS);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    private record OutcomeTable(String out, String keeps) implements DynamicTableSink {
        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return keeps.equals("totals") ? ChangelogMode.upsert() : ChangelogMode.insertOnly();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            Sink<RowData> sink =
                    keeps.equals("totals")
                            ? Outcome.totals(out, RowData::getLong)
                            : Outcome.digest(out, RowData::getLong);
            return SinkV2Provider.of(sink);
        }

        @Override
        public DynamicTableSink copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "outcome";
        }
    }
}
