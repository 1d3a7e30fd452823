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
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** stateful-function as a Java DataStream. Arguments: pairs of a folder of input and a folder for the outcome. */
public final class StatefulFunction {
    private static final TypeInformation<Tuple2<Long, Long>> PAIR = Types.TUPLE(Types.LONG, Types.LONG);
    private static final TypeInformation<Tuple4<Long, Long, Long, Long>> RESULT =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        for (int index = 0; index < arguments.length; index += 2) {
            run(Path.of(arguments[index]), Path.of(arguments[index + 1]));
        }
    }

    private static void run(Path input, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        FileSource<Tuple2<Long, Long>> source =
                FileSource.forBulkFileFormat(
                                new TuplePairs(out.toString()), new org.apache.flink.core.fs.Path(input.toUri()))
                        .build();
        environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "numbers", PAIR)
                .keyBy(pair -> pair.f0, Types.LONG)
                .process(new Running())
                .returns(RESULT)
                .sinkTo(Outcome.digest(out.toString(), (result, column) -> (Long) result.getField(column)));
        environment.execute("stateful-function");
    }

    /** One new pair per record, as it is kept nowhere. */
    static final class TuplePairs extends Pairs<Tuple2<Long, Long>> {
        TuplePairs(String out) {
            super(out, PAIR);
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
