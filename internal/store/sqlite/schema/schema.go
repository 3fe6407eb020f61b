package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/connection"
)

// applicationID marks the file as Holdfast's: "HFST" in ASCII.
const applicationID = 0x48465354

// SeqBits is how many bits of a leaf's id count within its tenant: the id is
// the tenant's number shifted by SeqBits, plus the sequence number. One key
// then holds both, and leaves of one tenant lie together.
const SeqBits = 40

// migrations returns the steps of the schema, oldest first. Step i brings a
// store from version i to version i+1. A step that was released is never
// changed; what comes after is a new step.
func migrations() []migration {
	return []migration{{sql: schema1}, {sql: schema2}, {sql: schema3, move: moveMeta}}
}

// migration is one step: what is created, then what is moved.
type migration struct {
	sql  string
	move func(*connection.Conn) error // nil if the step moves no rows
}

// RunStep brings the schema of a store from version to the next.
func RunStep(c *connection.Conn, version int) error {
	m := migrations()[version]
	err := c.Script(m.sql)
	if err == nil && m.move != nil {
		err = m.move(c)
	}
	return err
}

// schema2 finds the events of a crossing without reading the ledger.
const schema2 = `
CREATE INDEX leaf_event ON leaf (crossing) WHERE kind = 3 AND crossing IS NOT NULL;
`

// schema3 has a table for each kind of small value; moveMeta moves them there from meta.
const schema3 = `
CREATE TABLE row_budget_asked (
  counter TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (counter)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_budget_block (
  tenant  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_budget_grant (
  counter TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (counter)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_budget_question (
  review  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (review)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_chain_count (
  tenant  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_chain_ended (
  chain   TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (chain)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_erased_part (
  tenant  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_goals_pause (
  tenant  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_halt (
  scope   TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (scope)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_judge_score (
  place   TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (place)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_remembered_caller (
  caller  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (caller)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_remembered_rule (
  id      TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_remembered_tenant (
  tenant  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_remembered_use (
  id      TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_rule_text (
  rule    TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (rule)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_spend (
  tenant             TEXT NOT NULL,
  place              TEXT NOT NULL,
  "of"               TEXT NOT NULL,
  calls              INTEGER NOT NULL,
  estimated          INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,
  cache_read_tokens  INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  money_micro        INTEGER NOT NULL,
  unpriced           INTEGER NOT NULL,
  version            INTEGER NOT NULL,
  doc                TEXT NOT NULL,
  PRIMARY KEY (tenant, place, "of")
) STRICT, WITHOUT ROWID;
CREATE TABLE row_spend_period (
  tenant  TEXT NOT NULL,
  place   TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_statement (
  id      TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_subagent_tree (
  tenant  TEXT NOT NULL,
  agent   TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_tool_count (
  server  TEXT NOT NULL,
  version INTEGER NOT NULL,
  doc     TEXT NOT NULL,
  PRIMARY KEY (server)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_tool_pin (
  boundary TEXT NOT NULL,
  version  INTEGER NOT NULL,
  doc      TEXT NOT NULL,
  PRIMARY KEY (boundary)
) STRICT, WITHOUT ROWID;
CREATE TABLE row_tool_sight (
  boundary TEXT NOT NULL,
  seen     TEXT NOT NULL,
  version  INTEGER NOT NULL,
  doc      TEXT NOT NULL,
  PRIMARY KEY (boundary, seen)
) STRICT, WITHOUT ROWID;
`

