package benchmarks;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;

/** The table of q13 for Flink SQL, in memory: key 0 to 9,999 and the text that dataset.py gives it. */
public class SideInputTableFactory implements DynamicTableSourceFactory {
    private static final int KEYS = 10_000;

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        return new SideInput();
    }

    @Override
    public String factoryIdentifier() {
        return "side-input";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    private static final class SideInput implements LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return LookupFunctionProvider.of(new InMemory());
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "side-input";
        }
    }

    /** Public, as generated code calls it. */
    public static final class InMemory extends LookupFunction {
        private transient List<Collection<RowData>> rows;

        @Override
        public void open(FunctionContext context) {
            rows = new java.util.ArrayList<>();
            for (long key = 0; key < KEYS; key++) {
                rows.add(List.of(GenericRowData.of(key, StringData.fromString("side-" + key * 7_919 % KEYS))));
            }
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            return rows.get((int) key.getLong(0));
        }
    }
}
