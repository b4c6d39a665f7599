"""PyIceberg as a peer: one request a line on standard input, one answer a line on standard output, both JSON.

A request is {"do": NAME, ...}, see COMMANDS; an answer is what the command returns, or {"error": "Class: text"}. Cells
are in the canonical form of cell.go: numbers and times are the stored integer as text, float and double are hexadecimal
bits, binary and fixed are hexadecimal, a map is a sorted list of pairs.
"""
import collections, datetime, decimal, json, logging, random, struct, sys, time, uuid, warnings

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as T
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo, IsNaN, IsNull
from pyiceberg.expressions import literals as L
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

warnings.filterwarnings("ignore")
NAMESPACE = "peer"
COUNTERS = ["dat.txn", "total-records", "added-records", "deleted-records", "total-data-files"]
catalog = None


def cell(t, v):
    """One Arrow scalar in canonical form; t is the Iceberg type."""
    if not v.is_valid:
        return None
    if isinstance(t, T.ListType):
        return [cell(t.element_type, e) for e in v.values] if v.values is not None else None
    if isinstance(t, T.MapType):
        pairs = [[cell(t.key_type, e["key"]), cell(t.value_type, e["value"])] for e in v.values]
        return sorted(pairs, key=lambda p: json.dumps(p, ensure_ascii=False))
    if isinstance(t, T.StructType):
        return {f.name: cell(f.field_type, v[f.name]) for f in t.fields}
    if isinstance(t, T.BooleanType):
        return v.as_py()
    if isinstance(t, T.FloatType):
        return struct.pack(">f", v.as_py()).hex()
    if isinstance(t, T.DoubleType):
        return struct.pack(">d", v.as_py()).hex()
    if isinstance(t, (T.DateType, T.TimeType, T.TimestampType, T.TimestamptzType, T.TimestampNanoType, T.TimestamptzNanoType)):
        if v.type != schema_to_pyarrow(t):
            raise TypeError(f"{t}: arrow {v.type}")
        return str(v.value)
    if isinstance(t, T.UUIDType):
        p = v.as_py()
        return str(p if isinstance(p, uuid.UUID) else uuid.UUID(bytes=p))
    if isinstance(t, (T.FixedType, T.BinaryType)):
        return v.as_py().hex()
    if isinstance(t, T.DecimalType):
        return format(v.as_py(), "f")
    return str(v.as_py())


def plain(t, v):
    """The Python value that PyIceberg keeps for a canonical cell (partition values, literals)."""
    if v is None or isinstance(v, bool):
        return v
    if isinstance(t, T.FloatType):
        return struct.unpack(">f", bytes.fromhex(v))[0]
    if isinstance(t, T.DoubleType):
        return struct.unpack(">d", bytes.fromhex(v))[0]
    if isinstance(t, T.StringType):
        return v
    if isinstance(t, T.UUIDType):
        return uuid.UUID(v)
    if isinstance(t, (T.FixedType, T.BinaryType)):
        return bytes.fromhex(v)
    if isinstance(t, T.DecimalType):
        return decimal.Decimal(v)
    return int(v)


def literal(t, v):
    p = plain(t, v)
    if isinstance(t, T.DateType):
        return L.DateLiteral(p)
    if isinstance(t, T.TimeType):
        return L.TimeLiteral(p)
    if isinstance(t, (T.TimestampType, T.TimestamptzType)):
        return L.TimestampLiteral(p)
    if isinstance(t, (T.TimestampNanoType, T.TimestamptzNanoType)):
        return None  # 0.12.0 has no literal for it
    if isinstance(t, T.FixedType):
        return L.FixedLiteral(p)
    return L.literal(p)


def arrow_cell(pt, v):
    """What a pyarrow builder takes for a canonical cell; pt is the Arrow type."""
    if v is None or isinstance(v, bool):
        return v
    if pa.types.is_map(pt):
        return [(arrow_cell(pt.key_type, k), arrow_cell(pt.item_type, x)) for k, x in v]
    if pa.types.is_list(pt) or pa.types.is_large_list(pt):
        return [arrow_cell(pt.value_type, x) for x in v]
    if pa.types.is_struct(pt):
        return {pt.field(i).name: arrow_cell(pt.field(i).type, v[pt.field(i).name]) for i in range(pt.num_fields)}
    if isinstance(pt, pa.UuidType):
        return uuid.UUID(v).bytes
    if pa.types.is_float32(pt):
        return struct.unpack(">f", bytes.fromhex(v))[0]
    if pa.types.is_float64(pt):
        return struct.unpack(">d", bytes.fromhex(v))[0]
    if pa.types.is_decimal(pt):
        return decimal.Decimal(v)
    if pa.types.is_binary(pt) or pa.types.is_large_binary(pt) or pa.types.is_fixed_size_binary(pt):
        return bytes.fromhex(v)
    if pa.types.is_string(pt) or pa.types.is_large_string(pt):
        return v
    return int(v)


def storage(t):
    """The type that pa.array can build: it makes no extension type inside a list, map or struct."""
    if isinstance(t, pa.UuidType):
        return t.storage_type
    if pa.types.is_struct(t):
        return pa.struct([f.with_type(storage(f.type)) for f in t])
    return t


def to_arrow(schema, rows):
    wanted = schema_to_pyarrow(schema, include_field_ids=False)

    def column(f):
        a = pa.array([arrow_cell(f.type, r.get(f.name)) for r in rows], storage(f.type))
        if a.type == f.type:
            return a
        return pa.ExtensionArray.from_storage(f.type, a) if isinstance(f.type, pa.UuidType) else a.cast(f.type)

    return pa.Table.from_arrays([column(f) for f in wanted], schema=wanted)


