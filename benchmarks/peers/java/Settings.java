package benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** What both jobs share: two slots in this process, exactly once with a checkpoint every second, objects reused. */
final class Settings {
    private Settings() {}

    static StreamExecutionEnvironment environment(Path out) throws Exception {
        Files.createDirectories(out);
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", "2");
        settings.setString("taskmanager.numberOfTaskSlots", "2");
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("restart-strategy.type", "disable");
        settings.setString("state.backend.type", "hashmap");
        settings.setString("execution.checkpointing.interval", "1 s");
        settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", out.resolve("checkpoints").toUri().toString());
        return StreamExecutionEnvironment.createLocalEnvironment(2, settings);
    }
}
