package main

import (
	"context"
	"errors"

	"github.com/rhizodat/rhizodat-go/testbed/internal/rig"
)

// stack is what all pieces share: the servers, each started when it is first
// needed, and the programs.
type stack struct {
	shop *rig.Shop
	pg   *rig.Server
	ch   *rig.ClickHouse
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

func (s *stack) close(ctx context.Context) error {
	var errs []error
	if s.shop != nil {
		errs = append(errs, s.shop.Close())
	}
	if s.ch != nil {
		errs = append(errs, s.ch.Close(ctx))
	}
	if s.pg != nil {
		errs = append(errs, s.pg.Close(ctx))
	}
	return errors.Join(errs...)
}
