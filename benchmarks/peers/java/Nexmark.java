package benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.TableConfig;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * A query of Nexmark in Flink SQL. Arguments: pairs of a file of statements, divided by lines of a semicolon alone, the
 * last of which is an INSERT, and an existing folder for the outcome.
 */
public final class Nexmark {
    public static void main(String[] arguments) throws Exception {
        for (int index = 0; index < arguments.length; index += 2) {
            run(Files.readString(Path.of(arguments[index])), Path.of(arguments[index + 1]));
        }
    }

    private static void run(String statements, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        TableConfig settings = tables.getConfig();
        settings.set("table.local-time-zone", "UTC");
        settings.set("table.exec.mini-batch.enabled", "true");
        settings.set("table.exec.mini-batch.allow-latency", "2 s");
        settings.set("table.exec.mini-batch.size", "50000");
        settings.set("table.optimizer.distinct-agg.split.enabled", "true");
        settings.set("table.exec.sink.upsert-materialize", "NONE");
        TableResult result = null;
        for (String statement : statements.split("\n;\n")) {
            result = tables.executeSql(statement);
        }
        result.await();
        if (Files.isDirectory(out.resolve("files"))) {
            Files.writeString(out.resolve("ended-job"), Long.toString(System.currentTimeMillis()));
        }
    }
}
