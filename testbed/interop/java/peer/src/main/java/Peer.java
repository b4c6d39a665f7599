import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * The Java reference implementation as a peer: one request a line on standard input, one answer a line on standard output,
 * both JSON. A request is {"do": NAME, ...}, see answer; an answer is what the command returns, or {"error": "class: text"}.
 */
public class Peer {
  private static final Namespace NAMESPACE = Namespace.of("peer");
  private static final String[] COUNTERS = {"dat.txn", "total-records", "added-records", "deleted-records", "total-data-files"};

  private Catalog catalog;

  @SuppressWarnings("unchecked")
  private Map<String, Object> answer(Map<String, Object> request) throws Exception {
    String todo = (String) request.get("do");
    if (todo.equals("open")) {
      open((Map<String, String>) request.get("properties"));
      return Map.of();
    }
    TableIdentifier id = TableIdentifier.of(NAMESPACE, (String) request.get("table"));
    switch (todo) {
      case "create":
        {
          Schema schema = SchemaParser.fromJson(Cells.json(request.get("schema")));
          PartitionSpec spec = PartitionSpecParser.fromJson(schema, Cells.json(request.get("spec")));
          catalog.createTable(id, schema, spec, Map.of("format-version", (String) request.get("version")));
          return Map.of();
        }
      case "drop":
        catalog.dropTable(id, true);
        return Map.of();
      default:
        return of(catalog.loadTable(id), todo, request);
    }
  }

  private Map<String, Object> of(Table t, String todo, Map<String, Object> request) throws Exception {
    switch (todo) {
      case "read":
        return read(t);
      case "append":
        Writes.append(t, (List<?>) request.get("rows"), (String) request.get("txn"));
        break;
      case "eqdelete":
        Writes.equalityDelete(t, (String) request.get("city"));
        break;
      case "posdelete":
        Writes.positionDelete(t, Long.parseLong((String) request.get("id")));
        break;
      case "dvdelete":
        Writes.deletionVector(t, Long.parseLong((String) request.get("id")));
        break;
      case "compact":
        Writes.compact(t);
        break;
      case "expire":
        t.expireSnapshots().expireOlderThan(System.currentTimeMillis()).retainLast(1).commit();
        break;
      case "race":
        return Map.of("lost", Writes.race(t, ((Number) request.get("n")).intValue(), ((Number) request.get("base")).longValue()));
      case "parts":
        return Map.of("bad", Checks.parts(t));
      case "filters":
        return Map.of("bad", Checks.filters(t));
      default:
        throw new IllegalArgumentException(todo);
    }
    return Map.of();
  }

  private void open(Map<String, String> properties) {
    if (properties.get("type").equals("rest")) {
      RESTCatalog c = new RESTCatalog();
      c.initialize("default", properties);
      catalog = c;
      return;
    }
    JdbcCatalog c = new JdbcCatalog();
    c.setConf(new Configuration());
    c.initialize("default", properties);
    catalog = c;
  }

  private static Map<String, Object> read(Table t) throws Exception {
    List<Object> rows = new ArrayList<>();
    try (CloseableIterable<Record> it = IcebergGenerics.read(t).build()) {
      for (Record r : it) rows.add(Cells.row(t.schema().asStruct(), r));
    }
    List<Object> snapshots = new ArrayList<>();
    for (Snapshot s : t.snapshots()) {
      Map<String, Object> m = new TreeMap<>();
      m.put("id", "" + s.snapshotId());
      m.put("seq", "" + s.sequenceNumber());
      m.put("op", s.operation());
      for (String k : COUNTERS) if (s.summary().containsKey(k)) m.put(k, s.summary().get(k));
      snapshots.add(m);
    }
    return Map.of(
        "rows", rows,
        "schema", Cells.JSON.readTree(SchemaParser.toJson(t.schema())),
        "spec", Cells.JSON.readTree(PartitionSpecParser.toJson(t.spec())),
        "version", "" + ((HasTableOperations) t).operations().current().formatVersion(),
        "snapshots", snapshots);
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Peer peer = new Peer();
    for (String line; (line = in.readLine()) != null; ) {
      Map<String, Object> answer;
      try {
        @SuppressWarnings("unchecked")
        Map<String, Object> request = Cells.JSON.readValue(line, Map.class);
        answer = peer.answer(request);
      } catch (Exception e) {
        String text = e.toString();
        for (Throwable c = e.getCause(); c != null; c = c.getCause()) text += ", caused by " + c;
        text = text.replace('\n', ' ');
        answer = Map.of("error", text.substring(0, Math.min(600, text.length())));
      }
      out.println(Cells.json(answer));
    }
    System.exit(0);
  }
}
