package main

import "context"

func concurrent(context.Context, *rig, int) error { return nil }
