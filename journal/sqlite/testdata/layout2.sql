-- Layout 2: with leases' names and notes in the records, the journal's own row
-- and stores; no tables of leases and steps yet. It is never changed.
CREATE TABLE dat_journal (
    dat_txn text PRIMARY KEY NOT NULL,
    state text NOT NULL,
    dat_tx_time bigint,
    branches text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, lease text, fence bigint, note text);
CREATE INDEX dat_journal_open ON dat_journal (state, updated_ms)
				WHERE state IN ('ACTIVE', 'PREPARED', 'COMMITTED');
CREATE INDEX dat_journal_final ON dat_journal (updated_ms)
				WHERE state IN ('DONE', 'ABORTED');
CREATE INDEX dat_journal_tx_time ON dat_journal (dat_tx_time);
CREATE TABLE dat_journal_meta (
    one_row integer PRIMARY KEY DEFAULT 1 CHECK (one_row = 1),
    id text NOT NULL,
    place text NOT NULL,
    layout integer NOT NULL,
    horizon_ms bigint NOT NULL DEFAULT 0,
    hlc bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0);
INSERT INTO dat_journal_meta VALUES (1, '0e6f2a526d0f4c539a572f1f1f8f2b11', 'sqlite:/var/lib/app/journal.db', 2, 1734000000000, 113639424000000000, 0);
CREATE TABLE dat_store (
    name text PRIMARY KEY NOT NULL,
    place text NOT NULL,
    store_id text NOT NULL,
    sweeps bigint NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO dat_store VALUES ('pg', 'pg:7400000000000000001/erp/public', '5b0d3f60-0f6a-4f7e-8a43-7d2b6f1f0c22', 7);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000001', 'ACTIVE', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000001:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000001:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000000);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000002', 'PREPARED', 113704960000000001, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000002:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000002:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000003', 'COMMITTED', 113704960000000002, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000003:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000003:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000004', 'DONE', 113704960000000003, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000004:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000004:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000005', 'ABORTED', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000005:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000005:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);
