-- Layout 2: with leases' names and notes in the records, the journal's own row,
-- stores and the read fence; no tables of leases and steps yet. It is never changed.
SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;

CREATE TABLE public.dat_journal (
    dat_txn uuid NOT NULL,
    state text NOT NULL,
    dat_tx_time bigint,
    branches text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    lease text,
    fence bigint,
    note text
);
ALTER TABLE ONLY public.dat_journal ALTER COLUMN branches SET STORAGE EXTERNAL;

CREATE SEQUENCE public.dat_fence START WITH 0 INCREMENT BY 1 MINVALUE 0 NO MAXVALUE CACHE 1;

CREATE TABLE public.dat_journal_meta (
    one_row boolean DEFAULT true NOT NULL,
    id text NOT NULL,
    place text NOT NULL,
    layout integer NOT NULL,
    horizon_ms bigint DEFAULT 0 NOT NULL,
    hlc bigint DEFAULT 0 NOT NULL,
    CONSTRAINT dat_journal_meta_one_row_check CHECK (one_row)
);

CREATE TABLE public.dat_store (
    name text NOT NULL,
    place text NOT NULL,
    store_id text NOT NULL,
    sweeps bigint DEFAULT 0 NOT NULL
);

INSERT INTO public.dat_journal_meta (one_row, id, place, layout, horizon_ms, hlc) VALUES (true, '0e6f2a52-6d0f-4c53-9a57-2f1f1f8f2b11', 'pg:' || (SELECT system_identifier FROM pg_control_system()) || '/' || current_database() || '/public', 2, 1734000000000, 113639424000000000);
INSERT INTO public.dat_store (name, place, store_id, sweeps) VALUES ('pg', 'pg:7400000000000000001/erp/public', '5b0d3f60-0f6a-4f7e-8a43-7d2b6f1f0c22', 7);
SELECT pg_catalog.setval('public.dat_fence', 0, true);

INSERT INTO public.dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000001', 'ACTIVE', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000001:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000001:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000000);
INSERT INTO public.dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000002', 'PREPARED', 113704960000000001, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000002:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000002:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO public.dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000003', 'COMMITTED', 113704960000000002, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000003:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000003:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000010);
INSERT INTO public.dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000004', 'DONE', 113704960000000003, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000004:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000004:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);
INSERT INTO public.dat_journal (dat_txn, state, dat_tx_time, branches, created_ms, updated_ms) VALUES ('01940000-0000-7000-8000-000000000005', 'ABORTED', NULL, '[{"store": "pg", "gid": "dat:01940000-0000-7000-8000-000000000005:pg", "two_phase": true, "payload": null}, {"store": "ch", "gid": "dat:01940000-0000-7000-8000-000000000005:ch", "two_phase": false, "payload": "cm93cw=="}]', 1735000000000, 1735000000020);

ALTER TABLE ONLY public.dat_journal
    ADD CONSTRAINT dat_journal_pkey PRIMARY KEY (dat_txn);
ALTER TABLE ONLY public.dat_journal_meta
    ADD CONSTRAINT dat_journal_meta_pkey PRIMARY KEY (one_row);
ALTER TABLE ONLY public.dat_store
    ADD CONSTRAINT dat_store_pkey PRIMARY KEY (name);
CREATE INDEX dat_journal_final ON public.dat_journal USING btree (updated_ms) WHERE (state = ANY (ARRAY['DONE'::text, 'ABORTED'::text]));
CREATE INDEX dat_journal_open ON public.dat_journal USING btree (state, updated_ms) WHERE (state = ANY (ARRAY['ACTIVE'::text, 'PREPARED'::text, 'COMMITTED'::text]));
CREATE INDEX dat_journal_tx_time ON public.dat_journal USING btree (dat_tx_time);
