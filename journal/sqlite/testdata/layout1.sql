-- Layout 1: the table of the seeds, with one record of each state as a worker
-- that knows only the seeds writes them. It is never changed.
CREATE TABLE dat_journal (
    dat_txn text PRIMARY KEY NOT NULL,
    state text NOT NULL,
    dat_tx_time bigint,
    branches text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000001', 'ACTIVE', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000001:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000001:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000000);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000002', 'PREPARED', 113704960000000001, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000002:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000002:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000003', 'COMMITTED', 113704960000000002, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000003:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000003:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000004', 'DONE', 113704960000000003, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000004:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000004:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);
INSERT INTO dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000005', 'ABORTED', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000005:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000005:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);
