import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.time.*;
import java.util.*;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DateTimeUtil;

/**
 * Canonical cells, as in cell.go: numbers and times are the stored integer as text, float and double are hexadecimal bits,
 * binary and fixed are hexadecimal, a map is a sorted list of pairs.
 */
final class Cells {
  private Cells() {}

  static final ObjectMapper JSON = new ObjectMapper();

  static String json(Object o) {
    try {
      return JSON.writeValueAsString(o);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  static Map<String, Object> row(Types.StructType st, Record r) {
    Map<String, Object> m = new TreeMap<>();
    for (Types.NestedField f : st.fields()) m.put(f.name(), cell(f.type(), r.getField(f.name())));
    return m;
  }

  static Object cell(Type t, Object v) {
    if (v == null) return null;
    switch (t.typeId()) {
      case BOOLEAN:
        return v;
      case FLOAT:
        return String.format("%08x", Float.floatToRawIntBits((Float) v));
      case DOUBLE:
        return String.format("%016x", Double.doubleToRawLongBits((Double) v));
      case DATE:
        return "" + ((LocalDate) v).toEpochDay();
      case TIME:
        return "" + ((LocalTime) v).toNanoOfDay() / 1000;
      case TIMESTAMP:
        return "" + (v instanceof OffsetDateTime ? DateTimeUtil.microsFromTimestamptz((OffsetDateTime) v) : DateTimeUtil.microsFromTimestamp((LocalDateTime) v));
      case TIMESTAMP_NANO:
        return "" + (v instanceof OffsetDateTime ? DateTimeUtil.nanosFromTimestamptz((OffsetDateTime) v) : DateTimeUtil.nanosFromTimestamp((LocalDateTime) v));
      case FIXED:
        return HexFormat.of().formatHex((byte[]) v);
      case BINARY:
        return hex((ByteBuffer) v);
      case DECIMAL:
        return ((BigDecimal) v).toPlainString();
      case LIST:
        {
          List<Object> out = new ArrayList<>();
          for (Object e : (List<?>) v) out.add(cell(t.asListType().elementType(), e));
          return out;
        }
      case MAP:
        {
          List<Object> out = new ArrayList<>();
          ((Map<?, ?>) v).forEach((k, e) -> out.add(Arrays.asList(cell(t.asMapType().keyType(), k), cell(t.asMapType().valueType(), e))));
          out.sort(Comparator.comparing(Cells::json));
          return out;
        }
      case STRUCT:
        return row(t.asStructType(), (Record) v);
      default:
        return v.toString();
    }
  }

  private static String hex(ByteBuffer b) {
    byte[] bytes = new byte[b.remaining()];
    b.duplicate().get(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  static Record record(Types.StructType st, Map<?, ?> m) {
    GenericRecord r = GenericRecord.create(st);
    for (Types.NestedField f : st.fields()) r.setField(f.name(), value(f.type(), m.get(f.name())));
    return r;
  }

  /** What the generic writer takes for a canonical cell. */
  static Object value(Type t, Object v) {
    if (v == null) return null;
    switch (t.typeId()) {
      case BOOLEAN:
        return v;
      case INTEGER:
        return Integer.valueOf((String) v);
      case LONG:
        return Long.valueOf((String) v);
      case FLOAT:
        return Float.intBitsToFloat(Integer.parseUnsignedInt((String) v, 16));
      case DOUBLE:
        return Double.longBitsToDouble(Long.parseUnsignedLong((String) v, 16));
      case DATE:
        return LocalDate.ofEpochDay(Long.parseLong((String) v));
      case TIME:
        return LocalTime.ofNanoOfDay(Long.parseLong((String) v) * 1000);
      case TIMESTAMP:
        {
          LocalDateTime at = DateTimeUtil.timestampFromMicros(Long.parseLong((String) v));
          return ((Types.TimestampType) t).shouldAdjustToUTC() ? at.atOffset(ZoneOffset.UTC) : at;
        }
      case TIMESTAMP_NANO:
        {
          LocalDateTime at = DateTimeUtil.timestampFromNanos(Long.parseLong((String) v));
          return ((Types.TimestampNanoType) t).shouldAdjustToUTC() ? at.atOffset(ZoneOffset.UTC) : at;
        }
      case UUID:
        return UUID.fromString((String) v);
      case FIXED:
        return HexFormat.of().parseHex((String) v);
      case BINARY:
        return ByteBuffer.wrap(HexFormat.of().parseHex((String) v));
      case DECIMAL:
        return new BigDecimal((String) v);
      case LIST:
        {
          List<Object> out = new ArrayList<>();
          for (Object e : (List<?>) v) out.add(value(t.asListType().elementType(), e));
          return out;
        }
      case MAP:
        {
          Map<Object, Object> out = new LinkedHashMap<>();
          for (Object p : (List<?>) v) out.put(value(t.asMapType().keyType(), ((List<?>) p).get(0)), value(t.asMapType().valueType(), ((List<?>) p).get(1)));
          return out;
        }
      case STRUCT:
        return record(t.asStructType(), (Map<?, ?>) v);
      default:
        return v;
    }
  }

  /** The value that a transform and an expression take, from what the generic reader returns. */
  static Object internal(Type t, Object v) {
    if (v == null) return null;
    switch (t.typeId()) {
      case DATE:
        return (int) ((LocalDate) v).toEpochDay();
      case TIME:
      case TIMESTAMP:
      case TIMESTAMP_NANO:
        return Long.valueOf((String) cell(t, v));
      case FIXED:
        return ByteBuffer.wrap((byte[]) v);
      default:
        return v;
    }
  }
}
