package benchmarks;

import java.nio.file.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * keyed-aggregate in Flink SQL. Arguments: the input's format, then pairs of a folder of input and an existing folder for
 * the outcome.
 */
public final class KeyedAggregate {
    private static final String ROWS =
            "CREATE TABLE numbers (`key` BIGINT, `value` BIGINT) WITH ("
                    + "'connector' = 'filesystem', 'path' = '%1$s', 'format' = '%3$s', '%3$s.out' = '%2$s')";
    private static final String TOTALS =
            "CREATE TABLE totals (`key` BIGINT, `count` BIGINT, `sum` BIGINT, PRIMARY KEY (`key`) NOT ENFORCED) WITH ("
                    + "'connector' = 'outcome', 'keeps' = 'totals', 'out' = '%s')";

    public static void main(String[] arguments) throws Exception {
        for (int index = 1; index < arguments.length; index += 2) {
            run(arguments[0], Path.of(arguments[index]), Path.of(arguments[index + 1]));
        }
    }

    private static void run(String format, Path input, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.getConfig().set("table.exec.mini-batch.enabled", "true");
        tables.getConfig().set("table.exec.mini-batch.allow-latency", "1 s");
        tables.getConfig().set("table.exec.mini-batch.size", System.getProperty("mini-batch", "500000"));
        tables.getConfig().set("table.optimizer.agg-phase-strategy", "TWO_PHASE");
        tables.executeSql(String.format(ROWS, input.toUri(), out, format));
        tables.executeSql(String.format(TOTALS, out));
        tables.executeSql("INSERT INTO totals SELECT `key`, COUNT(*), SUM(`value`) FROM numbers GROUP BY `key`")
                .await();
    }
}
