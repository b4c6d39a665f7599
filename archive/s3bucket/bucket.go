// Package s3bucket is an archive's bucket in S3, or in a store that speaks its
// protocol and honours If-Match and If-None-Match on PutObject.
package s3bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithy "github.com/aws/smithy-go"
	transport "github.com/aws/smithy-go/transport/http"

	"github.com/rhizodat/rhizodat-go/archive"
)

// bucket is one prefix of one S3 bucket.
type bucket struct {
	client *s3.Client
	name   string
	prefix string // empty or ending in a slash
}

// Open makes the bucket of a URL:
//
//	s3://BUCKET/PREFIX?region=REGION&endpoint=URL&path_style=true
//
// Every parameter may be left out. Credentials come from the SDK's own chain
// (environment, shared files, the instance's role), never from the URL. It does
// not connect.
func Open(ctx context.Context, location string) (archive.Bucket, error) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, errors.New("rhizodat: open archive: not an s3://BUCKET/PREFIX URL")
	}
	if u.User != nil {
		return nil, errors.New("rhizodat: open archive: an s3:// URL holds no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile")
	}
	query := u.Query()
	for key := range query {
		if key != "region" && key != "endpoint" && key != "path_style" {
			return nil, fmt.Errorf("rhizodat: open archive: unknown parameter %q: an s3:// URL takes region, endpoint and path_style", key)
		}
	}
	var options []func(*config.LoadOptions) error
	if region := query.Get("region"); region != "" {
		options = append(options, config.WithRegion(region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("rhizodat: open archive: load AWS configuration: %w", err)
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		if endpoint := query.Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.UsePathStyle = query.Get("path_style") == "true"
	})
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &bucket{client: client, name: u.Host, prefix: prefix}, nil
}

// Get implements archive.Bucket.
func (b *bucket) Get(ctx context.Context, key string) ([]byte, archive.Version, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if isAbsent(err) {
		return nil, "", archive.ErrAbsent
	}
	if err != nil {
		return nil, "", err
	}
	defer out.Body.Close() //nolint:errcheck // read to its end
	data, err := io.ReadAll(out.Body)
	return data, archive.Version(aws.ToString(out.ETag)), err
}

// Create implements archive.Bucket.
func (b *bucket) Create(ctx context.Context, key string, data []byte) (bool, error) {
	return b.put(ctx, key, data, func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
}

// Replace implements archive.Bucket.
func (b *bucket) Replace(ctx context.Context, key string, data []byte, version archive.Version) (bool, error) {
	return b.put(ctx, key, data, func(in *s3.PutObjectInput) { in.IfMatch = aws.String(string(version)) })
}

func (b *bucket) put(ctx context.Context, key string, data []byte, condition func(*s3.PutObjectInput)) (bool, error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key), Body: bytes.NewReader(data)}
	condition(in)
	_, err := b.client.PutObject(ctx, in)
	if lost(err) || in.IfMatch != nil && isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// List implements archive.Bucket.
func (b *bucket) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: aws.String(b.prefix + prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			keys = append(keys, strings.TrimPrefix(aws.ToString(object.Key), b.prefix))
		}
	}
	return keys, nil
}

// Delete implements archive.Bucket.
func (b *bucket) Delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	return err
}

// lost: 412 is a condition that does not hold, 409 another conditional write
// under way on the key.
func lost(err error) bool {
	answer, ok := errors.AsType[*transport.ResponseError](err)
	return ok && (answer.HTTPStatusCode() == http.StatusPreconditionFailed || answer.HTTPStatusCode() == http.StatusConflict)
}

// isAbsent is true of 404 NoSuchKey alone: any other 404 (NoSuchBucket, a proxy)
// says nothing of the object.
func isAbsent(err error) bool {
	answer, ok := errors.AsType[smithy.APIError](err)
	return ok && answer.ErrorCode() == "NoSuchKey"
}
