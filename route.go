package rhizodat

import "context"

type storeKey struct{}

// WithStore routes every statement run with the returned context to the named
// store, for code whose SQL text cannot be touched. A statement whose own text
// names another store is refused.
func WithStore(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, storeKey{}, name)
}

func storeOf(ctx context.Context) string {
	name, _ := ctx.Value(storeKey{}).(string)
	return name
}
