import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DateTimeUtil;

/** What the Java implementation makes of partition values, bounds and statistics that others wrote. */
final class Checks {
  private Checks() {}

  static CloseableIterable<Record> rows(Table t, DataFile f) {
    return Parquet.read(t.io().newInputFile(f.location())).project(t.schema()).createReaderFunc(s -> GenericParquetReaders.buildReader(t.schema(), s)).build();
  }

  /** The partition value of every file against Java's own transform of the rows in it. */
  @SuppressWarnings("unchecked")
  static List<String> parts(Table t) throws IOException {
    Type type = t.schema().findField("v").type();
    List<String> bad = new ArrayList<>();
    try (CloseableIterable<FileScanTask> files = t.newScan().planFiles()) {
      for (FileScanTask task : files) {
        PartitionField f = t.specs().get(task.file().specId()).fields().get(0);
        var transform = ((Transform<Object, Object>) f.transform()).bind(type);
        Object part = task.file().partition().get(0, Object.class);
        try (CloseableIterable<Record> rows = rows(t, task.file())) {
          for (Record r : rows) {
            Object v = Cells.internal(type, r.getField("v"));
            Object want = v == null ? null : transform.apply(v);
            if (!same(part, want)) bad.add(f.transform() + " of " + Cells.json(Cells.cell(type, r.getField("v"))) + ": the file says " + part + ", Java " + want);
          }
        }
      }
    }
    return bad;
  }

  private static boolean same(Object a, Object b) {
    if (a instanceof CharSequence && b instanceof CharSequence) return a.toString().equals(b.toString());
    if (a instanceof byte[]) a = ByteBuffer.wrap((byte[]) a);
    return Objects.equals(a, b);
  }

  /** One filtered scan per primitive column and value: bounds, statistics and partitions may hide no row. */
  static List<String> filters(Table t) throws IOException {
    List<String> bad = new ArrayList<>();
    for (Types.NestedField f : t.schema().columns()) {
      if (!f.type().isPrimitiveType()) continue;
      Map<String, Integer> count = new TreeMap<>();
      Map<String, Object> value = new HashMap<>();
      try (CloseableIterable<Record> rows = IcebergGenerics.read(t).build()) {
        for (Record r : rows) {
          String k = Cells.json(Cells.cell(f.type(), r.getField(f.name())));
          count.merge(k, 1, Integer::sum);
          value.put(k, Cells.internal(f.type(), r.getField(f.name())));
        }
      }
      for (String k : count.keySet()) {
        String got = found(t, f, k, value.get(k));
        if (!got.equals("" + count.get(k))) bad.add(f.name() + " = " + k + ": " + got + " of " + count.get(k));
      }
    }
    return bad;
  }

  private static String found(Table t, Types.NestedField f, String k, Object v) throws IOException {
    int n = 0;
    try (CloseableIterable<Record> rows = IcebergGenerics.read(t).where(equal(f.name(), f.type(), v)).build()) {
      for (Record r : rows) if (Cells.json(Cells.cell(f.type(), r.getField(f.name()))).equals(k)) n++;
    } catch (RuntimeException x) {
      return x.toString();
    }
    return "" + n;
  }

  private static Expression equal(String column, Type type, Object v) {
    if (v == null) return Expressions.isNull(column);
    if (v.equals(Float.NaN) || v.equals(Double.NaN)) return Expressions.isNaN(column);
    if (type.typeId() == Type.TypeID.TIMESTAMP_NANO) {
      LocalDateTime l = DateTimeUtil.timestampFromNanos((Long) v);
      return Expressions.equal(column, ((Types.TimestampNanoType) type).shouldAdjustToUTC() ? l.atOffset(ZoneOffset.UTC).toString() : l.toString());
    }
    return Expressions.equal(column, v);
  }
}
