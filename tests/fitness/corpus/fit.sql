-- A surface that is fit. Every near miss of this corpus differs from it in one thing.
CREATE ROLE corpus_owner NOLOGIN;
CREATE ROLE corpus_writer LOGIN;
CREATE ROLE corpus_other LOGIN;
CREATE SCHEMA reg AUTHORIZATION corpus_owner;
SET ROLE corpus_owner;
CREATE FUNCTION reg.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = '23001'; END $$;
CREATE TABLE reg.consumed (
  authorization_nonce text COLLATE "C" NOT NULL CHECK (authorization_nonce <> ''),
  consumed_for text COLLATE "C" NOT NULL,
  CONSTRAINT consumed_nonce UNIQUE (authorization_nonce)
);
CREATE TABLE reg.effect (
  decision_id uuid NOT NULL,
  logical_request_key text COLLATE "C" NOT NULL CONSTRAINT effect_key_form CHECK (logical_request_key ~ '^[0-9a-f]{64}$'),
  replay_key text COLLATE "C" NOT NULL CONSTRAINT effect_replay_form CHECK (replay_key ~ '^[0-9a-f]{64}$'),
  operation text COLLATE "C" NOT NULL CONSTRAINT effect_domain CHECK (operation = 'register_dot'),
  canonical_target text COLLATE "C" NOT NULL CONSTRAINT effect_target_said CHECK (canonical_target <> ''),
  run_id text COLLATE "C" NOT NULL CONSTRAINT effect_run_said CHECK (run_id <> ''),
  deployed_artifact_hash text COLLATE "C" NOT NULL CONSTRAINT effect_hash_form CHECK (deployed_artifact_hash ~ '^[0-9a-f]{64}$'),
  owner_or_approval_binding text COLLATE "C" NOT NULL CONSTRAINT effect_approval_said CHECK (owner_or_approval_binding <> ''),
  attempt_id text COLLATE "C" NOT NULL,
  committed_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
  CONSTRAINT effect_decision PRIMARY KEY (decision_id),
  CONSTRAINT effect_key UNIQUE (logical_request_key),
  CONSTRAINT effect_replay UNIQUE (replay_key)
);
CREATE TABLE reg.refusals (
  refusal_id uuid NOT NULL PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  recorded_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
  code text NOT NULL,
  logical_request_key text,
  authorization_nonce text
);
CREATE TRIGGER effect_rows BEFORE UPDATE OR DELETE ON reg.effect FOR EACH ROW EXECUTE FUNCTION reg.refuse_change();
CREATE TRIGGER effect_whole BEFORE TRUNCATE ON reg.effect FOR EACH STATEMENT EXECUTE FUNCTION reg.refuse_change();
CREATE TRIGGER consumed_rows BEFORE UPDATE OR DELETE ON reg.consumed FOR EACH ROW EXECUTE FUNCTION reg.refuse_change();
CREATE TRIGGER consumed_whole BEFORE TRUNCATE ON reg.consumed FOR EACH STATEMENT EXECUTE FUNCTION reg.refuse_change();
CREATE TRIGGER refusals_rows BEFORE UPDATE OR DELETE ON reg.refusals FOR EACH ROW EXECUTE FUNCTION reg.refuse_change();
CREATE TRIGGER refusals_whole BEFORE TRUNCATE ON reg.refusals FOR EACH STATEMENT EXECUTE FUNCTION reg.refuse_change();
ALTER TABLE reg.effect ENABLE ALWAYS TRIGGER effect_rows, ENABLE ALWAYS TRIGGER effect_whole;
ALTER TABLE reg.consumed ENABLE ALWAYS TRIGGER consumed_rows, ENABLE ALWAYS TRIGGER consumed_whole;
ALTER TABLE reg.refusals ENABLE ALWAYS TRIGGER refusals_rows, ENABLE ALWAYS TRIGGER refusals_whole;
GRANT USAGE ON SCHEMA reg TO corpus_writer;
GRANT SELECT, INSERT ON reg.effect, reg.consumed, reg.refusals TO corpus_writer;
RESET ROLE;
