import java.io.IOException;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.*;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.*;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.*;

/** What the Java implementation writes: rows, and each way to delete them without rewriting a file. */
final class Writes {
  private Writes() {}

  static List<DataFile> write(Table t, List<Record> rows) throws IOException {
    OutputFileFactory files = OutputFileFactory.builderFor(t, 1, System.nanoTime()).format(FileFormat.PARQUET).build();
    FileWriterFactory<Record> factory = new GenericFileWriterFactory.Builder(t).dataFileFormat(FileFormat.PARQUET).dataSchema(t.schema()).build();
    FanoutDataWriter<Record> w = new FanoutDataWriter<>(factory, files, t.io(), 128 << 20);
    PartitionKey key = new PartitionKey(t.spec(), t.schema());
    InternalRecordWrapper wrapper = new InternalRecordWrapper(t.schema().asStruct());
    try (w) {
      for (Record r : rows) {
        key.partition(wrapper.wrap(r));
        w.write(r, t.spec(), key.copy());
      }
    }
    return w.result().dataFiles();
  }

  static void append(Table t, List<?> rows, String txn) throws IOException {
    List<Record> records = new ArrayList<>();
    for (Object r : rows) records.add(Cells.record(t.schema().asStruct(), (Map<?, ?>) r));
    AppendFiles append = t.newAppend().set("dat.txn", txn);
    write(t, records).forEach(append::appendFile);
    append.commit();
  }

  static int race(Table t, int n, long base) throws Exception {
    Random random = new Random();
    int lost = 0;
    for (int i = 0; i < n; i++) {
      Record r = Cells.record(t.schema().asStruct(), Map.of("id", "" + (base + i), "city", "java", "n", "" + i));
      List<DataFile> files = write(t, List.of(r));
      for (; ; ) {
        try {
          AppendFiles append = t.newAppend().set("dat.txn", "java-" + (base + i));
          files.forEach(append::appendFile);
          append.commit();
          break;
        } catch (CommitFailedException e) {
          lost++;
        }
      }
      Thread.sleep(random.nextInt(100));
    }
    return lost;
  }

  private static EncryptedOutputFile file(Table t, String prefix) {
    OutputFile o = t.io().newOutputFile(t.location() + "/data/" + prefix + UUID.randomUUID() + ".parquet");
    return EncryptedFiles.encryptedOutput(o, EncryptionKeyMetadata.EMPTY);
  }

  /** An equality delete file, as Flink writes it. */
  static void equalityDelete(Table t, String city) throws IOException {
    Schema eq = t.schema().select("city");
    EqualityDeleteWriter<Record> w = new GenericFileWriterFactory.Builder(t).deleteFileFormat(FileFormat.PARQUET)
        .equalityFieldIds(new int[] {t.schema().findField("city").fieldId()}).equalityDeleteRowSchema(eq).build()
        .newEqualityDeleteWriter(file(t, "eq-"), t.spec(), null);
    try (w) {
      Record r = GenericRecord.create(eq);
      r.setField("city", city);
      w.write(r);
    }
    t.newRowDelta().addDeletes(w.toDeleteFile()).commit();
  }

  interface Hit {
    void at(FileScanTask task, long position) throws IOException;
  }

  private static void find(Table t, long id, Hit hit) throws IOException {
    try (CloseableIterable<FileScanTask> files = t.newScan().planFiles()) {
      for (FileScanTask task : files) {
        long position = 0;
        try (CloseableIterable<Record> rows = Checks.rows(t, task.file())) {
          for (Record r : rows) {
            if (r.getField("id").equals(id)) hit.at(task, position);
            position++;
          }
        }
      }
    }
  }

  /** A position delete file (format version 2), as Spark writes it. */
  static void positionDelete(Table t, long id) throws IOException {
    PositionDeleteWriter<Record> w = new GenericFileWriterFactory.Builder(t).deleteFileFormat(FileFormat.PARQUET).build().newPositionDeleteWriter(file(t, "pos-"), t.spec(), null);
    try (w) {
      find(t, id, (task, position) -> w.write(PositionDelete.<Record>create().set(task.file().location(), position)));
    }
    t.newRowDelta().addDeletes(w.toDeleteFile()).commit();
  }

  /** A deletion vector (format version 3). */
  static void deletionVector(Table t, long id) throws IOException {
    BaseDVFileWriter w = new BaseDVFileWriter(OutputFileFactory.builderFor(t, 1, 1).format(FileFormat.PUFFIN).build(), p -> null);
    try (w) {
      find(t, id, (task, position) -> w.delete(task.file().location(), position, t.spec(), task.file().partition()));
    }
    RowDelta d = t.newRowDelta();
    w.result().deleteFiles().forEach(d::addDeletes);
    d.commit();
  }

  /** New files from all live rows, as a compaction job writes them. */
  static void compact(Table t) throws IOException {
    List<Record> rows = new ArrayList<>();
    Set<DataFile> old = new HashSet<>();
    try (CloseableIterable<Record> it = IcebergGenerics.read(t).build(); CloseableIterable<FileScanTask> files = t.newScan().planFiles()) {
      it.forEach(r -> rows.add(r.copy()));
      files.forEach(f -> old.add(f.file()));
    }
    t.newRewrite().validateFromSnapshot(t.currentSnapshot().snapshotId()).rewriteFiles(old, Set.copyOf(write(t, rows))).commit();
  }
}
