package main

import "context"

func races(context.Context, *house) error  { return nil }
func leaks(context.Context, *house) error  { return nil }
func proofs(context.Context, *house) error { return nil }
