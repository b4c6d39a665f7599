INSERT INTO ns.t (a,b) VALUES ($1,$2),($3,$4)
INSERT INTO lake.erp.orders (a,b) VALUES (?,?)
INSERT INTO ns.t (a,b) VALUES (1,'x''y'),(-2.5,NULL),(TRUE, DATE '2026-01-02')
INSERT INTO ns.t VALUES (X'00ff', TIMESTAMPTZ '2026-01-01 00:00:00+00', UUID '018f2e3c-0000-7000-8000-000000000001', DECIMAL '1.50', TIME '01:02:03', 1e-3, .5)
SELECT a,b FROM ns.t WHERE a = $1 AND (b LIKE 'x%' OR b IS NULL) ORDER BY a LIMIT 10 OFFSET 5
SELECT * FROM ns.t WHERE a BETWEEN 1 AND 2 AND b IN ($1,$2) AND NOT c
SELECT count(*) FROM ns.t FOR SYSTEM_VERSION AS OF 123
SELECT count(*), sum(a), min(b) AS low, max(b) high, avg(a), count(DISTINCT c) FROM t FOR VERSION AS OF -5 GROUP BY d, e ORDER BY count(*) DESC NULLS LAST, 1 ASC
SELECT a FROM t FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00'
SELECT a FROM t AS x FOR TIMESTAMP AS OF $1 WHERE x.a = 1
SELECT "Col x" FROM "Ns"."T" WHERE ts >= TIMESTAMPTZ '2026-01-01 00:00:00+00'
SELECT t.a, ns.t.b, st.x FROM ns.t WHERE t.st.x <> 3 AND ns.t.a != 4
DELETE FROM ns.t WHERE a < $1
DELETE FROM ns.t
UPDATE ns.t SET a = a + 1, b = $1 WHERE c = $2
UPDATE ns.t AS u SET a = - a * 2 - - 3 / (b - 1), s = s || 'x' || s, c = -(-5) WHERE u.c NOT IN (1, NULL) OR NOT NOT d
SELECT a FROM ns.t WHERE a = :id OR b = @name
SELECT a FROM t WHERE (a = 1) IS NOT TRUE AND b IS FALSE AND (c AND (d AND e)) AND s NOT LIKE 'a!_%' ESCAPE '!' AND a NOT BETWEEN 1 AND 2
CREATE NAMESPACE IF NOT EXISTS erp.eu
DROP NAMESPACE IF EXISTS erp
CREATE TABLE erp.orders (id bigint NOT NULL COMMENT 'the key', at timestamptz, city string)
CREATE TABLE IF NOT EXISTS t (b boolean, i int, l long, f float, d double, dec decimal(38,10), n numeric(5), da date, tm time, ts timestamp, tz timestamptz, tn timestamp_ns, tzn timestamptz_ns, s string, u uuid, fx fixed(16), bi binary, li list<int NOT NULL>, mp map<string, map<int, double NOT NULL>>, st struct<x: long NOT NULL, "Y y": struct<z: list<list<uuid>>>>) PARTITIONED BY (i, bucket(16, l), truncate(4, s), year(da), months(ts), day(tz), hour(tn), st.x) COMMENT 'all' TBLPROPERTIES ('format-version' = '3', 'a''b' = '')
DROP TABLE IF EXISTS erp.orders
SHOW TABLES
SHOW TABLES IN erp.eu
SHOW NAMESPACES
SHOW NAMESPACES FROM erp
DESCRIBE erp.orders
DESC TABLE "Ä"
/* a /* nested */ comment */ SELECT a FROM t -- to the end;
SELECT "order"."id", "order"."at" FROM "erp"."orders" AS "order" WHERE (("order"."id" = $1)) AND ("order"."city" IN ('oslo', 'riga')) ORDER BY "order"."id" LIMIT 1
SELECT * FROM "erp"."orders" WHERE "erp"."orders"."id" = 1 ORDER BY "erp"."orders"."id" LIMIT 1
UPDATE "erp"."orders" AS "o" SET "city" = 'oslo', "o"."n" = "o"."n" + 1 WHERE ("o"."id" = 5)
