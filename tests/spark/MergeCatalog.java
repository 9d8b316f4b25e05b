// A catalog of tables that have MERGE by Spark's public interfaces: Spark reads all rows of a table,
// and writes those that replace them. Tables are in the driver's memory; with the option `folder`
// each is a file there, which a commit replaces as a whole, and with `pause` it takes so many
// milliseconds before and after that. Spark's own compiler of Java (Janino) compiles it, so that a
// test needs no other; it knows no lambdas and no bridges.
package tests;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class MergeCatalog implements TableCatalog {
    private String name;
    private Map tables;
    private String folder;
    private long pause;

    // The tables are the process's, as each session has a catalog, and a class, of its own: a query
    // that runs has another session than the program that began it.
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.folder = options.get("folder");
        this.pause = options.getLong("pause", 0L);
        synchronized (System.getProperties()) {
            Object known = System.getProperties().get("tests.MergeCatalog");
            if (known == null) {
                known = new HashMap();
                System.getProperties().put("tests.MergeCatalog", known);
            }
            tables = (Map) known;
        }
    }

    public String name() { return name; }

    public Identifier[] listTables(String[] namespace) {
        return (Identifier[]) new ArrayList(tables.keySet()).toArray(new Identifier[0]);
    }

    public Table loadTable(Identifier id) throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
        File file = folder == null ? null : new File(folder, id.name());
        Table found = file == null || !file.exists() ? (Table) tables.get(id) : FileTable.read(file, pause);
        if (found == null) throw new org.apache.spark.sql.catalyst.analysis.NoSuchTableException(id);
        return found;
    }

    public Table createTable(Identifier id, TableInfo info) {
        if (folder != null) {
            FileTable made = new FileTable(new File(folder, id.name()), info.schema(), pause);
            made.replace(new ArrayList());
            return made;
        }
        Table made = new MemoryTable(id.name(), info.schema());
        tables.put(id, made);
        return made;
    }

    public Table alterTable(Identifier id, TableChange[] changes) {
        throw new UnsupportedOperationException("alter");
    }

    public boolean dropTable(Identifier id) {
        if (folder != null) return new File(folder, id.name()).delete();
        return tables.remove(id) != null;
    }

    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("rename");
    }

    public static class MemoryTable implements Table, SupportsRead, SupportsRowLevelOperations {
        private final String name;
        private final StructType schema;
        List rows = new ArrayList();

        MemoryTable(String name, StructType schema) {
            this.name = name;
            this.schema = schema;
        }

        void replace(List rows) { this.rows = rows; }

        public String name() { return name; }

        public StructType schema() { return schema; }

        public Set capabilities() {
            Set found = new HashSet();
            found.add(TableCapability.BATCH_READ);
            found.add(TableCapability.BATCH_WRITE);
            return found;
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return new WholeScan(schema, (InternalRow[]) rows.toArray(new InternalRow[0]));
        }

        public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
            return new Replacing(this, info.command());
        }
    }

    // A table as it was when it was read; what replaces it is whole in the file, or not at all.
    public static class FileTable extends MemoryTable {
        private final File file;
        private final long pause;

        FileTable(File file, StructType schema, long pause) {
            super(file.getName(), schema);
            this.file = file;
            this.pause = pause;
        }

        static FileTable read(File file, long pause) {
            try {
                ObjectInputStream in = new ObjectInputStream(new FileInputStream(file));
                try {
                    StructType schema = (StructType) DataType.fromJson((String) in.readObject());
                    FileTable found = new FileTable(file, schema, pause);
                    found.rows = (List) in.readObject();
                    return found;
                } finally {
                    in.close();
                }
            } catch (IOException error) {
                throw new RuntimeException(error);
            } catch (ClassNotFoundException error) {
                throw new RuntimeException(error);
            }
        }

        void replace(List rows) {
            File made = new File(file.getParentFile(), "." + file.getName() + ".new");
            try {
                FileOutputStream bytes = new FileOutputStream(made);
                ObjectOutputStream out = new ObjectOutputStream(bytes);
                out.writeObject(schema().json());
                out.writeObject(rows);
                out.flush();
                bytes.getFD().sync();
                out.close();
                Thread.sleep(pause);
                Files.move(made.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE);
                Thread.sleep(pause);
            } catch (IOException error) {
                throw new RuntimeException(error);
            } catch (InterruptedException error) {
                throw new RuntimeException(error);
            }
            this.rows = rows;
        }
    }

    public static class Replacing implements RowLevelOperationBuilder, RowLevelOperation {
        private final MemoryTable table;
        private final RowLevelOperation.Command command;

        Replacing(MemoryTable table, RowLevelOperation.Command command) {
            this.table = table;
            this.command = command;
        }

        public RowLevelOperation build() { return this; }

        public RowLevelOperation.Command command() { return command; }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return table.newScanBuilder(options);
        }

        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new WholeWrite(table); }
    }

    public static class WholeScan
            implements ScanBuilder, Scan, Batch, InputPartition, PartitionReaderFactory {
        private final StructType schema;
        private final InternalRow[] rows;

        WholeScan(StructType schema, InternalRow[] rows) {
            this.schema = schema;
            this.rows = rows;
        }

        public Scan build() { return this; }

        public StructType readSchema() { return schema; }

        public Batch toBatch() { return this; }

        public InputPartition[] planInputPartitions() { return new InputPartition[] {this}; }

        public PartitionReaderFactory createReaderFactory() { return this; }

        public PartitionReader createReader(InputPartition part) { return new RowReader(rows); }
    }

    public static class RowReader implements PartitionReader {
        private final InternalRow[] rows;
        private int at = -1;

        RowReader(InternalRow[] rows) { this.rows = rows; }

        public boolean next() { return ++at < rows.length; }

        public Object get() { return rows[at]; }

        public void close() {}
    }

    public static class WholeWrite implements WriteBuilder, BatchWrite {
        private final MemoryTable table;

        WholeWrite(MemoryTable table) { this.table = table; }

        public BatchWrite buildForBatch() { return this; }

        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            return new RowWriters();
        }

        public void commit(WriterCommitMessage[] messages) {
            List all = new ArrayList();
            for (int i = 0; i < messages.length; i++) all.addAll((List) ((Supplier) messages[i]).get());
            table.replace(all);
        }

        public void abort(WriterCommitMessage[] messages) {}
    }

    public static class RowWriters implements DataWriterFactory {
        public DataWriter createWriter(int partition, long task) { return new RowWriter(); }
    }

    public static class RowWriter implements DataWriter {
        private final ArrayList rows = new ArrayList();

        public void write(Object row) { rows.add(((InternalRow) row).copy()); }

        public WriterCommitMessage commit() { return new Written(rows); }

        public void abort() {}

        public void close() {}
    }

    // A `Supplier`, as the class of an executor is another one than that of the driver.
    public static class Written implements WriterCommitMessage, Supplier {
        private final ArrayList rows;

        Written(ArrayList rows) { this.rows = rows; }

        public Object get() { return rows; }
    }
}
