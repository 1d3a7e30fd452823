package benchmarks;

import java.nio.file.Path;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** stateful-function as a Java DataStream. Arguments as of KeyedAggregate. */
public final class StatefulFunction {
    private static final TypeInformation<Tuple2<Long, Long>> PAIR = Types.TUPLE(Types.LONG, Types.LONG);
    private static final TypeInformation<Tuple4<Long, Long, Long, Long>> RESULT =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        for (int index = 1; index < arguments.length; index += 2) {
            run(arguments[0], Path.of(arguments[index]), Path.of(arguments[index + 1]));
        }
    }

    private static void run(String format, Path input, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        numbers(environment, format, input, out)
                .keyBy(pair -> pair.f0, Types.LONG)
                .process(new Running())
                .returns(RESULT)
                .sinkTo(Outcome.digest(out.toString(), (result, column) -> (Long) result.getField(column)));
        environment.execute("stateful-function");
    }

    private static DataStream<Tuple2<Long, Long>> numbers(
            StreamExecutionEnvironment environment, String format, Path input, Path out) {
        if (format.equals("pairs")) {
            return environment.fromSource(
                    TuplePairs.source(input, out), WatermarkStrategy.noWatermarks(), "numbers", PAIR);
        }
        return environment
                .fromSource(
                        ParquetRows.source(input, out, "key", "value"), WatermarkStrategy.noWatermarks(), "numbers")
                .map(row -> Tuple2.of(row.getLong(0), row.getLong(1)))
                .returns(PAIR);
    }

    /** One new pair per record, as it is kept nowhere. */
    static final class TuplePairs extends Pairs<Tuple2<Long, Long>> {
        TuplePairs(String out) {
            super(out, PAIR);
        }

        static FileSource<Tuple2<Long, Long>> source(Path input, Path out) {
            return FileSource.forBulkFileFormat(
                            new TuplePairs(out.toString()), new org.apache.flink.core.fs.Path(input.toUri()))
                    .build();
        }

        @Override
        protected Batch<Tuple2<Long, Long>> batch(long[] keys, long[] values) {
            return index -> Tuple2.of(keys[index], values[index]);
        }
    }

    /** What is known of a key. The heap backend keeps the object itself. */
    public static final class Seen {
        public long count;
        public long last;
        public long maximum;
    }

    /** Each record's number within its key, its difference from the one before, and the greatest so far. */
    private static final class Running
            extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Tuple4<Long, Long, Long, Long>> {
        private transient ValueState<Seen> state;

        @Override
        public void open(OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.POJO(Seen.class)));
        }

        @Override
        public void processElement(
                Tuple2<Long, Long> pair, Context context, Collector<Tuple4<Long, Long, Long, Long>> results)
                throws Exception {
            Seen seen = state.value();
            if (seen == null) {
                seen = new Seen();
            }
            long change = pair.f1 - seen.last;
            seen.count++;
            seen.last = pair.f1;
            seen.maximum = seen.count == 1 ? pair.f1 : Math.max(seen.maximum, pair.f1);
            state.update(seen);
            results.collect(Tuple4.of(pair.f0, seen.count, change, seen.maximum));
        }
    }
}
