package benchmarks;

import java.nio.file.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * windows in Flink SQL, by its window functions. Arguments: the input's format, the shape, the numbers that the data was
 * made with (see timed_data.py), then pairs of a folder of input and an existing folder for the outcome.
 */
public final class Windows {
    private static final String ROWS =
            "CREATE TABLE numbers (`key` BIGINT, %1$s, `at` AS TO_TIMESTAMP_LTZ(%2$s, 3),"
                    + " WATERMARK FOR `at` AS `at` - INTERVAL '%3$s' SECOND) WITH ("
                    + "'connector' = 'filesystem', 'path' = '%4$s', 'format' = '%5$s', '%5$s.out' = '%6$s')";
    private static final String DIGEST =
            "CREATE TABLE digests (`key` BIGINT, `ends` BIGINT, `count` BIGINT, `sum` BIGINT) WITH ("
                    + "'connector' = 'outcome', 'keeps' = 'digest', 'out' = '%s')";
    private static final String QUERY =
            "INSERT INTO digests SELECT `key`, %s, COUNT(*), SUM(`value`) FROM TABLE(%s)"
                    + " GROUP BY `key`, window_start, window_end";

    public static void main(String[] arguments) throws Exception {
        for (int index = 8; index < arguments.length; index += 2) {
            run(arguments, Path.of(arguments[index]), Path.of(arguments[index + 1]));
        }
    }

    private static void run(String[] arguments, Path input, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.getConfig().set("table.local-time-zone", "UTC");
        tables.getConfig().set("table.optimizer.agg-phase-strategy", "TWO_PHASE");
        String delay = String.valueOf(Long.parseLong(arguments[4]) / 1000);
        tables.executeSql(
                String.format(ROWS, columns(arguments), time(arguments), delay, input.toUri(), arguments[0], out));
        tables.executeSql(String.format(DIGEST, out));
        tables.executeSql(String.format(QUERY, end(arguments), function(arguments))).await();
    }

    /** Those beside the key: value and time, which share a number in pairs. */
    private static String columns(String[] arguments) {
        if (!arguments[0].equals("pairs")) {
            return "`value` BIGINT, `time` BIGINT";
        }
        return "`packed` BIGINT, `value` AS CAST(MOD(`packed`, " + Long.parseLong(arguments[2]) + ") AS BIGINT)";
    }

    /** In ms, as an expression over the stored columns: a computed one cannot name another. */
    private static String time(String[] arguments) {
        if (!arguments[0].equals("pairs")) {
            return "`time`";
        }
        return "`packed` / " + Long.parseLong(arguments[2]) + " + " + Long.parseLong(arguments[3]);
    }

    /** The window's end in ms; that of a session from its last row, as its own has no function that gives ms. */
    private static String end(String[] arguments) {
        if (arguments[1].equals("session")) {
            return "MAX(" + time(arguments) + ") + " + Long.parseLong(arguments[7]);
        }
        return "CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_end) AS BIGINT) * 1000";
    }

    private static String function(String[] arguments) {
        String size = "INTERVAL '" + Long.parseLong(arguments[5]) / 1000 + "' SECOND";
        String slide = "INTERVAL '" + Long.parseLong(arguments[6]) / 1000 + "' SECOND";
        String gap = "INTERVAL '" + Long.parseLong(arguments[7]) / 1000 + "' SECOND";
        switch (arguments[1]) {
            case "tumbling":
                return "TUMBLE(TABLE numbers, DESCRIPTOR(`at`), " + size + ")";
            case "sliding":
                return "HOP(TABLE numbers, DESCRIPTOR(`at`), " + slide + ", " + size + ")";
            default:
                return "SESSION(TABLE numbers PARTITION BY `key`, DESCRIPTOR(`at`), " + gap + ")";
        }
    }
}