const schema1 = `
CREATE TABLE tenant (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE leaf (
  id       INTEGER PRIMARY KEY,
  kind     INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
  at       INTEGER NOT NULL,
  hash     BLOB    NOT NULL,
  crossing ANY,
  record   BLOB    NOT NULL,
  part     BLOB,
  tenant   INTEGER GENERATED ALWAYS AS (id >> 40) VIRTUAL,
  seq      INTEGER GENERATED ALWAYS AS (id & 1099511627775) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX leaf_crossing ON leaf (crossing, kind) WHERE kind < 3;
CREATE TRIGGER leaf_no_replace BEFORE INSERT ON leaf
WHEN EXISTS (SELECT 1 FROM leaf WHERE id = NEW.id)
  OR NEW.kind < 3 AND EXISTS (SELECT 1 FROM leaf WHERE crossing = NEW.crossing AND kind = NEW.kind AND kind < 3)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER leaf_no_delete BEFORE DELETE ON leaf
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER leaf_no_update BEFORE UPDATE ON leaf
WHEN NEW.part IS NOT NULL OR OLD.id IS NOT NEW.id OR OLD.kind IS NOT NEW.kind OR OLD.at IS NOT NEW.at
  OR OLD.hash IS NOT NEW.hash OR OLD.crossing IS NOT NEW.crossing OR OLD.record IS NOT NEW.record
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TABLE tile (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  level  INTEGER NOT NULL,
  n      INTEGER NOT NULL,
  root   BLOB    NOT NULL CHECK (length(root) = 32),
  hashes BLOB    NOT NULL CHECK (length(hashes) = 8192),
  UNIQUE (tenant, level, n)
) STRICT;
CREATE TRIGGER tile_no_replace BEFORE INSERT ON tile
WHEN EXISTS (SELECT 1 FROM tile WHERE tenant = NEW.tenant AND level = NEW.level AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER tile_no_delete BEFORE DELETE ON tile
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER tile_no_update BEFORE UPDATE ON tile
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TABLE head (
  tenant INTEGER PRIMARY KEY REFERENCES tenant (id),
  size   INTEGER NOT NULL,
  root   BLOB    NOT NULL CHECK (length(root) = 32),
  settled INTEGER NOT NULL
) STRICT;
CREATE TRIGGER head_no_replace BEFORE INSERT ON head
WHEN EXISTS (SELECT 1 FROM head WHERE tenant = NEW.tenant AND (size > NEW.size OR settled > NEW.settled))
BEGIN SELECT RAISE(ABORT, 'a tree never shrinks'); END;
CREATE TRIGGER head_no_delete BEFORE DELETE ON head
BEGIN SELECT RAISE(ABORT, 'a tree never shrinks'); END;
CREATE TRIGGER head_grows BEFORE UPDATE ON head
WHEN NEW.size < OLD.size OR NEW.settled < OLD.settled OR NEW.tenant IS NOT OLD.tenant
BEGIN SELECT RAISE(ABORT, 'a tree never shrinks'); END;

CREATE TABLE checkpoint (
  tenant TEXT    NOT NULL,
  size   INTEGER NOT NULL,
  root   BLOB    NOT NULL CHECK (length(root) = 32),
  at     INTEGER NOT NULL,
  note   BLOB    NOT NULL,
  PRIMARY KEY (tenant, size)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER checkpoint_no_replace BEFORE INSERT ON checkpoint
WHEN EXISTS (SELECT 1 FROM checkpoint WHERE tenant = NEW.tenant AND size = NEW.size)
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoint_no_delete BEFORE DELETE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoint_no_update BEFORE UPDATE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;

CREATE TABLE counter (
  key      TEXT PRIMARY KEY,
  used     INTEGER NOT NULL CHECK (used >= 0),
  "window" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rate (
  key    TEXT    NOT NULL,
  chunk  INTEGER NOT NULL,
  first  INTEGER NOT NULL,
  stamps BLOB    NOT NULL,
  PRIMARY KEY (key, chunk)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent (
  tenant TEXT NOT NULL,
  name   TEXT NOT NULL,
  doc    TEXT NOT NULL CHECK (json_valid(doc)),
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE revocation (
  tenant TEXT    NOT NULL,
  jti    TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (tenant, jti)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER revocation_no_replace BEFORE INSERT ON revocation
WHEN EXISTS (SELECT 1 FROM revocation WHERE tenant = NEW.tenant AND jti = NEW.jti)
BEGIN SELECT RAISE(ABORT, 'a revocation is for ever'); END;
CREATE TRIGGER revocation_no_delete BEFORE DELETE ON revocation
BEGIN SELECT RAISE(ABORT, 'a revocation is for ever'); END;
CREATE TRIGGER revocation_no_update BEFORE UPDATE ON revocation
BEGIN SELECT RAISE(ABORT, 'a revocation is for ever'); END;

CREATE TABLE review (
  id       TEXT PRIMARY KEY,
  tenant   TEXT    NOT NULL,
  agent    TEXT    NOT NULL,
  boundary TEXT    NOT NULL,
  exact    TEXT    NOT NULL,
  state    TEXT    NOT NULL,
  created  INTEGER NOT NULL,
  doc      TEXT    NOT NULL CHECK (json_valid(doc))
) STRICT;
CREATE INDEX review_binding ON review (tenant, agent, boundary, exact, created, id);
CREATE INDEX review_state ON review (state, created, id);
CREATE INDEX review_tenant ON review (tenant, created, id);

CREATE TABLE replay (
  key      TEXT PRIMARY KEY,
  exact    TEXT    NOT NULL,
  crossing TEXT    NOT NULL,
  sealed   BLOB    NOT NULL,
  expires  INTEGER NOT NULL
) STRICT;
CREATE INDEX replay_expires ON replay (expires);

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT;
` + auditView

