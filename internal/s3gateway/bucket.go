package s3gateway

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Client is a client of the server under its credentials.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{
		Region: Region, BaseEndpoint: aws.String(s.Endpoint()), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(Key, s.secret, ""),
	})
}

// MakeBucket makes an empty bucket.
func (s *Server) MakeBucket(ctx context.Context, name string) error {
	if _, err := s.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return fmt.Errorf("rhizodat: make bucket of S3 gateway: %w", err)
	}
	return nil
}