def load(request):
    return catalog.load_table((NAMESPACE, request["table"]))


def rows_of(table, scan):
    arrow = scan.to_arrow()
    columns = {f.name: (f.field_type, arrow.column(f.name)) for f in table.schema().fields if f.name in arrow.column_names}
    return [{n: cell(t, c[i]) for n, (t, c) in columns.items()} for i in range(arrow.num_rows)]


def do_open(request):
    global catalog
    catalog = load_catalog("default", **request["properties"])
    return {}


def do_read(request):
    table = load(request)
    snapshots = []
    for s in table.snapshots():
        r = {"id": str(s.snapshot_id), "seq": str(s.sequence_number or 0), "op": s.summary.operation.value}
        r.update({k: s.summary[k] for k in COUNTERS if s.summary[k] is not None})
        snapshots.append(r)
    return {
        "rows": rows_of(table, table.scan()),
        "schema": json.loads(table.schema().model_dump_json()),
        "spec": json.loads(table.spec().model_dump_json()),
        "version": str(table.metadata.format_version),
        "snapshots": snapshots,
    }


def do_create(request):
    schema = Schema.model_validate(request["schema"])
    spec = PartitionSpec.model_validate(request["spec"])
    catalog.create_table((NAMESPACE, request["table"]), schema, partition_spec=spec, properties={"format-version": request["version"]})
    return {}


def do_drop(request):
    catalog.drop_table((NAMESPACE, request["table"]))
    return {}


def do_append(request):
    table = load(request)
    table.append(to_arrow(table.schema(), request["rows"]), snapshot_properties={"dat.txn": request["txn"]})
    return {}


def do_delete(request):
    """PyIceberg's copy-on-write delete."""
    load(request).delete(EqualTo("city", request["city"]))
    return {}


def do_addcolumn(request):
    with load(request).update_schema() as update:
        update.add_column(request["column"], T.StringType())
    return {}


def do_compact(request):
    """All live rows into new files. 0.12.0 has no rewrite; this is what it can do: a delete and an append at once."""
    table = load(request)
    table.overwrite(table.scan().to_arrow())
    return {}


def do_expire(request):
    load(request).maintenance.expire_snapshots().older_than(datetime.datetime.now()).commit()
    return {}


class Retries(logging.Handler):
    """counts what PyIceberg says when it does a refused commit again"""

    seen = 0

    def emit(self, record):
        if "retrying" in record.getMessage():
            self.seen += 1


retries = Retries()
logging.getLogger("pyiceberg").addHandler(retries)


def do_race(request):
    before, lost = retries.seen, 0
    for i in range(request["n"]):
        number = request["base"] + i
        for _ in range(200):
            table = load(request)
            try:
                table.append(to_arrow(table.schema(), [{"id": str(number), "city": "py", "n": str(i)}]), snapshot_properties={"dat.txn": f"py-{number}"})
                break
            except CommitFailedException:
                lost += 1
                time.sleep(random.random() * 0.03)
        else:
            raise RuntimeError(f"row {number}: 200 commits refused")
        time.sleep(random.random() * 0.02)
    return {"lost": lost + retries.seen - before}


def filter_of(column, t, v):
    if v is None:
        return IsNull(column)
    if isinstance(t, (T.FloatType, T.DoubleType)) and plain(t, v) != plain(t, v):
        return IsNaN(column)
    lit = literal(t, v)
    return EqualTo(column, lit) if lit is not None else None


def unfound(table, field, every):
    """One filtered scan per value of a column: file bounds, row group statistics and partitions may hide no row."""
    bad = []
    for k, n in collections.Counter(json.dumps(r[field.name]) for r in every).items():
        v = json.loads(k)
        e = filter_of(field.name, field.field_type, v)
        if e is None:
            continue
        try:
            got = len([r for r in rows_of(table, table.scan(row_filter=e)) if r[field.name] == v])
        except Exception as x:
            got = f"{type(x).__name__}: {str(x)[:60]}"
        if got != n:
            bad.append(f"{field.name} = {k}: {got} of {n}")
    return bad


def do_filters(request):
    table = load(request)
    every = rows_of(table, table.scan())
    return {"bad": [b for f in table.schema().fields if f.field_type.is_primitive for b in unfound(table, f, every)]}


def do_parts(request):
    """The partition value of every file against PyIceberg's own transform of the rows in it."""
    table = load(request)
    t = table.schema().find_type("v")
    at, bad = schema_to_pyarrow(t), []
    for task in table.scan().plan_files():
        spec = table.specs()[task.file.spec_id]
        data = pq.read_table(table.io.new_input(task.file.file_path).open()).column("v")
        for s in data:
            v = cell(t, pa.scalar(s.as_py(), at) if s.type != at and not pa.types.is_temporal(at) else s)
            for pos, f in enumerate(spec.fields):
                got, want = task.file.partition[pos], f.transform.transform(t)(plain(t, v))
                if isinstance(got, bytes) and isinstance(want, uuid.UUID):
                    got = uuid.UUID(bytes=got)
                if got != want and not (got != got and want != want):
                    bad.append(f"{f.transform} of {v}: the file says {got!r}, PyIceberg {want!r}")
    return {"bad": bad}


COMMANDS = {name[3:]: f for name, f in list(globals().items()) if name.startswith("do_")}


def main():
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = COMMANDS[request["do"]](request)
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".replace("\n", " ")[:600]}
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
