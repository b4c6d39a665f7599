package main

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/testbed/crash/graph"
	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// stack is what all pieces share: the servers, each started when it is first
// needed, and the programs.
type stack struct {
	shop *rig.Shop
	pg   *rig.Server
	ch   *rig.ClickHouse
	gr   *graph.Server
	// closers end what single pieces have opened.
	closers []func() error
}

func openStack(ctx context.Context) (*stack, error) {
	s := &stack{}
	var err error
	if s.pg, err = rig.Open(ctx); err == nil {
		s.shop, err = rig.NewShop()
	}
	if err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *stack) clickHouse(ctx context.Context) (*rig.ClickHouse, error) {
	var err error
	if s.ch == nil {
		s.ch, err = rig.OpenClickHouse(ctx)
	}
	return s.ch, err
}

// graphs is the drevo server.
func (s *stack) graphs(ctx context.Context) (*graph.Server, error) {
	var err error
	if s.gr == nil {
		s.gr, err = graph.Launch(ctx)
	}
	return s.gr, err
}

func (s *stack) close(ctx context.Context) error {
	var errs []error
	for _, end := range s.closers {
		errs = append(errs, end())
	}
	if s.shop != nil {
		errs = append(errs, s.shop.Close())
	}
	if s.ch != nil {
		errs = append(errs, s.ch.Close(ctx))
	}
	if s.gr != nil {
		errs = append(errs, s.gr.Close(ctx))
	}
	if s.pg != nil {
		errs = append(errs, s.pg.Close(ctx))
	}
	return errors.Join(errs...)
}
