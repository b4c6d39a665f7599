package iceberg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	lib "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/change"
)

var _ branches.Examiner = (*Store)(nil)

// Examine looks at everything that a unit of several stores will need of this
// one. It changes nothing.
func (s *Store) Examine(ctx context.Context) ([]branches.Finding, error) {
	place, err := s.Place(ctx)
	if err != nil {
		return nil, err
	}
	findings := []branches.Finding{finding(branches.SeverityOK, "catalog", string(place), "")}
	_, _, err = s.readMeta(ctx)
	switch {
	case errors.Is(err, branches.ErrNotInstalled):
		return append(findings, finding(branches.SeverityError, "meta property",
			"namespace "+name(s.to.namespace)+" has no property "+metaProperty, "run rhizorecover init")), nil
	case err != nil:
		return findings, s.fail("examine store", err)
	}
	findings = append(findings, finding(branches.SeverityOK, "meta property", "namespace "+name(s.to.namespace), ""), s.examineWarehouse())
	names, err := s.catalog.Tables(ctx, s.to.namespace)
	if err != nil {
		return findings, s.fail("examine store", err)
	}
	slices.SortFunc(names, slices.Compare)
	if len(names) == 0 {
		findings = append(findings, finding(branches.SeverityNote, "tables", "namespace "+name(s.to.namespace)+" has no table", ""))
	}
	for _, ident := range names {
		tbl, err := s.catalog.Load(ctx, ident)
		if err != nil {
			findings = append(findings, finding(branches.SeverityError, "table "+name(ident), "it cannot be loaded: "+s.fail("load table", err).Error(), ""))
			continue
		}
		findings = append(findings, examineTable(tbl)...)
	}
	return findings, nil
}

func finding(severity branches.Severity, check, text, way string) branches.Finding {
	return branches.Finding{Severity: severity, Check: check, Text: text, Way: way}
}

func (s *Store) examineWarehouse() branches.Finding {
	switch {
	case s.to.warehouse == "":
		return finding(branches.SeverityOK, "warehouse", "the server's", "")
	case s.onObjects():
		return finding(branches.SeverityOK, "warehouse", s.to.warehouse, "")
	}
	return finding(branches.SeverityOK, "warehouse",
		s.to.warehouse+": this program syncs what it writes; what other engines write there may be lost with the power", "")
}

// The least that maintenance must leave for recovery to look at.
const (
	leastAge      = 24 * time.Hour
	leastVersions = 20
)

// examineTable tells what of a table's properties gets in the way of units.
func examineTable(tbl *table.Table) []branches.Finding {
	check := "table " + name(tbl.Identifier())
	props := tbl.Properties()
	var findings []branches.Finding
	note := func(severity branches.Severity, text, way string) {
		findings = append(findings, finding(severity, check, text, way))
	}
	if n := props.GetInt(table.CommitNumRetriesKey, 0); n > 0 {
		note(branches.SeverityNote, fmt.Sprintf("%s=%d: other writers retry their commits; units here never retry blindly, whatever it says", table.CommitNumRetriesKey, n), "")
	}
	if age := time.Duration(props.GetInt64(table.MaxSnapshotAgeMsKey, table.MaxSnapshotAgeMsDefault)) * time.Millisecond; age < leastAge {
		note(branches.SeverityWarning, fmt.Sprintf("snapshots expire after %s: a unit that recovery finishes later than that can only be found in older metadata files", age),
			"raise "+table.MaxSnapshotAgeMsKey+" above the longest outage that recovery shall bridge")
	}
	if props.GetBool(table.MetadataDeleteAfterCommitEnabledKey, table.MetadataDeleteAfterCommitEnabledDefault) &&
		props.GetInt(table.MetadataPreviousVersionsMaxKey, table.MetadataPreviousVersionsMaxDefault) < leastVersions {
		note(branches.SeverityWarning, "old metadata files are deleted, and few are kept: they are the last proof of what was applied",
			"raise "+table.MetadataPreviousVersionsMaxKey)
	}
	if !props.GetBool(table.ManifestMergeEnabledKey, table.ManifestMergeEnabledDefault) {
		note(branches.SeverityNote, "manifests are not merged: every commit makes the next one slower", "set "+table.ManifestMergeEnabledKey+"=true and "+table.ManifestMinMergeCountKey+"=20")
	}
	if v := tbl.Metadata().Version(); v >= 3 {
		note(branches.SeverityNote, fmt.Sprintf("format version %d: INSERT only, DELETE and UPDATE are refused", v), "")
	}
	if change.HasTextPartitions(tbl) {
		note(branches.SeverityNote, "it is partitioned by the text of a column: the empty string is refused there, and reads cannot skip files by it", "partition by bucket")
	}
	if spec := tbl.Spec(); hasFixed(tbl, spec) {
		note(branches.SeverityNote, "it is partitioned by a fixed column: Java engines cannot read such a table of this library", "")
	}
	if len(findings) == 0 {
		note(branches.SeverityOK, "all is well", "")
	}
	return findings
}

func hasFixed(tbl *table.Table, spec lib.PartitionSpec) bool {
	for _, f := range spec.Fields() {
		for _, id := range f.SourceIDs {
			source, ok := tbl.Schema().FindFieldByID(id)
			_, identity := f.Transform.(lib.IdentityTransform)
			if _, fixed := source.Type.(lib.FixedType); ok && identity && fixed {
				return true
			}
		}
	}
	return false
}