// auditView shows the entries with the columns of spec 003 section 1.7. The
// result comes from the erasable part where there is one, after its salt of
// 16 bytes, and is NULL once that part was erased.
const auditView = `
CREATE VIEW audit_wal AS
SELECT
  r ->> '$.id' AS id,
  tenant_name AS tenant_id,
  r ->> '$.correlation_id' AS correlation_id,
  r ->> '$.timestamp' AS timestamp,
  r ->> '$.boundary_crossing' AS boundary_crossing,
  r ->> '$.caller_user_id' AS caller_user_id,
  r ->> '$.caller_roles' AS caller_roles,
  r ->> '$.k1_schema_id' AS k1_schema_id,
  r ->> '$.k1_valid' AS k1_valid,
  r ->> '$.k2_required_permissions' AS k2_required_permissions,
  r ->> '$.k2_granted_permissions' AS k2_granted_permissions,
  r ->> '$.k2_authorized' AS k2_authorized,
  r ->> '$.k3_resource_type' AS k3_resource_type,
  r ->> '$.k3_budget_limit' AS k3_budget_limit,
  r ->> '$.k3_usage_before' AS k3_usage_before,
  r ->> '$.k3_requested' AS k3_requested,
  r ->> '$.k3_within_budget' AS k3_within_budget,
  r ->> '$.k3_all' AS k3_all,
  r ->> '$.k5_idempotency_key' AS k5_idempotency_key,
  r ->> '$.k7_confidence_score' AS k7_confidence_score,
  r ->> '$.k7_human_approved' AS k7_human_approved,
  r ->> '$.k8_eval_passed' AS k8_eval_passed,
  CASE WHEN part IS NULL THEN r ->> '$.operation_result' ELSE CAST(substr(part, 17) AS TEXT) END AS operation_result,
  r ->> '$.exit_code' AS exit_code,
  r ->> '$.redaction_rules_applied' AS redaction_rules_applied,
  r ->> '$.contains_pii_before_redaction' AS contains_pii_before_redaction,
  r ->> '$.created_at' AS created_at,
  r ->> '$.partition_date' AS partition_date,
  seq AS seq
FROM (
  SELECT CAST(leaf.record AS TEXT) AS r, leaf.part AS part, leaf.seq AS seq, tenant.name AS tenant_name
  FROM leaf JOIN tenant ON tenant.id = leaf.tenant
  WHERE leaf.kind = 2
);
`

// IsInVersion3 reports whether version 3 of the schema makes the table. It is there whether or
// not this Holdfast declares it.
func IsInVersion3(name string) bool { return strings.Contains(schema3, "CREATE TABLE "+name+" (") }

// ErrOlder says that a store that is only read has an older schema. Opening it for writing
// migrates it.
var ErrOlder = errors.New("an older Holdfast wrote the file")

// Migrate brings the store to the newest version, or refuses a newer one.
func Migrate(c *connection.Conn, readOnly bool) error {
	app, err := c.Scalar("PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := c.Scalar("PRAGMA user_version")
	if err != nil {
		return err
	}
	steps := migrations()
	switch {
	case app != 0 && app != applicationID:
		return fmt.Errorf("the file is the database of another application (application id %#x)", app)
	case version > int64(len(steps)):
		return fmt.Errorf("%w: the file has version %d, this Holdfast knows %d; hint: use the Holdfast that wrote it, or a newer one",
			kernel.ErrNewer, version, len(steps))
	case version == int64(len(steps)):
		return nil
	case readOnly:
		return fmt.Errorf("%w: the store has schema version %d and this Holdfast reads %d; hint: start `holdfast up` once, which migrates it",
			ErrOlder, version, len(steps))
	}
	if app == 0 {
		n, err := c.Scalar("SELECT count(*) FROM sqlite_schema")
		if err != nil {
			return err
		}
		if n != 0 || version != 0 {
			return fmt.Errorf("the file is a database that Holdfast did not make")
		}
	}
	return upgrade(c, int(version), len(steps))
}

// upgrade runs every step from version on in one transaction.
func upgrade(c *connection.Conn, version, newest int) error {
	if err := c.Script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for i := version; i < newest; i++ {
		if err := RunStep(c, i); err != nil {
			_ = c.Script("ROLLBACK")
			return fmt.Errorf("migrate from version %d to %d: %w", i, i+1, err)
		}
	}
	err := c.Script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", applicationID, newest))
	if err != nil {
		_ = c.Script("ROLLBACK")
	}
	return err
}
