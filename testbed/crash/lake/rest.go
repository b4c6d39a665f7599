package lake

import (
	"context"
	"database/sql"
	"fmt"

	lib "github.com/apache/iceberg-go"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"

	"github.com/rhizodat/rhizodat-go/internal/restcatalog"
)

// serve starts a REST catalog in front of one in a file.
func (s *Store) serve(ctx context.Context) error {
	behind, err := sql.Open("sqlite", "file:"+s.dir+"/behind.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return fmt.Errorf("open catalog: %w", err)
	}
	s.behind = behind
	made, err := sqlcat.NewCatalog("behind", behind, sqlcat.SQLite, lib.Properties{"warehouse": "file://" + s.dir + "/wh"})
	if err != nil {
		return fmt.Errorf("open catalog: %w", err)
	}
	if s.rest, err = restcatalog.Start(ctx, made); err != nil {
		return fmt.Errorf("start REST catalog: %w", err)
	}
	return nil
}

// Fail makes commits to a REST catalog fail from now on; nil lets them be.
func (s *Store) Fail(fault restcatalog.Fault) { s.rest.Fail(fault) }
