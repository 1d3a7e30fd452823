package benchmarks;

import java.nio.file.Path;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.table.data.RowData;
import org.apache.flink.util.Collector;

/** timers as a Java DataStream. Arguments as of Windows; in pairs a record's time is taken out of the packed number. */
public final class Timers {
    private static final TypeInformation<Tuple2<Long, Long>> PAIR = Types.TUPLE(Types.LONG, Types.LONG);
    private static final TypeInformation<Tuple4<Long, Long, Long, Long>> RESULT =
            Types.TUPLE(Types.LONG, Types.LONG, Types.LONG, Types.LONG);

    public static void main(String[] arguments) throws Exception {
        for (int index = 8; index < arguments.length; index += 2) {
            run(arguments, Path.of(arguments[index]), Path.of(arguments[index + 1]));
        }
    }

    private static void run(String[] arguments, Path input, Path out) throws Exception {
        StreamExecutionEnvironment environment = Settings.environment(out);
        numbers(environment, arguments, input, out)
                .keyBy(pair -> pair.f0, Types.LONG)
                .process(new Spans(Long.parseLong(arguments[5])))
                .returns(RESULT)
                .sinkTo(Outcome.digest(out.toString(), (result, column) -> (Long) result.getField(column)));
        environment.execute("timers");
    }

    /** The key, and the number beside it: the value, or value and time in one. */
    private static DataStream<Tuple2<Long, Long>> numbers(
            StreamExecutionEnvironment environment, String[] arguments, Path input, Path out) {
        Duration delay = Duration.ofMillis(Long.parseLong(arguments[4]));
        if (arguments[0].equals("pairs")) {
            long values = Long.parseLong(arguments[2]);
            long start = Long.parseLong(arguments[3]);
            WatermarkStrategy<Tuple2<Long, Long>> watermarks =
                    WatermarkStrategy.<Tuple2<Long, Long>>forBoundedOutOfOrderness(delay)
                            .withTimestampAssigner((pair, time) -> pair.f1 / values + start);
            return environment.fromSource(
                    StatefulFunction.TuplePairs.source(input, out), watermarks, "numbers", PAIR);
        }
        WatermarkStrategy<RowData> watermarks =
                WatermarkStrategy.<RowData>forBoundedOutOfOrderness(delay)
                        .withTimestampAssigner((row, time) -> row.getLong(2));
        return environment
                .fromSource(ParquetRows.source(input, out, "key", "value", "time"), watermarks, "numbers")
                .map(row -> Tuple2.of(row.getLong(0), row.getLong(1)))
                .returns(PAIR);
    }

    /** What is known of a key. The heap backend keeps the object itself. */
    public static final class Seen {
        public long records;
        public long number;
        public long last;
    }

    /** Numbers the spans in which a key has records: its timers, each with the time since the one before. */
    private static final class Spans
            extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Tuple4<Long, Long, Long, Long>> {
        private final long size;
        private transient ValueState<Seen> state;

        Spans(long size) {
            this.size = size;
        }

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
            seen.records++;
            state.update(seen);
            long time = context.timestamp();
            context.timerService().registerEventTimeTimer(time - time % size + size - 1);
        }

        @Override
        public void onTimer(
                long time, OnTimerContext context, Collector<Tuple4<Long, Long, Long, Long>> results)
                throws Exception {
            Seen seen = state.value();
            long since = time - seen.last;
            seen.number++;
            seen.last = time;
            state.update(seen);
            results.collect(Tuple4.of(context.getCurrentKey(), time, seen.number, since));
        }
    }
}
