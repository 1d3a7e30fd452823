package benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;

/** A format of Flink's file source, with the moment of each file's first read noted in a folder. A file is one split. */
final class Noted<T> implements BulkFormat<T, FileSourceSplit> {
    private final BulkFormat<T, FileSourceSplit> format;
    private final String out;

    Noted(BulkFormat<T, FileSourceSplit> format, String out) {
        this.format = format;
        this.out = out;
    }

    /** Writes the time now, in ms, into a new file of the folder. */
    static void start(String out) throws IOException {
        Path note = Path.of(out, "started-" + UUID.randomUUID());
        Files.writeString(note, Long.toString(System.currentTimeMillis()));
    }

    @Override
    public Reader<T> createReader(Configuration settings, FileSourceSplit split) throws IOException {
        start(out);
        return format.createReader(settings, split);
    }

    @Override
    public Reader<T> restoreReader(Configuration settings, FileSourceSplit split) throws IOException {
        return format.restoreReader(settings, split);
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<T> getProducedType() {
        return format.getProducedType();
    }
}
