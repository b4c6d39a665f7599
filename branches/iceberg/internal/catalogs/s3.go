package catalogs

import (
	"context"
	"net/http"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/s3" // registers s3:// too
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/utils"
	"github.com/aws/aws-sdk-go-v2/aws"
)

// objects is what all clients of one store's object store share. The library makes a
// client for every table that it loads, with connections and credentials of its own:
// without this each commit would begin with a new TLS handshake, and leave
// connections that nobody uses again.
type objects struct {
	config    *aws.Config
	transport *http.Transport
}

// idle connections that are kept for each host.
const idleConns = 64

// newObjects is nil where nothing speaks of an object store.
func newObjects(ctx context.Context, props iceberg.Properties) (*objects, error) {
	uses := strings.HasPrefix(props[Warehouse], "s3")
	for key := range props {
		uses = uses || strings.HasPrefix(key, "s3.")
	}
	if !uses {
		return nil, nil //nolint:nilnil // there is none
	}
	config, err := s3.ParseAWSConfig(ctx, props)
	if err != nil {
		return nil, err
	}
	o := &objects{config: config}
	if props["s3.proxy-uri"] == "" && props["s3.connect-timeout"] == "" {
		if base, ok := http.DefaultTransport.(*http.Transport); ok {
			o.transport = base.Clone()
			o.transport.MaxIdleConns, o.transport.MaxIdleConnsPerHost = 0, idleConns
			config.HTTPClient = &http.Client{Transport: o.transport}
		}
	}
	return o, nil
}

// with makes what the library does under ctx share the clients.
func (o *objects) with(ctx context.Context) context.Context {
	if o == nil {
		return ctx
	}
	return utils.WithAwsConfig(ctx, o.config)
}

// table is tbl with files that are reached over the shared clients.
func (o *objects) table(tbl *table.Table, catalog table.CatalogIO) *table.Table {
	if o == nil {
		return tbl
	}
	return table.New(tbl.Identifier(), tbl.Metadata(), tbl.MetadataLocation(), func(ctx context.Context) (iceio.IO, error) {
		return tbl.FS(o.with(ctx))
	}, catalog)
}

func (o *objects) close() {
	if o != nil && o.transport != nil {
		o.transport.CloseIdleConnections()
	}
}
