package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// Version names one content of an object: an ETag. It is opaque; the empty
// Version is no object.
type Version string

// Bucket is what an archive needs of an object store. Keys are slash-separated.
// The three results of a conditional write are never mixed: won, lost (false and
// no error, nothing has changed), and an error, after which it may have been
// applied or not.
type Bucket interface {
	// Get reads an object. ErrAbsent only where the bucket says that there is
	// none.
	Get(ctx context.Context, key string) ([]byte, Version, error)
	// Create writes an object where there is none.
	Create(ctx context.Context, key string, data []byte) (won bool, err error)
	// Replace writes an object where exactly version stands.
	Replace(ctx context.Context, key string, data []byte, version Version) (won bool, err error)
	// List returns the keys below prefix.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete removes an object; one that is not there is a success.
	Delete(ctx context.Context, key string) error
}

// ErrAbsent means that there is no object of that key.
var ErrAbsent = errors.New("rhizodat: read archive: no such object")

// probe writes an object under every condition that pushes rest on. A server that
// ignores a condition answers "won" where it must not.
func probe(ctx context.Context, bucket Bucket) error {
	key := "probe/" + rand.Text()
	err := tryConditions(ctx, bucket, key)
	if deleteErr := bucket.Delete(ctx, key); err == nil {
		err = deleteErr
	}
	if _, unfit := errors.AsType[*Unfit](err); err == nil || unfit {
		return err
	}
	return fmt.Errorf("rhizodat: probe archive's bucket: %w", err)
}

func tryConditions(ctx context.Context, bucket Bucket, key string) error {
	create := func(text string) func() (bool, error) {
		return func() (bool, error) { return bucket.Create(ctx, key, []byte(text)) }
	}
	replace := func(text string, version Version) func() (bool, error) {
		return func() (bool, error) { return bucket.Replace(ctx, key, []byte(text), version) }
	}
	if err := expect("create where there is nothing", true, create("1")); err != nil {
		return err
	}
	if err := expect("create where there is something", false, create("2")); err != nil {
		return err
	}
	_, version, err := bucket.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := expect("replace on the version that stands", true, replace("3", version)); err != nil {
		return err
	}
	if err := expect("replace on a version that is gone", false, replace("4", version)); err != nil {
		return err
	}
	stored, _, err := bucket.Get(ctx, key)
	if err == nil && string(stored) != "3" {
		err = &Unfit{Check: "what was read is not what was written"}
	}
	return err
}

func expect(check string, want bool, write func() (bool, error)) error {
	won, err := write()
	if err == nil && won != want {
		err = &Unfit{Check: check}
	}
	return err
}
