package benchmarks;

import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.annotation.DataTypeHint;

/** q14's function: how often a letter occurs in a text. */
public class CountChar extends ScalarFunction {
    public long eval(
            @DataTypeHint(value = "STRING", bridgedTo = StringData.class) StringData text,
            @DataTypeHint(value = "STRING", bridgedTo = StringData.class) StringData letter) {
        if (text == null) {
            return 0;
        }
        byte wanted = letter.toBytes()[0];
        long count = 0;
        for (byte each : text.toBytes()) {
            if (each == wanted) {
                count++;
            }
        }
        return count;
    }
}
